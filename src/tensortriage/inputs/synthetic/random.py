"""Made-up feeds: sensible ones that respect how the model uses its inputs, and Polygraphy's, value by value.

Both use numpy's legacy generator (MT19937), whose numbers are frozen by numpy's compatibility policy (NEP 19), so a
seed means the same feed everywhere and for good. Sensible feeds give every input a stream of its own, derived from the
seed, the iteration and the name: adding an input does not change the others.
"""

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.inputs.conform import check_names, fits, show_shape
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.syntax import Range, Shape
from tensortriage.inputs.synthetic.input_roles import Role, Use, roles
from tensortriage.inputs.synthetic.likenesses import likeness
from tensortriage.inputs.synthetic.open_sizes import Dimension, concrete_shapes, require_room
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

POLYGRAPHY_SEED = 1
POLYGRAPHY_RANGE: Range = (0.0, 1.0)
_NO_RANGES: Mapping[str, Range] = MappingProxyType({})
_NO_SHAPES: Mapping[str, Shape] = MappingProxyType({})
_NO_FILLS: Mapping[str, float] = MappingProxyType({})
_NONE_CHOSEN: Mapping[Dimension, int] = MappingProxyType({})
_WORDS = ("the", "model", "is", "right", "in", "one", "engine", "")
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "MaxPool", "AveragePool"})
_MIXERS = frozenset({"MatMul", "Gemm", "Gather", "Softmax", "Attention", "LSTM", "GRU", "RNN", "GlobalAveragePool"})


def random_feeds(
    model: Model,
    *,
    seed: int = 0,
    iterations: int = 1,
    value_ranges: Mapping[str, Range] = _NO_RANGES,
    shapes: Mapping[str, Shape] = _NO_SHAPES,
) -> Iterator[Feed]:
    """Yield feeds with plausible numbers for the model; see `.input_roles` and `.open_sizes`.

    Floats without constraint are drawn from the normal distribution N(0, 1); other integers are 0 to 9, 8-bit ones use
    their whole range; bools are drawn evenly.

    Args:
        model: The model to feed.
        seed: Any integer; the same seed makes the same feeds.
        iterations: Number of feeds.
        value_ranges: Range by input name (empty name: all others); a uniform draw replaces the model's suggestion.
        shapes: Shape by input name, for dimensions that the model leaves open.

    Raises:
        UsageError: For an unknown input (``input-unknown``), a shape that contradicts the model
            (``shape-contradicts-model``), or an element type that cannot be made up (``random-unsupported``).

    Example:
        >>> feed = next(random_feeds(Model.load("bert.onnx"), shapes={"input_ids": (1, 128)}))  # doctest: +SKIP
    """
    check_names(value_ranges, model.inputs, "the value range")
    check_names(shapes, model.inputs, "the input shape")
    maker = FeedMaker(model)
    sizes = maker.sizes(shapes)
    for iteration in range(iterations):
        yield maker.feed(sizes, seed=seed, iteration=iteration, value_ranges=value_ranges)


class FeedMaker:
    """Makes up feeds for a model, whose graph is searched once.

    Args:
        model: The model to feed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        known = functools.cache(lambda: value_specs(model))
        self.specs = tuple(model.inputs)
        self.roles = roles(model.graph, model.inputs, lambda name: known().get(name))
        self.convolved = frozenset(spec.name for spec in self.specs if _is_convolved(model.graph, spec.name))

    def sizes(
        self, shapes: Mapping[str, Shape], chosen: Mapping[Dimension, int] = _NONE_CHOSEN
    ) -> dict[str, tuple[int, ...]]:
        """Return the shape of every input; see `.open_sizes`.

        Args:
            shapes: Shapes that the user gave.
            chosen: Sizes of open dimensions in place of the usual ones.

        Raises:
            UsageError: As `concrete_shapes` and `require_room` do.
        """
        found = concrete_shapes(self.specs, shapes, self.convolved, chosen)
        require_room(self.specs, found, shapes)
        return found

    def feed(
        self,
        sizes: Mapping[str, tuple[int, ...]],
        *,
        seed: int = 0,
        iteration: int = 0,
        value_ranges: Mapping[str, Range] = _NO_RANGES,
        fills: Mapping[str, float] = _NO_FILLS,
        alike: bool = False,
    ) -> Feed:
        """Return one feed, named by its iteration.

        Args:
            sizes: The shape of every input.
            seed: As of `random_feeds`.
            iteration: Number of the feed.
            value_ranges: As of `random_feeds`.
            fills: A number by the name of an input that holds it alone.
            alike: Whether floats that are convolved look like pictures or sounds.

        Raises:
            UsageError: ``random-unsupported``, ``range-malformed``.
        """
        tensors = {}
        for spec in self.specs:
            generator, shape = _generator(seed, iteration, spec.name), sizes[spec.name]
            wanted = value_ranges.get(spec.name, value_ranges.get(""))
            dtype, role = _element_type(spec), self.roles[spec.name]
            if math.isfinite(fills.get(spec.name, math.inf)):
                role = Role(Use.FILL, low=fills[spec.name])
            elif role.use is Use.LENGTH:
                role = Role(Use.FILL, low=self._length(spec.name, sizes))
            known = likeness(generator, shape) if alike and self.may_be_alike(spec) else None
            if known is not None:
                tensors[spec.name] = known.astype(dtype.numpy)
            elif wanted is None:
                tensors[spec.name] = _sensible(generator, role, dtype, shape)
            else:
                tensors[spec.name] = _uniform(generator, spec.name, dtype, shape, wanted)
        return Feed(f"random[{iteration}]", tensors, Origin.RANDOM)

    def may_be_alike(self, spec: ValueSpec) -> bool:
        """Return whether an input may be a picture or a sound: floats without a role that are convolved."""
        is_float = spec.dtype is not None and spec.dtype.is_float
        return is_float and self.roles[spec.name].use is Use.FREE and spec.name in self.convolved

    def _length(self, name: str, sizes: Mapping[str, tuple[int, ...]]) -> int:
        """Return how long the others are: along their open axes but the first, or of fixed ones the shortest."""
        others = [spec for spec in self.specs if spec.name != name and len(sizes[spec.name]) > 1]
        stem = name.lower().partition("len")[0].strip("_")  # feats_len is the length of feats
        named = [spec for spec in others if stem and stem in spec.name.lower()]
        lengths = [
            max([size for size, declared in axes if not isinstance(declared, int)] or [min(axes)[0]])
            for spec in named or others
            for axes in [list(zip(sizes[spec.name], spec.shape or sizes[spec.name], strict=True))[1:]]
        ]
        return min(lengths, default=1)


def polygraphy_feeds(
    specs: Sequence[ValueSpec],
    *,
    seed: int = POLYGRAPHY_SEED,
    iterations: int = 1,
    val_range: Mapping[str, Range] = _NO_RANGES,
    shapes: Mapping[str, Shape] = _NO_SHAPES,
) -> Iterator[Feed]:
    """Yield the feeds that Polygraphy's default data loader makes; checked bit for bit against version 0.53.6.

    Every iteration starts a generator with ``seed + iteration``, and all inputs draw from it in the model's order. Open
    dimensions become 1. A shape given for a one-dimensional integer input, of as many entries as the input has
    elements, becomes its *value* (Polygraphy takes it for a shape tensor).

    Beyond Polygraphy: bf16, fp8 and 4-bit inputs are drawn as the next wider type and rounded.

    Args:
        specs: The model's inputs, in its order.
        seed: As ``--seed``.
        iterations: As ``--iterations``.
        val_range: As ``--val-range``: range by input name, both ends included; the empty name is the default.
        shapes: As ``--input-shapes``; names may hold the wildcards of `fnmatch`.

    Raises:
        UsageError: As `random_feeds`; also for a range that an integer type cannot hold (``range-malformed``) and a
            seed that the generator does not take (``seed-out-of-range``).
    """
    check_names(val_range, specs, "--val-range")
    if not 0 <= seed <= 2**32 - max(iterations, 1):
        raise UsageError(f"seed {seed} is out of range", slug="seed-out-of-range", cure="give 0 to 4294967295")
    static = {spec.name: _polygraphy_shape(spec, shapes) for spec in specs}
    require_room(specs, static, shapes)
    for iteration in range(iterations):
        generator = np.random.RandomState(seed + iteration)
        tensors = {}
        for spec in specs:
            shape = static[spec.name]
            wanted = val_range.get(spec.name, val_range.get("", POLYGRAPHY_RANGE))
            if _is_shape_tensor(spec, shapes):
                assert spec.dtype is not None
                tensors[spec.name] = np.array(shape, spec.dtype.numpy)
            else:
                tensors[spec.name] = _uniform(generator, spec.name, spec.dtype or DType.DOUBLE, shape, wanted)
        yield Feed(f"random[{iteration}]", tensors, Origin.RANDOM)


def _polygraphy_shape(spec: ValueSpec, shapes: Mapping[str, Shape]) -> tuple[int, ...]:
    given: Shape | None = None
    for name, shape in shapes.items():
        if name == spec.name or fnmatchcase(spec.name, name):
            given = shape
    declared = spec.shape or ()
    if given is not None and all(isinstance(d, int) for d in given):
        static = tuple(d for d in given if isinstance(d, int))
        if _is_shape_tensor(spec, shapes) or fits(static, spec):
            return static
        raise UsageError(
            f"shape {show_shape(given)} does not fit input '{spec.name}', which is {show_shape(declared)}",
            slug="shape-contradicts-model",
            cure="give declared dimensions the sizes that the model declares",
        )
    return tuple(d if isinstance(d, int) else 1 for d in declared)


def _is_shape_tensor(spec: ValueSpec, shapes: Mapping[str, Shape]) -> bool:
    given = shapes.get(spec.name)
    return (
        given is not None
        and all(isinstance(d, int) for d in given)
        and spec.dtype is not None
        and spec.dtype.is_integer
        and spec.shape == (len(given),)
    )


def _uniform(
    generator: np.random.RandomState, name: str, dtype: DType, shape: tuple[int, ...], wanted: Range
) -> np.ndarray:
    """Draw as Polygraphy's ArraySampler does (``polygraphy/comparator/data_loader.py``)."""
    if dtype.is_integer or dtype is DType.BOOL:
        return _uniform_integers(generator, name, dtype, shape, wanted)
    if not dtype.is_float:
        raise _unsupported(name, dtype)
    low, high = float(wanted[0]), float(wanted[1])
    scale, shift = high - low, low
    if math.isinf(low):
        scale, shift = low, 0.0
    if math.isinf(high):
        scale = high
    with np.errstate(all="ignore"):
        return np.asarray(generator.random_sample(shape) * scale + shift).astype(dtype.numpy)


def _uniform_integers(
    generator: np.random.RandomState, name: str, dtype: DType, shape: tuple[int, ...], wanted: Range
) -> np.ndarray:
    drawn = dtype.numpy if dtype.numpy.num < 256 else np.dtype(np.int64)  # numpy draws no int4.
    try:
        low, high = (bool(wanted[0]), bool(wanted[1])) if dtype is DType.BOOL else (int(wanted[0]), int(wanted[1]))
        return np.asarray(generator.randint(low, high + 1, shape, dtype=drawn)).astype(dtype.numpy)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"[{wanted[0]},{wanted[1]}] is no range for input '{name}' of type {dtype.label}: {error}",
            slug="range-malformed",
            cure="give a range that the type can hold",
        ) from error


def _sensible(generator: np.random.RandomState, role: Role, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype is DType.STRING:
        words = np.array(_WORDS, dtype=object)
        return np.asarray(words[generator.randint(0, len(_WORDS), shape)], dtype=object).reshape(shape)
    if role.use is Use.FILL:
        values = np.full(shape, role.low)
    elif role.use is Use.RESHAPE:
        values = np.ones(shape)
        values.reshape(-1)[:1] = -1
    elif role.use is Use.COUNT_UP:
        counted = np.arange(shape[-1] if shape else 1) % (role.high + 1)
        values = np.broadcast_to(counted, shape) if shape else counted[0]
    elif role.use is Use.INDEX:
        values = generator.randint(0, min(int(role.high), 2**31 - 2) + 1 if math.isfinite(role.high) else 10, shape)
    elif dtype.is_float or dtype in (DType.COMPLEX64, DType.COMPLEX128):
        values = _floats(generator, role.use, shape)
    elif dtype is DType.BOOL:
        values = generator.randint(0, 2, shape)
    else:
        values = _integers(generator, role.use, dtype, shape)
    return np.asarray(values).astype(dtype.numpy)


def _floats(generator: np.random.RandomState, use: Use, shape: tuple[int, ...]) -> np.ndarray:
    if use is Use.FREE:
        return np.asarray(generator.standard_normal(shape))
    low, high = {
        Use.POSITIVE: (0.1, 2.0), Use.AT_LEAST_ONE: (1.0, 3.0), Use.UNIT: (0.0, 1.0), Use.SYMMETRIC: (-0.95, 0.95),
    }[use]  # fmt: skip
    return np.asarray(generator.uniform(low, high, shape))


def _integers(generator: np.random.RandomState, use: Use, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    low, high = (0 if use is Use.FREE else 1), 9
    if dtype in (DType.UINT8, DType.INT8) and use is Use.FREE:
        low, high = (0, 255) if dtype is DType.UINT8 else (-128, 127)
    elif dtype.bits < 8:
        signed = 0 if dtype.name.startswith("U") else 1
        low, high = max(low, -signed << (dtype.bits - 1)), (1 << (dtype.bits - signed)) - 1
    return np.asarray(generator.randint(low, high + 1, shape))


def _generator(seed: int, iteration: int, name: str) -> np.random.RandomState:
    digest = hashlib.sha256(f"{seed}/{iteration}/{name}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, "<u4"))


def _is_convolved(graph: Graph, name: str) -> bool:
    """Return whether an input enters a convolution or pooling before anything mixes its positions."""
    pending, seen = [name], {name}
    while pending and len(seen) < 100:
        for node in graph.consumers(pending.pop(0)):
            if node.op_type in _CONVOLUTIONS:
                return True
            if node.op_type not in _MIXERS:
                pending += [output for output in node.outputs if output not in seen]
                seen.update(node.outputs)
    return False


def _element_type(spec: ValueSpec) -> DType:
    if spec.dtype is None:
        raise UsageError(
            f"input '{spec.name}' is not a tensor, or has no declared element type, so that no random values "
            "can be drawn",
            slug="random-unsupported",
            cure="declare its type in the model; sequence and optional inputs are not supported",
        )
    return spec.dtype


def _unsupported(name: str, dtype: DType) -> UsageError:
    return UsageError(
        f"no random values can be drawn for input '{name}' of type {dtype.label}",
        slug="random-unsupported",
        cure="give real data with --inputs",
    )

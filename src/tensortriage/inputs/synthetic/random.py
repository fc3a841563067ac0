"""Made-up feeds that respect how the model uses its inputs.

They and Polygraphy's use numpy's legacy generator (MT19937), whose numbers are frozen by numpy's compatibility policy
(NEP 19), so a seed means the same feed everywhere and for good. Here every input has a stream of its own, derived from
the seed, the iteration and the name: adding an input does not change the others.
"""

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.inputs.conform import check_names, given_shapes
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.syntax import Range, Shape
from tensortriage.inputs.synthetic.draws import sensible, uniform
from tensortriage.inputs.synthetic.input_roles import Role, Use, is_convolved, leads_with_time, roles
from tensortriage.inputs.synthetic.likenesses import likeness
from tensortriage.inputs.synthetic.open_sizes import Dimension, concrete_shapes, require_room
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_NO_RANGES: Mapping[str, Range] = MappingProxyType({})
_NO_SHAPES: Mapping[str, Shape] = MappingProxyType({})
_NO_FILLS: Mapping[str, float] = MappingProxyType({})
_NONE_CHOSEN: Mapping[Dimension, int] = MappingProxyType({})


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
    maker = FeedMaker(model)
    check_names(value_ranges, model.inputs, "the value range")
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
        self.convolved = frozenset(spec.name for spec in self.specs if is_convolved(model.graph, spec.name))
        self.timed = frozenset(spec.name for spec in self.specs if leads_with_time(model.graph, spec.name))

    def sizes(
        self, shapes: Mapping[str, Shape], chosen: Mapping[Dimension, int] = _NONE_CHOSEN
    ) -> dict[str, tuple[int, ...]]:
        """Return the shape of every input; see `.open_sizes`.

        Args:
            shapes: Shapes that the user gave.
            chosen: Sizes of open dimensions in place of the usual ones.

        Raises:
            UsageError: As `given_shapes` and `require_room` do.
        """
        declared = given_shapes(self.specs, shapes)
        found = concrete_shapes(self.specs, declared, self.convolved, self.timed, chosen)
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
                tensors[spec.name] = sensible(generator, role, dtype, shape)
            else:
                tensors[spec.name] = uniform(generator, spec.name, dtype, shape, wanted)
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


def _generator(seed: int, iteration: int, name: str) -> np.random.RandomState:
    digest = hashlib.sha256(f"{seed}/{iteration}/{name}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, "<u4"))


def _element_type(spec: ValueSpec) -> DType:
    if spec.dtype is None:
        raise UsageError(
            f"input '{spec.name}' is not a tensor, or has no declared element type, so that no random values "
            "can be drawn",
            slug="random-unsupported",
            cure="declare its type in the model; sequence and optional inputs are not supported",
        )
    return spec.dtype

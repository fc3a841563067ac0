"""Polygraphy's made-up feeds, value by value."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

import numpy as np

from tensortriage.errors import UsageError
from tensortriage.inputs.conform import check_names, fits, show_shape
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.syntax import Range, Shape
from tensortriage.inputs.synthetic.draws import uniform
from tensortriage.inputs.synthetic.open_sizes import require_room
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

POLYGRAPHY_SEED = 1
POLYGRAPHY_RANGE: Range = (0.0, 1.0)
_NO_RANGES: Mapping[str, Range] = MappingProxyType({})
_NO_SHAPES: Mapping[str, Shape] = MappingProxyType({})


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
        UsageError: As `tensortriage.inputs.synthetic.random.random_feeds`; also for a range that an integer type cannot
            hold (``range-malformed``) and a seed that the generator does not take (``seed-out-of-range``).
    """
    if not 0 <= seed <= 2**32 - max(iterations, 1):
        raise UsageError(f"seed {seed} is out of range", slug="seed-out-of-range", cure="give 0 to 4294967295")
    static = {spec.name: _polygraphy_shape(spec, shapes) for spec in specs}
    values = [spec.name for spec in specs if _is_shape_tensor(spec, shapes)]
    check_names(val_range, specs, "--val-range")
    require_room(specs, static, shapes)
    for iteration in range(iterations):
        generator = np.random.RandomState(seed + iteration)
        tensors = {}
        for spec in specs:
            shape = static[spec.name]
            wanted = val_range.get(spec.name, val_range.get("", POLYGRAPHY_RANGE))
            if spec.name in values:
                assert spec.dtype is not None
                tensors[spec.name] = np.array(shape, spec.dtype.numpy)
            else:
                tensors[spec.name] = uniform(generator, spec.name, spec.dtype or DType.DOUBLE, shape, wanted)
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

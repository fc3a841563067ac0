"""The operands that an 8-bit model quantizes, on samples: are they finite, and do the calibrated ranges cover them?"""

import dataclasses
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tensortriage.api import Feed, Model
from tensortriage.precision.sdk import PLAIN, DType, Lab
from tensortriage.sdk import DataError
from tensortriage_quantize.calibration.calibrated_model import ModelQuantizer
from tensortriage_quantize.calibration.range_coverage import outgrown, range_uses


@dataclasses.dataclass(frozen=True, slots=True)
class Outgrown:
    """A tensor whose held-out values leave its calibrated range.

    Attributes:
        value: Name of the tensor.
        range: Largest magnitude that the range holds.
        largest: Largest magnitude of the held-out samples.
        clipped_share: Share of its elements beyond the range.
        clipping_over_rounding: Noise of clipping over noise of rounding (powers).
        sample: The held-out sample with the largest magnitude: samples like it are missing among those that calibrated.
    """

    value: str
    range: float
    largest: float
    clipped_share: float
    clipping_over_rounding: float
    sample: str


def outgrown_ranges(model: Model, quantizer: ModelQuantizer, samples: Sequence[Feed], lab: Lab) -> tuple[Outgrown, ...]:
    """Return the ranges that clip more than they round on given samples, worst first."""
    ranges = dict(quantizer.ranges)
    largest: dict[str, tuple[float, str]] = {}

    def arrays() -> Iterator[tuple[str, np.ndarray]]:
        for feed, name, array in _operands(model, ranges, samples, lab):
            here = float(np.abs(array).max(initial=0.0))
            largest[name] = max(largest.get(name, (0.0, "")), (here, feed.name))
            yield name, array

    return tuple(
        Outgrown(
            use.value,
            use.half_width,
            use.largest,
            use.clipped_share,
            use.clipping_over_rounding,
            largest[use.value][1],
        )
        for use in outgrown(range_uses(ranges, arrays()))
    )


def require_finite(model: Model, op_types: Collection[str], samples: Sequence[Feed], lab: Lab) -> None:
    """Refuse samples on which an operand that is to be quantized is no number: no range holds it.

    Args:
        model: The float model.
        op_types: Operators whose operands are quantized.
        samples: Samples of calibration and judgement.
        lab: Runs the model.

    Raises:
        DataError: When an operand holds NaN or Inf (``quantize-not-finite``).
    """
    graph = model.graph
    wanted = {name for node in graph.nodes if node.op_type in set(op_types) for name in node.inputs if name}
    for feed, name, array in _operands(model, wanted - set(graph.constants), samples, lab):
        if DType.from_numpy(array.dtype).is_float and not np.isfinite(array).all():
            raise _not_finite(f"'{name}', which is to be quantized,", array, feed)


def require_numbers_in(samples: Sequence[Feed]) -> None:
    """Refuse samples with NaN: nothing can be calibrated on them.

    An infinity may be intended, as in a mask, and need not reach a quantized operand.

    Raises:
        DataError: When an input holds NaN (``quantize-not-finite``).
    """
    for feed in samples:
        for name, array in feed.tensors.items():
            if DType.from_numpy(array.dtype).is_float and np.isnan(array).any():
                raise _not_finite(f"input '{name}'", array, feed)


def _not_finite(what: str, array: np.ndarray, feed: Feed) -> DataError:
    bad = ~np.isfinite(array)
    first = [int(index) for index in np.argwhere(bad)[0]]
    return DataError(
        f"{what} holds {array[tuple(first)]} at {first} on {feed.name}, {int(bad.sum())} such elements in all: "
        "no range holds it",
        slug="quantize-not-finite",
        cure="look at the inputs with triage inspect data; leave that sample out, or correct it",
    )


def _operands(
    model: Model, names: Collection[str], samples: Sequence[Feed], lab: Lab
) -> Iterator[tuple[Feed, str, np.ndarray]]:
    inputs = {spec.name for spec in model.inputs}
    for feed in samples:
        yield from ((feed, name, array) for name, array in feed.tensors.items() if name in names)
        wanted = [name for name in names if name not in inputs and model.graph.producer(name) is not None]
        yield from ((feed, name, array) for name, array in lab.stream(PLAIN, model, feed, wanted))

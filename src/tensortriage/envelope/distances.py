"""How far evaluations of a model lie from the correctly rounded one, tensor by tensor, compared as values arrive.

All are the engine ``float64`` under one arithmetic or another, so a mistake in an operator there is the same in all of
them and widens nothing. Values are compared while they are computed; none is kept.

Of the figures of `tensortriage.compare.metrics`, floors need the squares of errors and reference, the counts of
non-finite elements, and whether few elements carry all of the error. These take three sweeps over finite float32 or
float64 numbers in the place of some sixteen; any other pair takes the full way.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Literal, Self

import numpy as np

from tensortriage.compare.metrics.blocks import BLOCK, inner_products
from tensortriage.compare.metrics.dtype_pairs import SAFE
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure, sample_stride
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED
from tensortriage.envelope.prefetched import prefetched
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import output_parts
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.store import TensorStore

EXTERNAL = "external"
"""Name under which stored values are compared with the correctly rounded ones, among the evaluations."""


@frozen_dataclass
class Distance:
    """The figures of one tensor; each as in `tensortriage.compare.metrics.tensor_metrics.Metrics`.

    Attributes:
        count: Elements of the tensor.
        compared: Elements that are finite on both sides.
        rms_error: Root of the mean squared error.
        median_abs_error: Median error, of a sample where the tensor is large.
        reference_rms: Root mean square of the centre.
        nonfinite_mismatch: Elements that are not finite on both sides and not the same.
        mismatches: Elements that differ.
        exact: Whether both sides are integers, bools or strings.
    """

    count: int
    compared: int
    rms_error: float
    median_abs_error: float
    reference_rms: float
    nonfinite_mismatch: int
    mismatches: int
    exact: bool

    @classmethod
    def of(cls, metrics: Metrics) -> Self:
        """Return the part of a tensor's figures that is stored."""
        return cls(**{field.name: getattr(metrics, field.name) for field in dataclasses.fields(cls)})


@dataclasses.dataclass(frozen=True)
class EvaluatedModel:
    """A model (whole, or exploded) on a feed, and the lab that evaluates it."""

    lab: Lab
    model: Model
    feed: Feed


@frozen_dataclass
class StoredValues:
    """Values that an engine computed of a model, such as the reference's, to be compared as evaluations are.

    Attributes:
        source: Identity of the values' model and feed.
        names: The compared values.
    """

    source: str
    values: TensorStore
    names: Sequence[str]


def distances(
    evaluated: EvaluatedModel,
    values: Sequence[str],
    evaluations: Mapping[str, EngineSpec],
    *,
    stored: StoredValues | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str = "the envelope",
) -> dict[str, dict[str, Distance]]:
    """Return how far evaluations lie from the correctly rounded one, by name and value, with the parts of outputs.

    Args:
        evaluated: The model and its feed.
        values: Values to compare, in topological order.
        evaluations: By name.
        stored: Values to be compared as well, under the name `EXTERNAL`.
        seen: Receives every correctly rounded value as it is computed; nothing where all answers are known.
        what: Progress line.

    Raises:
        EngineError: When an evaluation fails, as for an operator without float64 arithmetic.
    """
    lab, model, feed, centre = evaluated.lab, evaluated.model, evaluated.feed, CORRECTLY_ROUNDED
    parts = [part for part in output_parts(model, feed.tensors) if part.output in values]
    words = ("distances", str(centre), [*values, *(part.name for part in parts)])
    kept = {
        name: lab.derived(dict[str, Distance], "distances", spec, model, feed, *words)
        for name, spec in evaluations.items()
    }
    if stored is not None:
        which = stored.source, list(stored.names)
        kept[EXTERNAL] = lab.derived(dict[str, Distance], "external distances", centre, model, feed, *which)
    known = {name: each.known() for name, each in kept.items()}
    found: dict[str, dict[str, Distance]] = {name: {} if answer is None else answer for name, answer in known.items()}
    missing = [name for name, answer in known.items() if answer is None]
    if not missing:
        return found
    if stored is not None and missing == [EXTERNAL]:
        values = stored.names
    lab.progress(f"evaluating {what}")
    streams: dict[str, Iterator[tuple[str, np.ndarray]]] = {}
    stores: dict[str, tuple[TensorStore, Collection[str]]] = {}
    for name in missing:
        if stored is not None and name == EXTERNAL:
            stores[name] = stored.values, stored.names
        elif evaluations[name].name == centre.name:
            streams[name] = lab.stream(evaluations[name], model, feed, values, specs={})
        else:
            stores[name] = lab.values(evaluations[name], model, feed, values), values
    sources = [lab.stream(centre, model, feed, values, specs={}), *streams.values()]
    with prefetched(sources, size=lambda item: item[1].nbytes) as (middle, *others):
        for name, value, exact, array in _pairs(middle, dict(zip(streams, others, strict=True)), stores, seen):
            found[name][value] = distance_between(exact, array)
            for part in parts:
                if part.output == value and part.where.shape == exact.shape:
                    found[name][part.name] = distance_between(part.of(exact), part.of(array))
    for name in missing:
        kept[name].keep(found[name])
    return found


def _pairs(
    centre: Iterator[tuple[str, np.ndarray]],
    streams: Mapping[str, Iterator[tuple[str, np.ndarray]]],
    stores: Mapping[str, tuple[TensorStore, Collection[str]]],
    seen: Callable[[str, np.ndarray], None] | None,
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield ``(evaluation, value, exact, other)`` in the order in which the centre computes its values."""
    early: dict[str, dict[str, np.ndarray]] = {name: {} for name in streams}  # nothing, where orders are equal
    for value, exact in centre:
        if seen is not None:
            seen(value, exact)
        for name, stream in streams.items():
            while value not in early[name]:
                other, array = next(stream)
                early[name][other] = array
            if (array := early[name].pop(value)).shape == exact.shape:
                yield name, value, exact, array
        for name, (store, wanted) in stores.items():
            if value in wanted and value in store and (array := np.asarray(store[value])).shape == exact.shape:
                yield name, value, exact, array
    for stream in streams.values():
        for _ in stream:  # let each session end
            pass


def distance_between(centre: np.ndarray, other: np.ndarray) -> Distance:
    """Return the figures of a pair of tensors of one shape.

    Args:
        centre: The tensor to compare with; any type of ONNX.
        other: The compared tensor.
    """
    if centre.dtype == other.dtype and centre.dtype in SAFE and centre.size:
        with np.errstate(all="ignore"):
            order: Literal["C", "K"] = "K" if centre.strides == other.strides else "C"  # any order serves
            found = _finite(centre.ravel(order), other.ravel(order))
        if found is not None:
            return found
    return Distance.of(measure(centre, other))


def _median(values: np.ndarray) -> float:
    """Return the median of finite numbers; that of numpy imports all of its masked arrays."""
    low, high = (values.size - 1) // 2, values.size // 2
    ordered = np.partition(values, (low, high))
    return float(ordered[low : high + 1].mean())


def _finite(centre: np.ndarray, other: np.ndarray) -> Distance | None:
    """Return the figures of finite numbers; None where some are not, or so small that squares lose them."""
    least = SAFE[centre.dtype][0] ** 2
    stride, samples, error_squares, squares, differing = sample_stride(centre.size), [], 0.0, 0.0, 0
    scratch = np.empty(min(BLOCK, centre.size), centre.dtype)
    for start in range(0, centre.size, BLOCK):
        reference = centre[start : start + BLOCK]
        errors = np.subtract(other[start : start + BLOCK], reference, out=scratch[: reference.size])
        error_square, square = (float(inner_products(side, side)) for side in (errors, reference))
        unequal = int(np.count_nonzero(errors))
        if not math.isfinite(error_square + square):
            return None
        if (error_square < least and unequal) or (square < least and reference.any()):
            return None
        error_squares, squares, differing = error_squares + error_square, squares + square, differing + unequal
        samples.append(np.abs(errors[-start % stride :: stride]))
    return Distance(
        count=centre.size,
        compared=centre.size,
        rms_error=math.sqrt(error_squares / centre.size),
        median_abs_error=_median(np.concatenate(samples)) if differing else 0.0,
        reference_rms=math.sqrt(squares / centre.size),
        nonfinite_mismatch=0,
        mismatches=differing,
        exact=False,
    )


def by_value(found: Mapping[str, Mapping[str, Distance]]) -> dict[str, dict[str, Distance]]:
    """Return distances by value and evaluation, from those by evaluation and value."""
    turned: dict[str, dict[str, Distance]] = {}
    for name, figures in found.items():
        for value, figure in figures.items():
            turned.setdefault(value, {})[name] = figure
    return turned

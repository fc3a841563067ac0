"""Statistics of a tensor: NaN and Inf are counted first and then left out of every other statistic.

A mean over a tensor with one NaN is NaN and means nothing; a mean that silently skips it hides the most important fact.
So the counts stand next to the figures, and the figures are those of the finite values.
"""

import dataclasses
import math

import numpy as np

from tensortriage.sdk import DType

HISTOGRAM_BINS = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the finite values of a tensor; of complex ones, of their magnitudes.

    Attributes:
        zeros: Values equal to zero.
        minimum: Smallest value.
        minimum_at: Index of the first smallest value.
        maximum: Largest value.
        maximum_at: Index of the first largest value.
        mean: Arithmetic mean, summed in float64.
        deviation: Standard deviation (of the population).
        median: Median.
        mean_magnitude: Mean of the absolute values.
        percentiles: The 90th, 95th and 99th percentile.
    """

    zeros: int
    minimum: float | int
    minimum_at: tuple[int, ...]
    maximum: float | int
    maximum_at: tuple[int, ...]
    mean: float
    deviation: float
    median: float
    mean_magnitude: float
    percentiles: tuple[float, float, float]


@dataclasses.dataclass(frozen=True, slots=True)
class TensorSummary:
    """Figures of one tensor.

    Attributes:
        name: Tensor name.
        dtype: Element type, e.g. ``float32``.
        count: Number of elements.
        nan: NaN elements.
        inf: Elements that are +Inf or -Inf.
        figures: Figures of the finite values; None when there are none, and for strings.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    count: int
    nan: int
    inf: int
    figures: Figures | None


@dataclasses.dataclass(frozen=True, slots=True)
class Histogram:
    """Histogram of the finite values of a tensor, in bins of equal width.

    Attributes:
        edges: Bin edges, one more than counts; a value on an inner edge counts to the right. Equal values are one bin
            of no width.
        counts: Elements per bin.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


def summarize(name: str, array: np.ndarray) -> TensorSummary:
    """Return the figures of a tensor of any ONNX element type.

    Args:
        name: Name of the tensor.
        array: The tensor.

    Raises:
        UsageError: For an element type without ONNX counterpart (``dtype-unknown``).

    Example:
        >>> summarize("x", np.float32([1, np.nan, 3])).nan
        1
    """
    dtype = DType.from_numpy(array.dtype)
    label, shape = dtype.label, tuple(array.shape)
    if dtype is DType.STRING:
        return TensorSummary(name, label, shape, array.size, 0, 0, None)
    values = _comparable(array, dtype)
    if values.dtype.kind != "f":
        return TensorSummary(name, label, shape, array.size, 0, 0, _figures(values, values, values.reshape(-1)))
    is_finite = np.isfinite(values)
    finite = values[is_finite]
    nan = int(np.count_nonzero(np.isnan(values)))
    lowest = highest = values
    if finite.size < array.size:
        lowest, highest = np.where(is_finite, values, np.inf), np.where(is_finite, values, -np.inf)
    figures = _figures(lowest, highest, finite)
    return TensorSummary(name, label, shape, array.size, nan, array.size - nan - finite.size, figures)


def histogram(array: np.ndarray, *, bins: int = HISTOGRAM_BINS) -> Histogram | None:
    """Return the distribution of the finite values; None for strings and when there is none."""
    dtype = DType.from_numpy(array.dtype)
    if dtype is DType.STRING:
        return None
    values = _comparable(array, dtype).reshape(-1).astype(np.float64)
    values = values[np.isfinite(values)]
    if not values.size or not math.isfinite(float(values.max()) - float(values.min())):
        return None
    if values.min() == values.max():
        return Histogram((float(values[0]), float(values[0])), (values.size,))
    counts, edges = np.histogram(values, bins=bins)
    return Histogram(tuple(map(float, edges)), tuple(map(int, counts)))


def _comparable(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the values in a type that numpy computes with, without changing any (magnitudes of complex ones)."""
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return np.asarray(np.abs(array))
    if dtype is DType.BOOL:
        return array.astype(np.uint8)
    if dtype.is_float:
        return array if dtype in (DType.FLOAT, DType.DOUBLE) else array.astype(np.float32)
    return array.astype(np.int64) if dtype.numpy.num >= 256 else array


def _figures(lowest: np.ndarray, highest: np.ndarray, finite: np.ndarray) -> Figures | None:
    """Return the figures of values; ``lowest`` and ``highest`` have the tensor's shape, to find the extremes in."""
    if not finite.size:
        return None
    low, high = (np.unravel_index(place, lowest.shape) for place in (lowest.argmin(), highest.argmax()))
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = float(finite.mean(dtype=np.float64)), float(finite.std(dtype=np.float64))
        mean_magnitude = float(np.abs(finite.astype(np.float64)).mean())
        median, p90, p95, p99 = (float(value) for value in np.quantile(finite, [0.5, 0.9, 0.95, 0.99]))
    return Figures(
        zeros=int(finite.size - np.count_nonzero(finite)),
        minimum=lowest[low].item(),
        minimum_at=tuple(map(int, low)),
        maximum=highest[high].item(),
        maximum_at=tuple(map(int, high)),
        mean=mean,
        deviation=deviation,
        median=median,
        mean_magnitude=mean_magnitude,
        percentiles=(p90, p95, p99),
    )

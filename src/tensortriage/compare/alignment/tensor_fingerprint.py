"""Tensors recognised by their values: which tensor of an engine, under whatever name, is which tensor of the model.

Engines rename fused tensors, transpose them as their kernels require, and round. The values stay: a fingerprint keeps
some random projections of them, which differ between two tensors by as much as the tensors do (`sketch`). One set is
taken in memory order and survives reshaping; one treats all axes alike and survives transposing; the sorted values
survive any reordering. All are taken of the values squashed to (-1, 1) around a typical magnitude, so that a factor is
lost, and a few huge elements do not hide the others.

A match is given only when no other tensor comes close: the tensor must be several times nearer than the next one, by
a margin that chance estimates of the distances exceed with the confidence asked for, and nearest in both directions.
"""

import math

import numpy as np

from tensortriage.compare.metrics.random_projection import project_rows, project_symmetric
from tensortriage.errors import DataError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

FEWEST_RECOGNISED = 32
"""Elements below which a tensor is too small to be recognised: as many as there are projections."""

_FEWEST_DISTINCT = 8
"""Elements other than the commonest value below which a tensor is as good as constant."""

_NEARLY_CONSTANT = 1e-3
"""Range as a share of the largest magnitude up to which a tensor counts as constant, too."""

PROJECTIONS = 32
"""Projections of each kind; the relative standard deviation of a distance made from them is ``1 / sqrt(64)``."""

QUANTILES = 64
"""Sorted values that are kept."""


@frozen_dataclass
class Fingerprint:
    """A tensor in about 130 numbers; JSON-able.

    Attributes:
        rms: Root mean square of its finite elements.
        information: Whether it can be recognised at all: at least `FEWEST_RECOGNISED` elements, not constant, not of a
            handful of values in a handful of places, not mostly NaN or Inf.
        in_order: Projections in memory order.
        symmetric: Projections that treat all axes alike.
        sorted_values: Evenly spaced quantiles of the squashed values.
    """

    shape: tuple[int, ...]
    rms: float
    information: bool
    in_order: tuple[float, ...] = ()
    symmetric: tuple[float, ...] = ()
    sorted_values: tuple[float, ...] = ()

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def fingerprint(array: np.ndarray) -> Fingerprint:
    """Take the fingerprint of a tensor.

    Costs a sort of the tensor and two passes over a float32 copy.

    Args:
        array: Any real ONNX element type, any layout; non-finite elements count as zero.

    Raises:
        DataError: For strings and complex numbers (``dtype-mismatch``).
        UsageError: For a numpy type without ONNX counterpart (``dtype-unknown``).

    Example:
        >>> fingerprint(np.zeros(100)).information
        False
    """
    array = np.asarray(array)
    if DType.from_numpy(array.dtype) is DType.STRING or array.dtype.kind == "c":
        raise DataError(
            f"a tensor of type {array.dtype} has no fingerprint", slug="dtype-mismatch", cure="leave it out"
        )
    with np.errstate(all="ignore"):
        values = np.ascontiguousarray(array, np.float64 if array.dtype.kind in "iuf" and array.itemsize > 4 else None)
        values = values if values.dtype == np.float64 else values.astype(np.float32)
    broken = ~np.isfinite(values)
    if broken.any():
        values = np.where(broken, 0.0, values).astype(values.dtype)
    squashed, rms = _squashed(values)
    if squashed is None or 2 * np.count_nonzero(broken) > values.size:
        return Fingerprint(array.shape, rms, False)
    flat = squashed.reshape(1, -1)
    norm = math.sqrt(float(np.vdot(flat, flat)))
    ordered = np.sort(flat[0])
    places = ((np.arange(QUANTILES) + 0.5) * (ordered.size / QUANTILES)).astype(np.int64)
    return Fingerprint(
        array.shape,
        rms,
        True,
        _rounded(project_rows(flat, PROJECTIONS)[0] / norm),
        _rounded(project_symmetric(squashed, PROJECTIONS) / norm),
        _rounded(ordered[places] * math.sqrt(ordered.size) / norm),
    )


def _rounded(numbers: np.ndarray) -> tuple[float, ...]:
    """Return numbers with seven digits, more than their precision."""
    return tuple(float(f"{number:.7g}") for number in numbers.tolist())


def _squashed(values: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Return ``x / (|x| + s)`` in float32, None for too little in x, and the RMS of x.

    s is the geometric mean of median and mean of the non-zero magnitudes: the median alone would make the numbers that
    fp16 flushes to zero matter, the mean alone none but the constant of an attention mask.
    """
    if values.size == 0:
        return None, 0.0
    sizes = np.abs(values)
    largest = float(sizes.max())
    if largest == 0.0:
        return None, 0.0
    scaled = sizes / largest  # So that squares stay in range.
    rms = largest * math.sqrt(float(np.vdot(scaled, scaled)) / values.size)
    if values.size < FEWEST_RECOGNISED or _is_poor(values):
        return None, rms
    positive = scaled[scaled > 0.0]
    scale = math.sqrt(float(np.median(positive)) * float(positive.mean(dtype=np.float64)))
    signed = np.copysign(scaled, values)
    return np.asarray(signed / (scaled + scale), np.float32), rms


def _is_poor(values: np.ndarray) -> bool:
    """Return whether a tensor has too little information to distinguish it: constant, or but for few elements."""
    flat = values.reshape(-1)
    common = float(np.median(flat[:: -(-flat.size // 4096)]))
    return int(np.count_nonzero(flat != common)) < _FEWEST_DISTINCT or bool(
        np.ptp(flat) <= _NEARLY_CONSTANT * np.abs(flat).max()
    )

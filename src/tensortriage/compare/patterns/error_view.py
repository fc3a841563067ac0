"""A wrong tensor laid out for examination: both sides in float64, the error, and which elements are wrong at all.

Wrong elements must be separated from the noise that every engine makes, in one tensor. Noise is proportional to an
element (rounding of the result), or to the product of its slices' magnitudes on each axis (sums of products: the error
of element ij of A @ B goes with |row i| |column j|), or the same everywhere. An element is wrong when it is far outside
all three laws, fitted to the tensor's own typical error; an outlier channel of a transformer is not, although it holds
most of the error.
"""

import dataclasses
import functools
import math

import numpy as np

from tensortriage.compare.patterns.finding import energy, support
from tensortriage.values.dtype import DType

_TYPICAL_ERRORS = ((0.5, 16.0), (0.1, 64.0))
"""(quantile of the error that counts as typical, how many times that is wrong). For normal noise 11 and 8 standard
deviations. The second, for faults that cover more than half of the elements, is tried when the first finds nothing."""

_WRONG_OVER_FLOOR = 8.0
"""How many floors, or double spacings of the format, an element may be off and not be wrong, whatever others are."""

MOST_ELEMENTS = 1 << 20
"""Elements that are looked at. Of larger tensors a box: all of the inner axes, and of the outer ones half of the
indices evenly spaced and half those with the largest errors."""

_QUANTILE_ELEMENTS = 1 << 16
_PRIOR_ELEMENTS = 4


@dataclasses.dataclass(frozen=True)
class Specimen:
    """A pair of tensors, or a box of them.

    Attributes:
        reference: float64.
        target: Same shape.
        unequal: Where the two differ, NaN being equal to NaN.
        whole_reference: The reference as given.
        whole_target: The target as given, in the shape of the reference.
        indices: For every axis, which indices the box has.
        floor: Relative RMS error that a healthy engine may have here.
        text: Whether the elements are strings, replaced by numbers.
    """

    reference: np.ndarray
    target: np.ndarray
    unequal: np.ndarray
    whole_reference: np.ndarray
    whole_target: np.ndarray
    indices: tuple[np.ndarray, ...]
    floor: float
    text: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the box."""
        return self.reference.shape

    def is_whole(self, axis: int) -> bool:
        """Return whether the box has every index of an axis."""
        return bool(self.indices[axis].size == self.whole_reference.shape[axis])

    @functools.cached_property
    def finite(self) -> np.ndarray:
        """Where both sides are finite."""
        return np.asarray(np.isfinite(self.reference) & np.isfinite(self.target))

    @functools.cached_property
    def all_finite(self) -> bool:
        """Whether every element is finite on both sides."""
        return bool(self.finite.all())

    @functools.cached_property
    def broken(self) -> np.ndarray:
        """Where the target is not finite and the reference is not the same."""
        return np.asarray(~np.isfinite(self.target) & self.unequal)

    @functools.cached_property
    def error(self) -> np.ndarray:
        """Target minus reference; 0 where one is not finite."""
        with np.errstate(all="ignore"):
            difference = np.asarray(self.target - self.reference)
        if not self.all_finite:
            difference[~self.finite] = 0.0
        if not self.whole_floats:  # 64-bit integers above 2**53 may differ where their doubles do not.
            difference[self.unequal & (difference == 0.0) & self.finite] = 1.0
        return difference

    @functools.cached_property
    def error_energy(self) -> float:
        """Sum of squared errors; inf or NaN if the squares of doubles overflow."""
        with np.errstate(all="ignore"):
            return energy(self.error)

    @functools.cached_property
    def whole_floats(self) -> bool:
        """Whether the tensors hold real floating-point numbers."""
        kind = DType.from_numpy(self.whole_reference.dtype)
        return kind.is_float

    @functools.cached_property
    def rms(self) -> float:
        """Root mean square of the finite reference."""
        values = self.reference[self.finite]
        with np.errstate(all="ignore"):
            return math.sqrt(energy(values) / values.size) if values.size else 0.0

    def support(self, candidate: np.ndarray, *, parameters: int = 0, where: np.ndarray | None = None) -> float:
        """Return the share of the squared error that is gone when the target is compared with a candidate instead.

        Args:
            candidate: Possible contents of the target; its shape is the box's, or broadcasts to it.
            parameters: Numbers that were fitted for it.
            where: The elements that it applies to; the errors of the others remain. None for all.

        Returns:
            0 when the candidate is not convincing (`finding.support`).
        """
        with np.errstate(all="ignore"):
            rest, error = self.target - candidate, self.error
        if where is not None or not self.all_finite:
            chosen = self.finite if where is None else self.finite & where
            rest, error = rest[chosen], error[chosen]
        share = support(error, rest, parameters=parameters)
        return share * energy(error) / self.error_energy if share else 0.0

    @functools.cached_property
    def wrong(self) -> np.ndarray:
        """Elements outside the tensor's own noise that hold most of the error; none when all are about equally off."""
        sizes, reference = np.abs(self.error), np.abs(self.reference)
        nothing = np.zeros(self.shape, np.bool_)
        if not self.error_energy > 0.0 or not math.isfinite(self.error_energy):
            return nothing
        scale = self._separable_scale()
        known = np.flatnonzero((self.finite & ((reference > 0) | (sizes > 0))).reshape(-1))
        known = known[:: -(-known.size // _QUANTILE_ELEMENTS)]
        with np.errstate(all="ignore"):
            ratios = [np.nan_to_num(sizes.flat[known] / law.flat[known], nan=0.0) for law in (reference, scale)]
            least = _WRONG_OVER_FLOOR * max(self.floor, 2.0 * self.epsilon)
            for share, factor in _TYPICAL_ERRORS:
                own, product = (max(factor * _quantile(ratio, share), least) for ratio in ratios)
                limit = np.maximum(
                    np.maximum(own * reference, product * scale), factor * _quantile(sizes.flat[known], share)
                )
                found = sizes > np.nan_to_num(limit, nan=math.inf)
                if energy(self.error[found]) >= 0.5 * self.error_energy:
                    return np.asarray(found)
        return nothing

    def _separable_scale(self) -> np.ndarray:
        """Return, for every element, the product of its slices' root mean squares over that of the tensor.

        Slices of few elements are assumed to be like the others: the median one counts as so many of their elements.
        """
        square = np.square(np.where(self.finite, self.reference, 0.0))
        mean = self.rms * self.rms
        scale = np.full((1,) * square.ndim, self.rms)
        for axis, size in enumerate(square.shape if mean > 0.0 else ()):
            others = tuple(other for other in range(square.ndim) if other != axis)
            count = square.size // size
            sums = square.sum(axis=others, keepdims=True)
            slices = (sums + _PRIOR_ELEMENTS * float(np.median(sums)) / count) / (count + _PRIOR_ELEMENTS)
            scale = scale * np.sqrt(slices / mean)
        return np.broadcast_to(scale, square.shape)

    @functools.cached_property
    def epsilon(self) -> float:
        """Spacing of 1 in the coarser of both formats; 0 for integers."""
        kinds = (DType.from_numpy(self.whole_reference.dtype), DType.from_numpy(self.whole_target.dtype))
        return max((float(kind.finfo.eps) for kind in kinds if kind.is_float), default=0.0)


def lay_out(reference: np.ndarray, target: np.ndarray, *, floor: float) -> Specimen:
    """Prepare a pair of one shape; complex numbers get a last axis of real and imaginary part.

    Args:
        reference: Any ONNX element type, any layout.
        target: Same shape.
        floor: Relative RMS error that a healthy engine may have here; 0 when unknown.
    """
    text = DType.from_numpy(reference.dtype) is DType.STRING
    if text:
        reference, target = _numbered(reference, target)
    if "c" in (reference.dtype.kind, target.dtype.kind):
        reference, target = _parts(reference), _parts(target)
    reference, target = _native(reference), _native(target)
    indices: list[np.ndarray] = [np.arange(size) for size in reference.shape]
    box_reference, box_target = reference, target
    for axis, size in enumerate(reference.shape):
        if box_reference.size <= MOST_ELEMENTS:
            break
        share = MOST_ELEMENTS / box_reference.size
        indices[axis] = chosen = _chosen(box_reference, box_target, axis, max(4, int(size * share)))
        box_reference, box_target = box_reference.take(chosen, axis), box_target.take(chosen, axis)
    with np.errstate(all="ignore"):
        ours, theirs = box_reference.astype(np.float64), box_target.astype(np.float64)
        unequal = box_reference != box_target if box_reference.dtype == box_target.dtype else ours != theirs
    unequal = np.asarray(unequal, np.bool_) & ~(np.isnan(ours) & np.isnan(theirs))
    return Specimen(ours, theirs, unequal, reference, target, tuple(indices), floor, text)


def same_box(specimen: Specimen, other: np.ndarray) -> np.ndarray:
    """Return the elements of another tensor of the whole shape that are in a specimen's box, in float64.

    Args:
        specimen: A box of a tensor.
        other: Real, in the shape of the whole tensor.

    Returns:
        In the shape of the box.
    """
    box = _native(other)
    for axis, indices in enumerate(specimen.indices):
        if not specimen.is_whole(axis):
            box = box.take(indices, axis)
    with np.errstate(all="ignore"):
        return np.asarray(box.astype(np.float64))


def _quantile(values: np.ndarray, share: float) -> float:
    return float(np.quantile(values, share, method="lower"))


def _chosen(reference: np.ndarray, target: np.ndarray, axis: int, wanted: int) -> np.ndarray:
    """Return indices of an axis: half of them evenly spaced with both ends, half those with the largest errors."""
    size = reference.shape[axis]
    if wanted >= size:
        return np.arange(size)
    even = np.unique(np.linspace(0, size - 1, -(-wanted // 2)).round().astype(np.int64))
    worst = np.argsort(-_error_of_slices(reference, target, axis), kind="stable")[: wanted // 2]
    return np.union1d(even, worst)


def _error_of_slices(reference: np.ndarray, target: np.ndarray, axis: int) -> np.ndarray:
    """Return the squared error in every slice of an axis, in one blocked pass; a non-finite one counts as huge."""
    size = reference.shape[axis]
    step = max(1, size * (1 << 18) // reference.size)
    found = np.zeros(size)
    with np.errstate(all="ignore"):
        for begin in range(0, size, step):
            part = (slice(None),) * axis + (slice(begin, begin + step),)
            ours, theirs = (np.moveaxis(side[part], axis, 0) for side in (reference, target))
            rows = ours.shape[0]
            square = np.square(theirs.astype(np.float64) - ours.astype(np.float64)).reshape(rows, -1)
            found[begin : begin + rows] = np.nan_to_num(square, nan=1e300, posinf=1e300).sum(axis=1)
    return found


def _parts(array: np.ndarray) -> np.ndarray:
    """Return real and imaginary parts along a new last axis, of a real array too."""
    if array.dtype.kind != "c":
        return np.stack([array, np.zeros_like(array)], axis=-1)
    return np.stack([array.real, array.imag], axis=-1)


def _native(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _numbered(reference: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace strings by numbers, equal ones by equal numbers."""
    known: dict[str, int] = {}

    def numbers(array: np.ndarray) -> np.ndarray:
        items = (str(item) for item in array.reshape(-1).tolist())
        return np.array([known.setdefault(item, len(known)) for item in items], np.int64).reshape(array.shape)

    return numbers(reference), numbers(target)

"""Errors element by element, counted against an absolute and a relative limit, as Polygraphy's ``simple`` counts them.

An element is within when its absolute *or* its relative error is (not their sum, as in numpy.allclose); a NaN error is
outside. The arithmetic follows polygraphy/comparator/compare.py (0.53.6), ``SimpleCompareFunc``: float16 widened to
float32, relative errors to the magnitude of the reference, whose exact zeros count as 2.2e-16 in floating types and
make the relative error infinite or NaN in others. It departs where that code is wrong: integers do not overflow, and
types that it cannot read (bfloat16, float8, int4, strings) are compared by value.
"""

from collections.abc import Iterator

import numpy as np

from tensortriage.compare.metrics import block_metrics, blocks, dtype_pairs, finite_block
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType


@frozen_dataclass
class Errors:
    """Errors of one pair under an absolute and a relative limit; NaN errors make the statistics NaN.

    Attributes:
        outside: Elements that exceed both limits.
        ratio: Largest min(absolute / atol, relative / rtol) of any element; above 1 when any is outside.
        max_abs: Largest absolute error.
        mean_abs: Mean absolute error.
        max_rel: Largest relative error.
        mean_rel: Mean relative error.
    """

    outside: int
    ratio: float
    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float


def errors_against(
    reference: np.ndarray, target: np.ndarray, *, atol: float, rtol: float, infinities_equal: bool = False
) -> Errors:
    """Measure a pair of one shape against both limits, block by block.

    Args:
        reference: Tensor that relative errors refer to.
        target: Tensor under suspicion.
        atol: Absolute limit.
        rtol: Relative limit.
        infinities_equal: Whether equal infinities have an error of 0 rather than NaN.
    """
    outside, ratio = 0, 0.0
    maxima, sums = np.zeros(2), np.zeros(2)
    with np.errstate(all="ignore"):
        for absolute, relative in element_errors(reference, target, infinities_equal=infinities_equal):
            exceeding = ~(absolute <= atol) & ~(relative <= rtol)
            outside += int(np.count_nonzero(exceeding))
            ratios = np.fmin(np.divide(absolute, atol, dtype=np.float64), np.divide(relative, rtol, dtype=np.float64))
            ratios[exceeding & np.isnan(ratios)] = np.inf
            ratio = max(ratio, float(np.fmax.reduce(ratios, initial=0.0)))
            maxima = np.maximum(maxima, [absolute.max(), relative.max()])  # Unlike max(), keeps a NaN.
            sums += [absolute.sum(dtype=np.float64), relative.sum(dtype=np.float64)]
    means = sums / max(reference.size, 1)
    return Errors(outside, ratio, float(maxima[0]), float(means[0]), float(maxima[1]), float(means[1]))


def quantiles_of(
    reference: np.ndarray, target: np.ndarray, *, share: float | None, infinities_equal: bool = False
) -> tuple[float, float]:
    """Return a quantile of the absolute and of the relative errors; NaN when any error is.

    Unlike everything else here this needs both error arrays at once.

    Args:
        reference: Tensor that relative errors refer to.
        target: Tensor under suspicion.
        share: Quantile, interpolated linearly; None for the median, the mean of the two middle errors.
        infinities_equal: Whether equal infinities have an error of 0 rather than NaN.
    """
    with np.errstate(all="ignore"):
        pairs = list(element_errors(reference, target, infinities_equal=infinities_equal))
        both = [np.concatenate(side) for side in zip(*pairs, strict=True)]
        # The two differ even at 0.5, where interpolation makes a NaN of an infinite neighbour.
        values = [np.median(side) if share is None else np.quantile(side, share) for side in both]
    return float(values[0]), float(values[1])


def element_errors(
    reference: np.ndarray, target: np.ndarray, *, infinities_equal: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield flat blocks of (absolute, relative) errors in C order; they are floating-point arrays.

    Args:
        reference: Array of any element type and layout.
        target: Another of its shape.
        infinities_equal: Whether infinities of one sign differ by 0; else by NaN.
    """
    if reference.size == 0:
        return
    flat = blocks.is_flat(reference) and blocks.is_flat(target)
    shape = reference.shape
    if flat:
        reference, target = reference.reshape(-1), target.reshape(-1)
    for _, index in blocks.cut(shape, flat=flat):
        yield _block_errors(blocks.take(reference, index), blocks.take(target, index), infinities_equal)


def _block_errors(reference: np.ndarray, target: np.ndarray, infinities_equal: bool) -> tuple[np.ndarray, np.ndarray]:
    kind = DType.from_numpy(reference.dtype)
    if kind is DType.STRING:
        absolute = block_metrics.text_errors(reference, target)
        return absolute, absolute / np.zeros_like(absolute)
    if reference.dtype.kind == "c" or target.dtype.kind == "c":
        one, other = reference.astype(np.complex128), target.astype(np.complex128)
    else:
        one, other = (dtype_pairs.in_float(side) for side in (reference, target))
    is_wide = {np.dtype(np.int64), np.dtype(np.uint64)} & {reference.dtype, target.dtype}
    absolute = block_metrics.exact_errors(reference, target) if is_wide else np.abs(other - one)
    if infinities_equal:
        absolute = np.where(np.isinf(other) & (other == one), absolute.dtype.type(0), absolute)
    magnitudes = np.abs(one)
    if kind.is_float or reference.dtype.kind == "c":
        magnitudes[magnitudes == 0] = finite_block.ZERO_REFERENCE
    return absolute, absolute / magnitudes

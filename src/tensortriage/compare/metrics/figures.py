"""Figures of a pair of tensors, out of totals over its elements and a sorted sample of its errors."""

import math

import numpy as np

from tensortriage.compare.metrics.block_totals import BlockTotals


def sorted_sample(tally: BlockTotals) -> np.ndarray:
    """Return the sampled errors in ascending order."""
    sample = np.concatenate([*tally.samples, np.zeros(tally.zero_samples, np.float32)])
    sample.sort()
    return sample


def quantile(sample: np.ndarray, share: float) -> float:
    """Return a quantile by linear interpolation as numpy.quantile does, without its cost."""
    if sample.size == 0:
        return math.nan
    place = share * (sample.size - 1)
    low = int(place)
    high = min(low + 1, sample.size - 1)
    return float(sample[low]) + (float(sample[high]) - float(sample[low])) * (place - low)


def cosine(tally: BlockTotals) -> float:
    """Return the cosine similarity; NaN where the product of the lengths is not finite."""
    if tally.nonzero_errors == 0:
        return 1.0
    reference, target = math.sqrt(tally.reference_square_sum), math.sqrt(tally.target_square_sum)
    if reference == 0 or target == 0:
        return 1.0 if reference == target else 0.0
    if not math.isfinite(reference * target):
        return math.nan
    if not tally.error_square_sum < 0.01 * tally.reference_square_sum:
        return max(-1.0, min(1.0, tally.product_sum / reference / target))
    # |t - r|^2 = |r|^2 + |t|^2 - 2 r.t, rearranged: for nearly parallel vectors this keeps the digits of 1 - cosine,
    # which the direct formula loses to cancellation.
    excess = tally.error_square_sum - (reference - target) ** 2
    return max(-1.0, min(1.0, 1.0 - excess / (2 * reference * target)))


def ratio(error: float, reference: float) -> float:
    """Return an error relative to the reference's magnitude; inf of nothing."""
    if error == 0:
        return 0.0
    return error / reference if reference != 0 else math.inf


def decibels(signal: float, noise: float) -> float:
    """Return the signal-to-noise ratio of two RMS magnitudes in dB; inf without noise."""
    if noise == 0:
        return math.inf
    share = signal / noise
    return 20 * math.log10(share) if share != 0 else -math.inf


def largest_of(largest: float, count: int) -> float:
    """Return the largest magnitude of finite elements; where totals have none of these, NaN, and 0 of nothing."""
    if largest >= 0:
        return largest
    return math.nan if count else 0.0


def histogram(sample: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Count sorted errors between powers of two."""
    errors = sample[sample.searchsorted(0.0, side="right") : sample.searchsorted(np.inf)]
    if errors.size == 0:
        return ()
    lowest, highest = (math.frexp(float(error))[1] - 1 for error in (errors[0], errors[-1]))
    exponents = range(lowest, highest + 1)
    edges = [*errors.searchsorted([2.0**exponent for exponent in exponents]).tolist(), errors.size]
    return tuple((e, end - begin) for e, begin, end in zip(exponents, edges, edges[1:], strict=False) if end > begin)

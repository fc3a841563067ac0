"""The largest distance in representable numbers within a block, mostly without computing that of every element.

Let a format have m bits of mantissa after the point. Around x its numbers are at least ``|x| * 2**-(m + 1)`` apart
(subnormal ones further), so that with a relative error of at most 1/2 an element is at most ``-ln(1 - relative) *
2**(m + 1)`` numbers from its reference. With opposite signs r and t are ``b(|r|) + b(|t|)`` apart, b being the bit
pattern, and ``b(x) <= (log2 x + bias) * 2**m`` for normal x, since the mantissa f of x = 2**e (1 + f) is at most
log2(1 + f). So a threshold on the relative error leaves the few runs of elements that can hold one further than what is
known already, and a threshold on r * t shows, mostly, that they do not. Where it does not, they are computed.
"""

import functools
import math
from typing import Any

import numpy as np

from tensortriage.compare.metrics import ulp
from tensortriage.compare.metrics.blocks import SCRATCH
from tensortriage.compare.metrics.dtype_pairs import F32, F64, Lane
from tensortriage.compare.metrics.peaks import few_reaching, gathered
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

_INTEGER: dict[np.dtype[Any], np.dtype[Any]] = {F32: np.dtype(np.int32), F64: np.dtype(np.int64)}
_SMALLEST_PRODUCT = {F32: 2.0**-100, F64: 2.0**-1000}
_LARGEST_EXPONENT = 1023  # of float64: greater products could not be told from each other

_MARGIN = 1.01
"""Covers the rounding of relative errors and of products."""
_SLACK = 2.0
"""Covers that both sides may be rounded to the unit's format first."""


@frozen_dataclass
class Block:
    """A block of finite values, with the known bounds.

    Attributes:
        way: Lane of the two element types.
        reference_raw: Values as they are stored.
        target_raw: Likewise.
        reference: The reference in the type of computing.
        target: Likewise.
        stack: Rows of relative errors (overwritten), errors, and magnitudes of the reference.
        relative_peaks: Peaks of the relative errors, places where the reference is zero left out.
        relative_max: Their maximum.
        zero_error_max: Largest error where the reference is zero.
        largest: Largest magnitude on both sides, or more.
    """

    way: Lane
    reference_raw: np.ndarray
    target_raw: np.ndarray
    reference: np.ndarray
    target: np.ndarray
    stack: np.ndarray
    relative_peaks: np.ndarray
    relative_max: float
    zero_error_max: float
    largest: float


def distance(block: Block, known: float) -> float:
    """Return the largest distance of a block in its lane's unit, or less when that is not above ``known``."""
    unit = block.way.ulp
    assert unit is not None
    if block.relative_max == 0.0 and block.zero_error_max == 0.0:
        return known
    if unit.itemsize == 1 or block.way.work != block.reference.dtype:
        return ulp.max_distance(block.reference_raw, block.target_raw, unit)
    if block.zero_error_max > 0.0:  # Relative errors say nothing there, but the largest error is the farthest.
        at_zero = np.array([0.0, block.zero_error_max], block.reference.dtype)
        known = max(known, ulp.max_distance(at_zero[:1], at_zero[1:], unit))
    numbers = _MARGIN * 2.0 * _format(unit)[0]
    enough = min(-math.expm1((_SLACK - known) / numbers), 0.5)
    if block.relative_max <= enough:
        return known
    least = max(min(block.relative_max, 0.5) / 8, enough)
    runs = few_reaching(block.relative_peaks, least)
    if runs is not None:
        sides = gathered(block.reference, runs), gathered(block.target, runs)
        found = known if _none_beyond(block, sides, known, unit) else max(known, ulp.max_distance(*sides, unit))
        if found >= _farthest(least, numbers):  # What all the others are at most.
            return found
    if _none_beyond(block, _of_opposite_signs(block), known, unit):
        return known
    return _of_all(block)


def _farthest(relative: float, numbers: float) -> float:
    """Return the largest distance of two numbers of one sign, given their relative error of up to one half.

    Near x there are fewer than ``numbers / x`` numbers per unit, ``numbers`` being those between 1 and 4, so between t
    and r lie fewer than ``numbers * |ln(t / r)|``, and |ln(t / r)| <= -ln(1 - |t - r| / |r|).
    """
    return -numbers * math.log1p(-relative) + _SLACK


def _of_opposite_signs(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return all elements whose signs are opposite, |t - r| = |t| + |r| >= |r|, and others."""
    runs = few_reaching(block.relative_peaks, 1.0 / _MARGIN)
    if runs is None:
        return block.reference, block.target
    return gathered(block.reference, runs), gathered(block.target, runs)


def _none_beyond(block: Block, sides: tuple[np.ndarray, np.ndarray], known: float, unit: np.dtype[Any]) -> bool:
    """Return whether the products of elements of opposite signs show that none exceeds the known distance."""
    numbers, bias = _format(unit)
    if not block.largest > 0.0 or known < numbers * (max(math.log2(block.largest) + bias, 1.0) + 1.0) + _SLACK:
        return False  # Elements of the same sign, or with a subnormal one, may be further.
    exponent = (known - _SLACK) / numbers - 2 * bias
    if exponent >= _LARGEST_EXPONENT:
        return False
    threshold = 2.0**exponent / _MARGIN
    if not threshold > _SMALLEST_PRODUCT[sides[0].dtype]:
        return False
    products = np.multiply(*sides, out=block.stack[0][: sides[0].size])
    return bool(np.minimum.reduce(products, initial=0.0) >= -threshold)


def _of_all(block: Block) -> float:
    way, reference, target = block.way, block.reference, block.target
    if way.ulp_shift is None:
        assert way.ulp is not None
        return ulp.max_distance(block.reference_raw, block.target_raw, way.ulp)
    integer = _INTEGER[reference.dtype]
    scratch, theirs = SCRATCH.rows("integers", integer, 2, reference.size)
    np.abs(target, out=theirs.view(target.dtype))
    signs = SCRATCH.get("signs", integer, reference.size)
    np.bitwise_xor(reference.view(integer), target.view(integer), out=signs)
    return ulp.distance_of_bits(block.stack[2].view(integer), theirs, signs, scratch) / 2.0**way.ulp_shift


@functools.cache
def _format(unit: np.dtype[Any]) -> tuple[float, float]:
    """Return 2 to the number of mantissa bits, and the exponent bias."""
    finfo = DType.from_numpy(unit).finfo
    return 2.0**finfo.nmant, 1.0 - round(math.log2(float(finfo.smallest_normal)))

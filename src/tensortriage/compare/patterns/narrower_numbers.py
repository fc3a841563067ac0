"""Whole numbers that went through a type that cannot hold them: wrapped, cut off, or rounded to few bits.

Engines without 64-bit integers compute in 32, converters narrow indices, exporters go through floating point. The
result is then the reference's, converted, to the last bit.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.values.dtype import DType

_INTEGERS = (DType.INT32, DType.UINT32, DType.INT16, DType.UINT16, DType.INT8, DType.UINT8)
_FLOATS = (DType.DOUBLE, DType.FLOAT, DType.FLOAT16, DType.BFLOAT16)

_BITS_OF_LUCK = 20
"""Bits that have to agree in elements that changed: one in a million is no chance."""


def through_another_type(specimen: Specimen) -> PatternFinding | None:
    """Is the target the reference converted to another type and back, to the last bit?"""
    reference, target = specimen.whole_reference, specimen.whole_target
    if specimen.text or reference.dtype.kind not in "iuf" or reference.dtype != target.dtype:
        return None
    if reference.dtype.kind == "f" and not _is_whole(reference):
        return None
    with np.errstate(all="ignore"):
        unequal = reference != target
        wrong, seen = reference[unequal], target[unequal]
        for dtype, bits, words, effect, candidate in _conversions(wrong):
            changed = np.count_nonzero(candidate != wrong)
            if changed * bits < _BITS_OF_LUCK or not np.array_equal(candidate, seen):
                continue
            kept = reference[~unequal]
            if any(left.size and not np.array_equal(left, kept) for *_, w, _, left in _conversions(kept) if w == words):
                continue  # others that should have changed did not
            facts = {"type": dtype.label, "effect": effect, "elements": int(changed)}
            return PatternFinding("through-type", f"the target is the reference {words}, to the last bit", 1.0, facts)
    return None


def operand_beyond(operands: Mapping[str, np.ndarray], result: np.ndarray) -> PatternFinding | None:
    """Does a wrong op on whole numbers read one that 32 bits do not hold? Then it was changed before the op began.

    Args:
        operands: By name.
        result: The right result.
    """
    for name, array in operands.items():
        if result.dtype.kind not in "iu" or array.dtype.kind not in "iu" or not array.size:
            continue
        largest = max(int(array.max()), -int(array.min()) - 1)
        if largest > np.iinfo(np.uint32).max or (largest > np.iinfo(np.int32).max and array.dtype.kind == "i"):
            words = f"its operand '{name}' holds {largest:,}, which int32 does not"
            facts = {"effect": f"reads '{name}' of {largest:,} as if int32 held it", "largest": largest}
            return PatternFinding("through-type", words, 1.0, facts)
    return None


def _conversions(values: np.ndarray) -> Iterator[tuple[DType, int, str, str, np.ndarray]]:
    """Yield narrower types: dtype, bits of a value, effect on values, the op's behaviour, and resulting values."""
    if not values.size:
        return
    own = values.dtype
    size = own.itemsize if own.kind in "iu" else 8
    for dtype in _INTEGERS:
        info = np.iinfo(dtype.numpy)
        if dtype.numpy.itemsize >= size and own.kind in "iu":
            continue
        inside = (values >= info.min) & (values <= info.max)
        if inside.all():
            continue
        power = int(math.log2(int(info.max) + 1))
        whole = values.astype(np.int64) if own.kind == "f" else values
        ways = {
            f"as {dtype.label} holds it, which wraps at 2**{power}": (
                f"wraps at 2**{power}, as {dtype.label} does",
                whole.astype(dtype.numpy),
            ),
            f"cut off at the ends of {dtype.label}": (
                f"is cut off at the ends of {dtype.label}",
                np.clip(values, info.min, info.max),
            ),
            f"where {dtype.label} holds it, and {info.min} elsewhere, as x86 converts what it cannot": (
                f"converts to {dtype.label}, which cannot hold all values",
                np.where(inside, values, np.asarray(info.min, dtype.numpy)),
            ),
        }
        for words, (effect, left) in ways.items():
            yield dtype, dtype.bits, words, effect, left.astype(own)
    for dtype in _FLOATS:
        if dtype.numpy == own or (own.kind == "f" and dtype.numpy.itemsize >= own.itemsize):
            continue
        label = f"2**{int(dtype.finfo.nmant) + 1}"
        words = f"rounded to {dtype.label}, which holds whole numbers up to {label} only"
        effect = f"goes through {dtype.label}, exact up to {label} only"
        yield dtype, 10, words, effect, values.astype(dtype.numpy).astype(own)


def _is_whole(values: np.ndarray) -> bool:
    """Return whether floating-point numbers are whole, finite and partly beyond the exact integers of float32."""
    with np.errstate(all="ignore"):
        return bool(
            np.isfinite(values).all()
            and np.abs(values).max(initial=0) > 2**24
            and np.array_equal(values, np.rint(values))
        )

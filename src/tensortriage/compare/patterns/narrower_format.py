"""Errors that are the number format's: is every element of the target a number of a narrower format than the tensor's?

Rounding to nearest leaves at most half a spacing of the format. When all errors are within that, the target is the
reference rounded once, and nothing else about the error is worth telling. When they are larger, the tensor was still
computed, or stored on the way, in that format.
"""

import functools
import math
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage.compare.patterns.error_view import Specimen
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude

_EVEN_LEVELS = 0.02
"""In steps: how far evenly spaced values may be off their places; float32 moves 256 of them by less."""

_HALF_A_LEVEL = 0.505
"""In steps: how far rounding to such values moves, and a hundredth of that for the rounding of the values."""

_FEWEST_VALUES = 8
"""Number of distinct values needed to report that all are numbers of a format: fewer are so by chance."""

_HALF_A_SPACING = 0.5001
"""In spacings: how far rounding to nearest moves, and the rounding of that quotient."""

_TF32_BITS = 13
"""Bits of a float32 mantissa that TF32 has not."""

_FEWEST_BITS_FIRST = ("float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "TF32")
"""Within the range of float16 every bfloat16 number is a float16 number too: the narrower format is the news."""

_MOST_LEVELS = 256


def narrowed(specimen: Specimen) -> PatternFinding | None:
    """Does the target hold only numbers of a narrower format, and is it the reference rounded to that?"""
    if not specimen.whole_floats or not specimen.error_energy > 0.0:
        return None
    unequal = specimen.error != 0.0
    reference, target = specimen.reference[unequal], specimen.target[unequal]
    finite = specimen.target[specimen.finite]
    fitting = {}
    for label, made_of, spacing in _candidates():
        if made_of(finite) and (spacings := np.abs(target - reference) / spacing(reference)).max() <= _HALF_A_SPACING:
            fitting[label] = float(spacings.max())
    if fitting:
        # Within the range of float16, TF32 has the same numbers; any other format that fits as well is a finer one.
        both = specimen.whole_target.dtype == np.float32 and {"float16", "TF32"} <= set(fitting)
        label = "float16 or TF32" if both else next(iter(fitting))
        facts = {"format": label, "largest_error_in_spacings": next(iter(fitting.values()))}
        return PatternFinding(
            "rounding", f"the target is the reference rounded to {label}, and nothing else", 1.0, facts
        )
    if DType.from_numpy(specimen.whole_target.dtype) != DType.from_numpy(specimen.whole_reference.dtype):
        return None
    if np.unique(finite[: 1 << 12]).size < _FEWEST_VALUES:
        return None
    for label, made_of, spacing in sorted(_candidates(), key=lambda item: _FEWEST_BITS_FIRST.index(item[0])):
        if made_of(finite) and not made_of(reference):
            largest = float((np.abs(target - reference) / spacing(reference)).max())
            facts = {"format": label, "largest_error_in_spacings": largest}
            sentence = (
                f"every value of the target is a {label} number, with errors up to {magnitude(largest, 4)} spacings "
                f"of it: computed or stored in {label}"
            )
            return PatternFinding("narrow-format", sentence, 0.3, facts)
    return None


_Values = Callable[[np.ndarray], np.ndarray]


def _candidates() -> Iterator[tuple[str, Callable[[np.ndarray], bool], _Values]]:
    """Yield (label, whether values are numbers of the format, spacing of its numbers around values), finest first."""
    for kind in (DType.FLOAT16, None, DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2):
        if kind is None:
            yield "TF32", _is_tf32, lambda values: np.ldexp(1.0, np.frexp(values)[1] - 11)
        else:
            yield kind.label, functools.partial(_is_made_of, kind=kind), functools.partial(_spacing, kind=kind)


def _is_made_of(values: np.ndarray, kind: DType) -> bool:
    """Return whether all values are numbers of a format."""
    with np.errstate(all="ignore"):
        parts = (values[:4096], values)
        return all(np.array_equal(part.astype(kind.numpy).astype(np.float64), part) for part in parts)


def _is_tf32(values: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
    return np.array_equal(single, values) and not np.any(single.view(np.uint32) & np.uint32(2**_TF32_BITS - 1))


def _spacing(values: np.ndarray, kind: DType) -> np.ndarray:
    """Return the distance of neighbouring numbers of a format around values."""
    finfo = kind.finfo
    _, exponents = np.frexp(values)  # |value| in [2**(e-1), 2**e)
    smallest = int(math.log2(float(finfo.smallest_normal))) + 1
    return np.asarray(np.ldexp(1.0, np.maximum(exponents, smallest) - 1 - int(finfo.nmant)))


def quantised(specimen: Specimen) -> PatternFinding | None:
    """Does the target have at most 256 evenly spaced values, the reference many more?"""
    finite = specimen.finite
    reference, target = specimen.reference[finite], specimen.target[finite]
    if not specimen.whole_floats or reference.size < _FEWEST_VALUES:
        return None
    if np.unique(target[: 1 << 12]).size > _MOST_LEVELS:
        return None
    levels = np.unique(target)
    if not 3 <= levels.size <= _MOST_LEVELS or np.unique(reference).size < 2 * levels.size:
        return None
    step = float(np.diff(levels).min())
    places = (levels - levels[0]) / step
    if float(np.abs(places - np.rint(places)).max()) > _EVEN_LEVELS or places[-1] > _MOST_LEVELS:
        return None
    largest = float(np.abs(target - reference).max()) / step
    facts = {"levels": int(levels.size), "step": step, "largest_error_in_steps": largest}
    words = f"{levels.size} evenly spaced values, {magnitude(step, 4)} apart"
    if largest <= _HALF_A_LEVEL:
        sentence = f"the target is the reference rounded to {words}: 8-bit quantisation, and nothing else"
        return PatternFinding("rounding", sentence, 1.0, facts)
    sentence = f"the target has only {words}, with errors up to {magnitude(largest, 4)} of them: 8-bit quantisation"
    return PatternFinding("narrow-format", sentence, 0.5, facts)

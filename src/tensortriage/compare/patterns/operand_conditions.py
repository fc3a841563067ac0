"""Is an op wrong exactly where one of its operands has a property: where it is negative, zero, NaN, large?

Kernels forget cases: indices that count from the end, a logarithm of 0, the branch of an activation for negative
numbers, a divisor beyond a range. The wrong elements then are those of one case, and no others.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.compare.patterns.finding import PatternFinding, log10_binomial
from tensortriage.values.text import magnitude

_WRONG_OVER_FLOOR = 10.0
"""An element is wrong from so many times the floor on, as `compare.judgement` has it for whole tensors."""
_MOST = 0.5
"""Share of the elements of a case that are wrong; others are right by chance, as -4 taken for 0 of four is."""
_LOG10_CHANCE = -3.0
"""log10 of the chance below which wrong elements are not those of a case by luck: it says more of a known fault."""


def where_wrong(
    operands: Mapping[str, np.ndarray], reference: np.ndarray, target: np.ndarray, *, floor: float
) -> PatternFinding | None:
    """Return the property of an operand that all wrong elements of an op's result have, and hardly any right one.

    Args:
        operands: By name; those whose axes are neighbouring axes of the result are looked at.
        reference: The right result.
        target: The wrong one, of the same shape.
        floor: Relative RMS error that a healthy engine may have in it.
    """
    wrong = _wrong(reference, target, floor)
    if wrong.shape != reference.shape or not 0 < np.count_nonzero(wrong) < wrong.size:
        return None
    tried = math.log10(6 * len(operands))
    for name, operand in operands.items():
        for axes in _places(operand.shape, reference.shape):
            some = np.asarray(wrong.any(axis=tuple(axis for axis in range(wrong.ndim) if axis not in axes)))
            count = int(np.count_nonzero(some))
            for words, having in _conditions(operand, some):
                more = int(np.count_nonzero(having))
                if (some & ~having).any() or count < _MOST * more:
                    continue
                if tried + log10_binomial(more, count) - log10_binomial(some.size, count) <= _LOG10_CHANCE:
                    rest = "and no right one is" if count == more else f"as are {more - count} right ones"
                    sentence = f"all wrong elements are where its operand '{name}' {words}, {rest}"
                    facts = {"effect": f"goes wrong where '{name}' {words}", "operand": name, "wrong": count}
                    return PatternFinding("operand", sentence, 1.0, facts)
    return None


def _wrong(reference: np.ndarray, target: np.ndarray, floor: float) -> np.ndarray:
    if reference.dtype.kind in "USO" or target.shape != reference.shape:
        return np.zeros(0, np.bool_)
    if reference.dtype.kind in "iub":
        return np.asarray(reference != target)
    with np.errstate(all="ignore"):
        wide, other = reference.astype(np.float64), target.astype(np.float64)
        size = float(np.sqrt(np.mean(np.square(wide[np.isfinite(wide)]))))
        off = np.abs(other - wide) > _WRONG_OVER_FLOOR * (floor if math.isfinite(floor) else 0.0) * size
        unlike = (wide != other) & ~(np.isnan(wide) & np.isnan(other))
    return np.where(np.isfinite(wide) & np.isfinite(other), off, unlike)


def _places(shape: tuple[int, ...], result: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the neighbouring axes of a result that an operand of this shape may stand for, the last ones first."""
    for first in range(len(result) - len(shape), -1, -1):
        if shape and result[first : first + len(shape)] == shape:
            yield tuple(range(first, first + len(shape)))


def _conditions(operand: np.ndarray, wrong: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield cases in words that follow the name of an operand, and which of its elements they are."""
    if operand.dtype.kind == "b":
        yield from (("is true", operand), ("is false", ~operand))
    if operand.dtype.kind not in "fiu":
        return
    if (nan := np.isnan(operand)).any():
        yield "is NaN", nan
        return
    yield from (("is 0", operand == 0), ("is negative", operand < 0), ("is positive", operand > 0))
    least, most = operand[~wrong].min(initial=operand.max()), operand[~wrong].max(initial=operand.min())
    yield from ((f"is above {_number(most)}", operand > most), (f"is below {_number(least)}", operand < least))


def _number(value: np.generic) -> str:
    return f"{int(value):,}" if value.dtype.kind in "iu" else magnitude(float(value))

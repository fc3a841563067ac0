"""The parts of a value that a relation makes equal: rows along any axis, or parts that no hidden input reaches.

Inside a model rows are merged with heads, moved to other axes, or gone. So every axis that could hold the rows is a
candidate, and the model's own evaluation selects one: a view counts only if the parts are equal there.
"""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from tensortriage_steps.consistency.relations import ClaimKind, EqualityClaim

_UNMOVED = 1e-6
"""Share of a value's RMS that an element may move by in the model's own evaluation and still count as unmoved: some
roundings of a float32 result."""

Part = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True, slots=True)
class EqualParts:
    """A part of the left value and the part of the right one that must equal it.

    Attributes:
        left: Picks the one.
        right: Picks the other.
        row: The row of the right batch; None when it is no row.
    """

    left: Part
    right: Part
    row: int | None = None


def views(relation: EqualityClaim, left: np.ndarray, right: np.ndarray) -> Iterator[list[EqualParts]]:
    """Yield the parts of a value that may have to be equal.

    Args:
        relation: The claim.
        left: The value in the model's own evaluation of the left run.
        right: In that of the right one.
    """
    if relation.kind.whole:
        yield [EqualParts(np.asarray, np.asarray)]
    elif relation.kind is ClaimKind.MASKED:
        if left.shape == right.shape and (unmoved := _unmoved(left, right)).any():
            yield [EqualParts(_picking(unmoved), _picking(unmoved))]
    else:
        yield from _row_views(relation, left, right)


def _row_views(relation: EqualityClaim, left: np.ndarray, right: np.ndarray) -> Iterator[list[EqualParts]]:
    many, few = relation.rows_left, relation.rows_right
    for axis in range(min(left.ndim, right.ndim)):
        inner, rest = divmod(left.shape[axis], many)
        others = (*left.shape[:axis], *left.shape[axis + 1 :]) == (*right.shape[:axis], *right.shape[axis + 1 :])
        if rest == 0 and inner and others and right.shape[axis] == inner * few:
            yield [EqualParts(_row(axis, many, i), _row(axis, few, j), j) for i, j in relation.pairs]


def _row(axis: int, count: int, index: int) -> Part:
    def part(array: np.ndarray) -> np.ndarray:
        split = array.reshape(*array.shape[:axis], count, -1, *array.shape[axis + 1 :])
        return np.asarray(np.take(split, index, axis=axis))

    return part


def _picking(places: np.ndarray) -> Part:
    return lambda array: array[places] if array.shape == places.shape else array.reshape(-1)[:0]


def _unmoved(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.dtype.kind not in "fV":
        return np.asarray(left == right)
    one, other = left.astype(np.float64), right.astype(np.float64)
    finite = one[np.isfinite(one)]
    scale = float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0
    return np.isclose(one, other, rtol=_UNMOVED, atol=_UNMOVED * scale, equal_nan=True)

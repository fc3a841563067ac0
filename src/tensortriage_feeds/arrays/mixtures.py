"""Several numbers of an output made of several: boxes in another form, limits, products, decisions."""

from collections.abc import Iterator

import numpy as np

from tensortriage_feeds.arrays.numbers import CLEARER, EQUAL, Returned, error

_BOX = 4
_CORNERS = np.array([[1, 0, -0.5, 0], [0, 1, 0, -0.5], [1, 0, 0.5, 0], [0, 1, 0, 0.5]])
"""Corners of boxes that are given by their centre and size."""
_FORMS = {
    "corners (x1, y1, x2, y2) made of centre and size (x, y, w, h)": _CORNERS,
    "centre and size (x, y, w, h) made of corners (x1, y1, x2, y2)": np.linalg.inv(_CORNERS),
    "corner and size (x1, y1, w, h) made of corners (x1, y1, x2, y2)": np.array(
        [[1, 0, 0, 0], [0, 1, 0, 0], [-1, 0, 1, 0], [0, -1, 0, 1]]
    ),
    "corners (x1, y1, x2, y2) made of corner and size (x1, y1, w, h)": np.array(
        [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    ),
    "corner and size (x1, y1, w, h) made of centre and size (x, y, w, h)": np.array(
        [[1, 0, -0.5, 0], [0, 1, 0, -0.5], [0, 0, 1, 0], [0, 0, 0, 1]]
    ),
}
_ROWS = 16
"""Boxes that a form is fitted to at least: four numbers each, of which a scale and an offset are fitted."""
_LEAST_CUT = 4
"""Numbers that a limit has to cut off, at least, for it to be told."""
_MOST_FACTORS = 64


def limited(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield limits at which numbers are cut off, and those below which they are 0.

    Args:
        right: Right numbers, float64, finite.
        made: What a program returns of them, float64, finite.
    """
    tiny = EQUAL * np.abs(right).max()
    low, high = float(made.min()), float(made.max())
    outside = (right < low - tiny) | (right > high + tiny)
    if (
        low < high
        and np.count_nonzero(outside) >= _LEAST_CUT
        and np.abs(np.clip(right, low, high) - made).max() <= tiny
    ):
        ends = [f"{end:.6g}" for end, cut in ((low, right < low - tiny), (high, right > high + tiny)) if cut.any()]
        yield Returned(f"the model's cut off at {' and '.join(ends)}", "leave the clip out, or put it into the model")
    zeroed = (made == 0.0) & (np.abs(right) > tiny)
    kept = ~zeroed
    if np.count_nonzero(zeroed) < _LEAST_CUT or not made.any() or np.abs(made[kept] - right[kept]).max() > tiny:
        return
    least, most = float(right[kept & (made != 0.0)].min()), float(right[zeroed].max())
    if most < least:
        yield Returned(
            f"the model's with 0 in place of all below a threshold between {most:.4g} and {least:.4g}",
            "compare the scores before the program's threshold",
        )


def decided(right: np.ndarray, made: np.ndarray) -> Iterator[Returned]:
    """Yield that numbers along an axis are sorted, or that the largest is 1 and all others 0.

    Args:
        right: Right numbers, float64, finite.
        made: What a program returns of them, float64, of the same shape.
    """
    for axis in range(right.ndim):
        if right.shape[axis] < _BOX:
            continue
        for words, wanted in (("descending", -np.sort(-right, axis)), ("ascending", np.sort(right, axis))):
            if error(wanted, made) <= EQUAL:
                yield Returned(f"the model's sorted along axis {axis}, {words}", "compare it before the program sorts")
        largest = np.arange(right.shape[axis]).reshape([-1 if each == axis else 1 for each in range(right.ndim)])
        if np.array_equal(largest == np.expand_dims(right.argmax(axis), axis), made):
            yield Returned(f"1 at the largest of the model's along axis {axis}, 0 elsewhere",
                           "return the scores, or put the ArgMax into the model")  # fmt: skip


def mixed(right: np.ndarray, made: np.ndarray, axis: int, unlike: np.ndarray) -> Iterator[Returned]:
    """Yield what is made of several indices of an axis: boxes in another form, each index by numbers of its own.

    Args:
        right: The right output, float64, finite.
        made: What the program returns, float64, finite, of the same shape.
        axis: The axis.
        unlike: Its indices that differ.
    """
    rows, others = (np.moveaxis(each, axis, 0).reshape(each.shape[axis], -1) for each in (right, made))
    if rows.shape[1] < _ROWS or unlike.size == 0:
        return
    for start in range(max(0, int(unlike[-1]) - _BOX + 1), min(int(unlike[0]), len(rows) - _BOX) + 1):
        four = slice(start, start + _BOX)
        for words, form in _FORMS.items():
            wanted = form @ rows[four]
            for told in _on_lines(wanted, others[four]):
                yield Returned(
                    f"boxes in indices {start}..{start + _BOX - 1} of axis {axis} as {words}{told and ', ' + told}",
                    "take the boxes in the form in which the model gives them, once",
                )
    if unlike.size <= _BOX:
        for told in _on_lines(rows[unlike], others[unlike]):
            if told:
                yield Returned(f"the model's {told} in indices {', '.join(map(str, unlike))} of axis {axis}, elsewhere "
                               "as it is", "scale it where the numbers are used, once: from the network's input to the "
                               "picture")  # fmt: skip
    yield from _multiplied(rows, others, axis, unlike)


def _on_lines(wanted: np.ndarray, given: np.ndarray) -> Iterator[str]:
    """Yield the factor and the offset of each row that give others, as words; empty where there are none."""
    if np.any(np.ptp(wanted, axis=1) == 0.0):
        return
    lines = [np.polyfit(one, other, 1) for one, other in zip(wanted, given, strict=True)]
    fitted = np.stack([by * row + plus for (by, plus), row in zip(lines, wanted, strict=True)])
    if np.any(np.std(fitted, axis=1) < CLEARER * EQUAL * np.abs(given).max()) or error(fitted, given) > EQUAL:
        return
    by, plus = (np.array([line[place] for line in lines]) for place in (0, 1))
    size = np.abs(given).max()
    says = [f"multiplied by {_listed(by)}"] if np.abs(by - 1.0).max() > CLEARER * EQUAL else []
    says += [f"moved by {_listed(np.where(np.abs(plus) > CLEARER * EQUAL * size, plus, 0.0))}"] if (
        np.abs(plus).max() > CLEARER * EQUAL * size
    ) else []  # fmt: skip
    yield " and ".join(says)


def _listed(numbers: np.ndarray) -> str:
    same = np.ptp(numbers) <= CLEARER * EQUAL * np.abs(numbers).max()
    return f"{numbers.mean():.5g}" if same else str([float(f"{number:.5g}") for number in numbers])


def _multiplied(rows: np.ndarray, others: np.ndarray, axis: int, unlike: np.ndarray) -> Iterator[Returned]:
    """Yield that some indices are multiplied or divided by another one, as class scores are by an objectness."""
    for index in range(min(len(rows), _MOST_FACTORS)):
        if index in unlike or not rows[index].all() or np.ptp(rows[index]) == 0.0:
            continue
        for words, factor in (("multiplied", rows[index]), ("divided", 1.0 / rows[index])):
            if error(rows[unlike] * factor, others[unlike]) <= EQUAL:
                which = f"{unlike[0]}..{unlike[-1]}" if unlike.size > 1 else str(unlike[0])
                yield Returned(
                    f"the model's in indices {which} of axis {axis} {words} by index {index}, elsewhere as it is",
                    "multiply scores by the objectness once, or nowhere, as the model is trained",
                )

"""Orders in which the axes of a tensor may lie in a file: the habits of converters, else every order."""

import itertools
import math
from collections.abc import Sequence

LAYOUT, NAMES = "layout", "names"

_MOST_AXES = 5

Axes = tuple[int, ...]
Shape = Sequence[int | str | None] | None


def orders(declared: Shape, held: Shape) -> tuple[Axes | None, ...]:
    """Return the orders in which the axes of a tensor may lie in a file; empty where it cannot be that tensor.

    Args:
        declared: Shape in the model.
        held: Shape in the file; words, None and negative sizes fit any size.
    """
    if declared is None or held is None:
        return (None,)
    rank = len(declared)
    habits = [tuple(range(rank))]
    if rank > 2:  # channels last, and first
        habits += [(0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))]
    every = itertools.permutations(range(rank)) if rank <= _MOST_AXES else ()
    for tried, fits in itertools.product((habits, list(every)), (_whole, _but_for_ones)):
        found = [axes for axes in tried if fits([declared[axis] for axis in axes], held)]
        if found:
            return tuple({unequal(axes, declared): axes for axes in reversed(found)}.values())[::-1]
    return ()


def alike(moved: Sequence[int | str | None], held: Sequence[int | str | None]) -> bool:
    """Return whether shapes are one: axis by axis where they are known, or but for axes of one entry."""
    return _whole(moved, held) or _but_for_ones(moved, held)


def _known(shape: Sequence[int | str | None]) -> bool:
    return all(isinstance(size, int) and size >= 0 for size in shape)


def _whole(moved: Sequence[int | str | None], held: Sequence[int | str | None]) -> bool:
    """Return whether shapes are one, axis by axis, where they are known."""
    pairs = zip(moved, held, strict=len(moved) == len(held))
    return len(moved) == len(held) and all(
        one == other or not _known((one,)) or not _known((other,)) for one, other in pairs
    )


def _but_for_ones(moved: Sequence[int | str | None], held: Sequence[int | str | None]) -> bool:
    """Return whether known shapes are one, but for axes of one entry."""
    return _known(moved) and _known(held) and [s for s in moved if s != 1] == [s for s in held if s != 1]


def with_ones(shape: Sequence[int], wanted: Shape) -> tuple[int, ...]:
    """Return a shape that differs from another in axes of one entry only; the shape itself where it differs in more."""
    sizes = tuple(size for size in wanted or () if isinstance(size, int))
    fits = wanted is not None and _known(wanted) and math.prod(sizes) == math.prod(shape)
    return sizes if fits else tuple(shape)


def unequal(axes: Axes, shape: Shape) -> Axes:
    """Return an order without the axes of one entry, which lie anywhere."""
    return tuple(axis for axis in axes if shape is None or shape[axis] != 1)

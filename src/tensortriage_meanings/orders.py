"""Right numbers in another order: an operand as if it were reshaped, its axes put in an order, and reshaped again.

Converters write DepthToSpace, shuffles of channels, windows, heads and flattened pictures as such three steps, and mix
up the middle one. The order is read off the numbers: the place in the operand's memory of each that occurs once.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeantNode

_MOST_ELEMENTS = 1 << 20
_ANCHORS = 64
"""Elements by which the steps along an axis are found, of those that occur once."""
_LEAST_ALONE = 0.1
"""Share of the numbers that occur once at least: of the others nobody can say where they come from."""


@dataclasses.dataclass(frozen=True)
class Order:
    """An order of axes.

    Attributes:
        sizes: Shape in which the operand's memory is seen.
        perm: Order of its axes.
        shape: Shape of the result.
    """

    sizes: tuple[int, ...]
    perm: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def moves(self) -> bool:
        """Whether numbers are anywhere else in memory afterwards."""
        return self.perm != tuple(sorted(self.perm))

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return an array in this order."""
        return array.reshape(self.sizes).transpose(self.perm).reshape(self.shape)

    @property
    def words(self) -> str:
        """The order after "its input were"."""
        if not self.moves:
            return "reshaped with its numbers in the order in which they lie"
        return f"reshaped to {list(self.sizes)}, its axes put in the order {list(self.perm)}"

    def body(self, value: str) -> str:
        """Return the nodes that put a value in this order, as ``y``."""
        return (
            f"z0 = Constant<value_ints={list(self.sizes)}>() z = Reshape({value}, z0) w = Transpose<perm="
            f"{list(self.perm)}>(z) y0 = Constant<value_ints={list(self.shape)}>() y = Reshape(w, y0)"
        )


def order_ways(
    site: MeantNode, result: np.ndarray, right: np.ndarray | None, known: Mapping[str, np.ndarray]
) -> Iterator[Meaning]:
    """Yield how a node's result is one of its operands, or the right result, in another order.

    Args:
        site: The node.
        result: The other side's result.
        right: The right one.
        known: Right values by name, the node's operands among them.
    """
    if right is None or right.shape != result.shape or np.array_equal(right, result):
        return
    for index, value in enumerate(site.node.inputs[:1]):
        operand = None if value is None else known.get(value.name or "", site.constant(index))
        if operand is None or (order := order_of(operand, result)) is None:
            continue
        own = order_of(operand, right)
        rest = "" if own is None or own == order else f", not {own.words}"
        yield Meaning(
            f"its input {site.input_name(index)} were {order.words}{rest}",
            body=f"{formal(site)} => (y) {{ {order.body(f'i{index}')} }}",
            alone=True,
        )
        return
    order = order_of(right, result)
    if order is not None and order.moves and len(site.node.outputs) == 1:
        text = f"{formal(site)} => (y) {{ r = {call(site)} {order.body('r')} }}"
        yield Meaning(f"its result were {order.words}, and reshaped back", body=text, alone=True)


def order_of(array: np.ndarray, made: np.ndarray) -> Order | None:
    """Return the order of axes in which an array gives other numbers; None where none does, or that cannot be told.

    Args:
        array: The array, floating point.
        made: The numbers, all of the array's.
    """
    if array.dtype != made.dtype or array.dtype.kind != "f" or array.size != made.size or not made.ndim:
        return None
    if not 1 < array.size <= _MOST_ELEMENTS:
        return None
    places = _places(array.reshape(-1), made.reshape(-1))
    if places is None:
        return None
    steps = [_steps(places.reshape(made.shape), axis) for axis in range(made.ndim)]
    axes = [each - each.min() for each in steps if each is not None]
    factors = [_factors(each) for each in (axes if len(axes) == made.ndim else [places])]
    known = [each for each in factors if each is not None]
    order = _order(known, made.shape) if len(known) == len(factors) else None
    return order if order is not None and np.array_equal(order.of(array), made) else None


def _places(array: np.ndarray, made: np.ndarray) -> np.ndarray | None:
    """Return the place in an array of each number that occurs once, -1 for others; None where they are not its own."""
    ours, theirs = np.argsort(array, kind="stable"), np.argsort(made, kind="stable")
    numbers = array[ours]
    if not np.array_equal(numbers, made[theirs]):
        return None
    equal = numbers[1:] == numbers[:-1]
    alone = ~(np.append(equal, False) | np.insert(equal, 0, False))
    if np.count_nonzero(alone) < _LEAST_ALONE * alone.size:
        return None
    places = np.full(array.size, -1)
    places[theirs[alone]] = ours[alone]
    return places


def _steps(places: np.ndarray, axis: int) -> np.ndarray | None:
    """Return how far from the first one in memory each index of an axis lies; None where that is not one number."""
    rows = np.moveaxis(places, axis, -1).reshape(-1, places.shape[axis])
    found = np.zeros(rows.shape[1], np.int64)
    for index in range(1, rows.shape[1]):
        both = rows[(rows[:, index - 1] >= 0) & (rows[:, index] >= 0)][:_ANCHORS]
        apart = np.unique(both[:, index] - both[:, index - 1])
        if apart.size != 1:
            return None
        found[index] = found[index - 1] + apart[0]
    return found


def _factors(places: np.ndarray) -> list[tuple[int, int]] | None:
    """Return the axes that a sequence of places is made of, the outermost first; None where it is of none.

    Args:
        places: Places in memory, -1 where they are unknown.

    Returns:
        Sizes and steps in memory.
    """
    if places.size == 1:
        return []
    known = places >= 0
    pairs = np.flatnonzero(known[:-1] & known[1:])
    if not pairs.size:
        return None
    first = int(pairs[0])
    step = int(places[first + 1] - places[first])
    line = places - step * np.arange(places.size)
    bent = np.flatnonzero(known & (line != line[first]))
    longest = int(bent[0]) if bent.size else places.size
    for size in range(longest, first + 1, -1):
        if places.size % size:
            continue
        blocks = np.where(known, line, np.iinfo(np.int64).min).reshape(-1, size).max(1)
        if known.reshape(-1, size).any(1).all() and (line[known] == np.repeat(blocks, size)[known]).all():
            outer = _factors(blocks + step * size * np.arange(blocks.size))
            return None if outer is None else [*outer, (size, step)]
    return None


def _order(factors: Sequence[Sequence[tuple[int, int]]], shape: tuple[int, ...]) -> Order | None:
    """Return the order of axes that lie in memory without gaps; None where others do."""
    flat = [each for one in factors for each in one]
    memory = sorted(range(len(flat)), key=lambda index: -flat[index][1])
    sizes = [flat[index][0] for index in memory]
    dense = [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]
    if not flat or [flat[index][1] for index in memory] != dense:
        return None
    return Order(*_shortest(sizes, [memory.index(index) for index in range(len(flat))], shape), tuple(shape))


def _shortest(
    sizes: Sequence[int], perm: Sequence[int], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and order of the fewest axes, but for the batch: it is one of its own where it stays the first."""
    runs: list[list[int]] = []
    for axis in perm:
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    memory = sorted(runs)
    wide = [math.prod(sizes[axis] for axis in run) for run in memory]
    order = [memory.index(run) for run in runs]
    batch = shape[0] if len(shape) > 1 and order[0] == 0 and len(order) > 1 else wide[0]
    if wide[0] != batch and wide[0] % batch == 0:
        wide, order = [batch, wide[0] // batch, *wide[1:]], [0, 1, *(axis + 1 for axis in order[1:])]
    elif shape[0] == 1 and len(shape) > 1 and len(order) > 1:
        wide, order = [1, *wide], [0, *(axis + 1 for axis in order)]
    return tuple(wide), tuple(order)

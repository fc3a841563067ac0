"""Matches tensors of an engine's file with values of the model by their numbers: for converters that drop names.

On one feed a tensor holds a value if it has its numbers, in whatever order of axes. Where a file is wrong, nothing
behind the fault has them. There the first value whose operands are all held is assigned to a tensor that is made of the
holders of those operands and of nothing else: of such tensors, the one that is most like it.
"""

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Graph

ALIKE = 1e-5
"""Largest difference, against the size of the numbers, of two arrays that are one value: two networks differ in their
fusions, so in the last bits of float32 sums of a few thousand terms, below 1e-6; other values differ by far more."""

MASK = 1e4
"""Numbers so many times larger than a tenth of the others are no measure of them: they mask scores of attention, which
would not be compared at all. Weights and activations spread over two or three decades."""

SAMPLED = 64
"""Numbers of two sorted arrays that are compared before all of them are."""

FEWEST = 4
"""Arrays of fewer numbers cannot be recognized."""

AS_LIKE = 0.99
"""A pair whose correlation is this share of the best one's is as good, and the earlier of both counts: values behind
one that is right but for a factor correlate as well as the value itself, up to rounding."""

LIKE = 4.0
"""Correlation that is more than chance, in standard errors (one over the root of the count, Fisher 1921): of `NEAR`
unrelated tensors in the 24 orders of four axes the best is expected at 3.2."""

NEAR = 64
"""Tensors of a file that are tried for a value, nearest first: converters make a few operators of one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """Place of a value.

    Attributes:
        tensor: Its name in the file.
        shape: The value's shape.
        axes: Order of the tensor's axes, those of one element left out; None where both are alike in memory.
    """

    tensor: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None

    def read(self, array: np.ndarray) -> np.ndarray | None:
        """Return the value out of the tensor's array; None when that has another size."""
        if array.size != math.prod(self.shape):
            return None
        return (array if self.axes is None else array.squeeze().transpose(self.axes)).reshape(self.shape)


Held = Mapping[str, Sequence[Holder]]
"""By value: the tensors that hold it, in the order of the file."""


def same_values(tensors: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> dict[str, list[Holder]]:
    """Return for each value the tensors with its numbers.

    Arrays of less than four numbers, or of one number throughout, cannot be recognized.

    Args:
        tensors: Values in the file, by tensor, in its order.
        values: Values of the model, by name.
    """
    found: dict[str, list[Holder]] = {}
    ordered = {name: np.sort(array, axis=None) for name, array in tensors.items() if _tells(array)}
    for value, array in values.items():
        if not _tells(array):
            continue
        numbers, least = np.sort(array, axis=None), ALIKE * _size(array)
        for name, held in ordered.items():
            few = slice(None, None, max(numbers.size // SAMPLED, 1))  # most are told apart by these
            if held.size != numbers.size or not _equal(held[few], numbers[few], least):
                continue
            for holder in _orders(name, tensors[name], array):
                read = holder.read(tensors[name])
                if read is not None and _equal(read, array, least):
                    found.setdefault(value, []).append(holder)
                    break
    return found


def first_wrong(
    graph: "Graph",
    held: Held,
    values: Mapping[str, np.ndarray],
    tensors: Mapping[str, np.ndarray],
    makers: Mapping[str, Sequence[str]],
) -> dict[str, Holder]:
    """Return the holder of the first values that match no tensor's numbers.

    Args:
        graph: The model's.
        held: The result of `same_values`; of inputs that file and model share, too.
        values: Values of the model, by name.
        tensors: Values in the file, by tensor, in its order.
        makers: Operands of each tensor that an operator of the file makes, constants left out.
    """
    right = {holder.tensor for holders in held.values() for holder in holders}
    borders = {name: _border(name, right, makers) for name in makers if name not in right and name in tensors}
    found: dict[str, Holder] = {}
    made_of: dict[str, frozenset[str]] = {}  # by value that is not held: those held that it is made of
    wrong: set[str] = set()
    for node in graph.nodes:
        sources = [frozenset({name}) if name in held else made_of.get(name, frozenset()) for name in node.uses]
        made_of |= dict.fromkeys(node.outputs, frozenset[str]().union(*sources))
        if wrong.intersection(node.uses):
            wrong.update(name for name in node.outputs if name not in held)
            continue
        for value in node.outputs:
            if value not in values or value in held:
                continue
            known = {holder.tensor for source in made_of[value] for holder in held[source]}
            near = [name for name, border in borders.items() if border and border <= known][:NEAR]
            if pair := _most_alike(_line(graph, value, values, held), values, near, tensors):
                found |= [pair]
                wrong.add(value)
    return found


def _tells(array: np.ndarray) -> bool:
    numbers = array.dtype.kind in "fiu" and array.size >= FEWEST
    return numbers and bool(np.isfinite(array).all() and array.min() != array.max())


def _orders(name: str, array: np.ndarray, value: np.ndarray) -> Iterator[Holder]:
    """Yield the ways in which a tensor may hold a value: as it lies in memory, then in other orders of its axes."""
    yield Holder(name, value.shape)
    own, wanted = array.squeeze().shape, value.squeeze().shape
    if sorted(own) == sorted(wanted):
        for axes in itertools.permutations(range(len(own))):
            if tuple(own[axis] for axis in axes) == wanted and axes != tuple(range(len(own))):
                yield Holder(name, value.shape, axes)


def _line(graph: "Graph", value: str, values: Mapping[str, np.ndarray], held: Held) -> Iterator[str]:
    """Yield a value and those behind it, one made of the other alone, as far as they have its size: they may be one."""
    size = values[value].size
    while value in values and value not in held and values[value].size == size:
        yield value
        users = graph.consumers(value)
        if len(users) != 1 or len(users[0].outputs) != 1:
            return
        value = users[0].outputs[0]


def _border(tensor: str, right: Collection[str], makers: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the nearest right tensors, or inputs, that a tensor is computed from."""
    found, waiting, seen = set(), list(makers[tensor]), set()
    while waiting:
        name = waiting.pop()
        if name in right or name not in makers:
            found.add(name)
        elif name not in seen:
            seen.add(name)
            waiting.extend(makers[name])
    return frozenset(found)


def _most_alike(
    line: Iterator[str], values: Mapping[str, np.ndarray], near: Sequence[str], tensors: Mapping[str, np.ndarray]
) -> tuple[str, Holder] | None:
    """Return the first value and tensor, of one size, that correlate as well as the best; None where it is chance."""
    pairs: list[tuple[float, str, Holder]] = []
    for value in line if near else ():
        array = values[value]
        for name in near:
            if tensors[name].size == array.size and _tells(array) and _tells(tensors[name]):
                ways = [
                    (_correlation(array, holder, tensors), holder) for holder in _orders(name, tensors[name], array)
                ]
                likeness, holder = max(ways, key=lambda way: way[0])
                pairs.append((likeness, value, holder))
    best = max((likeness for likeness, *_ in pairs), default=0.0)
    if not pairs or best * math.sqrt(values[pairs[0][1]].size) < LIKE:
        return None
    return next(((value, holder) for likeness, value, holder in pairs if likeness >= AS_LIKE * best), None)


def _correlation(array: np.ndarray, holder: Holder, tensors: Mapping[str, np.ndarray]) -> float:
    read = holder.read(tensors[holder.tensor])
    return 0.0 if read is None else float(np.corrcoef(array.ravel(), read.ravel())[0, 1])


def _size(array: np.ndarray) -> float:
    """Return the root mean square of the numbers that are no masks, in their unit."""
    sizes = np.abs(array[array != 0].astype(np.float64))
    return float(np.sqrt(np.mean(np.square(sizes[sizes <= MASK * np.quantile(sizes, 0.1)]))))


def _equal(one: np.ndarray, other: np.ndarray, least: float) -> bool:
    return bool((np.abs(np.subtract(one, other, dtype=np.float64)) <= np.maximum(least, ALIKE * np.abs(other))).all())

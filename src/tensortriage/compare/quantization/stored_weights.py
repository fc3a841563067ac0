"""Which of a model's weights an engine's file keeps as integers, and whether they are the model's, rounded.

Files keep weights transposed, with channels last, or a part of one alone, and under other names; so a weight is found
by its numbers. If it equals no weight of the model in any order of axes, its numbers may have been moved: it is the
missing weight whose numbers it holds.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.within import is_lost
from tensortriage.compare.quantization.weight_moves import HALF_A_STEP
from tensortriage.frozen_dataclass import frozen_dataclass

_SAMPLED = 512
"""Number of elements that identify a weight: between different weights, half of them differ by more than the weight
itself."""
_MOST_AXES = 5
_DIRECTIONS, _GATES = (1, 2), (3, 4)
"""Axes (directions, gates) of recurrent operators' weights [directions, gates times hidden, ...], whose parts files
keep apart."""


@frozen_dataclass
class StoredWeight:
    """A weight as a file keeps it.

    Attributes:
        numbers: The real numbers that its integers encode.
        step: Distance between neighbouring numbers of its format; broadcasts to the shape.
    """

    numbers: np.ndarray
    step: np.ndarray


@frozen_dataclass
class WeightView:
    """A part of a constant of the model, in a file's order of axes.

    Attributes:
        name: The constant.
        part: Direction, and gate of so many, of a recurrent operator's; empty for the whole.
        axes: Order of the axes of that part.
    """

    name: str
    part: tuple[int, ...]
    axes: tuple[int, ...]

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return the part of the constant with its axes in order, as a view."""
        seen: np.ndarray = _part(array, self.part).transpose(self.axes)
        return seen

    def put(self, array: np.ndarray, numbers: np.ndarray) -> None:
        """Write numbers of a file to where they are in the constant."""
        seen = self.of(array)
        seen[...] = numbers.reshape(seen.shape)


@frozen_dataclass(eq=False)
class FoundWeight:
    """A stored weight and the constant of the model that it is.

    Attributes:
        stored: As the file keeps it.
        view: Its place in the model.
        was: The model's own numbers, in the shape of the file's.
    """

    stored: StoredWeight
    view: WeightView
    was: np.ndarray

    @property
    def rounded(self) -> np.ndarray:
        """The model's numbers, rounded and cut off as the file's are."""
        now, step = self.stored.numbers, self.stored.step
        shared = tuple(axis for axis, size in enumerate(step.shape) if size == 1)
        nearest = now + np.rint((self.was - now) / step) * step
        ends = (extreme(axis=shared, keepdims=True) for extreme in (now.min, now.max))
        return np.asarray(np.clip(nearest, *ends))

    @property
    def steps_off(self) -> np.ndarray:
        """Distance in steps of each of the file's numbers from its place: 0 for all that are rounded to nearest."""
        now, step = self.stored.numbers, self.stored.step
        near = np.abs(now - self.was) <= HALF_A_STEP * step
        return np.where(near, 0.0, np.abs(now - self.rounded) / step)


def placed(stored: Sequence[StoredWeight], constants: Mapping[str, np.ndarray]) -> list[tuple[FoundWeight, ...]]:
    """Return for each stored weight which constant it is: in one way, in several that are possible, or in none.

    Args:
        stored: The weights of a file.
        constants: Constants of the model, by name.
    """
    found: list[tuple[FoundWeight, ...]] = []
    views = [list(_views(weight.numbers.size, constants)) for weight in stored]
    for weight, offered in zip(stored, views, strict=True):
        errors = [_sampled_error(weight.numbers, view, constants[view.name]) for view in offered]
        best = int(np.argmin(errors)) if errors else -1
        near = [offered[best]] if errors and not is_lost(errors[best]) else []
        found.append(tuple(_placed(weight, view, constants) for view in near))
    assigned = {(each.view.name, each.view.part) for ways in found for each in ways}
    for number, (weight, offered) in enumerate(zip(stored, views, strict=True)):
        if not found[number]:
            left = [view for view in offered if (view.name, view.part) not in assigned]
            found[number] = _by_numbers_alone(weight, left, constants)
    return found


def _views(size: int, constants: Mapping[str, np.ndarray]) -> Iterator[WeightView]:
    """Yield the parts of constants, in all orders of their axes, that have so many numbers."""
    for name, array in constants.items():
        for part in _parts(array) if size > 1 else ():
            shape = _part(array, part).shape
            if math.prod(shape) != size:
                continue
            long = [axis for axis, length in enumerate(shape) if length > 1]
            ones = [axis for axis, length in enumerate(shape) if length == 1]
            for order in itertools.permutations(long) if len(long) <= _MOST_AXES else [tuple(long)]:
                yield WeightView(name, part, (*ones, *order))


def _parts(array: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Yield the parts of a constant that a file may keep apart, the whole first."""
    yield ()
    if array.ndim < 2 or array.shape[0] not in _DIRECTIONS:
        return
    for direction in range(array.shape[0]):
        yield (direction,)
        for gates in _GATES:
            if array.shape[1] % gates == 0:
                yield from ((direction, gate, gates) for gate in range(gates))


def _part(array: np.ndarray, part: tuple[int, ...]) -> np.ndarray:
    if not part:
        return array
    if len(part) == 1:
        (direction,), rows = part, slice(None)
    else:
        direction, gate, gates = part
        length = array.shape[1] // gates
        rows = slice(gate * length, (gate + 1) * length)
    found: np.ndarray = array[direction, rows]
    return found


def _sampled_error(numbers: np.ndarray, view: WeightView, array: np.ndarray) -> float:
    """Return the relative difference of given numbers of a file from those of the model in one order."""
    seen = view.of(array)
    at = np.linspace(0, numbers.size - 1, min(_SAMPLED, numbers.size)).astype(np.int64)
    was = seen[np.unravel_index(at, seen.shape)].astype(np.float64)
    power = float((was * was).sum())
    off = float(((numbers.ravel()[at] - was) ** 2).sum())
    return (off / power) ** 0.5 if power else np.inf if off else 0.0


def _by_numbers_alone(
    weight: StoredWeight, offered: Sequence[WeightView], constants: Mapping[str, np.ndarray]
) -> tuple[FoundWeight, ...]:
    """Return the constant that has a weight's numbers in whatever order, with its axes in every order."""
    if not offered:
        return ()
    ordered, room = np.sort(weight.numbers, axis=None), HALF_A_STEP * float(np.max(weight.step))
    off = {}
    for view in {(each.name, each.part): each for each in offered}.values():
        was = np.sort(view.of(constants[view.name]), axis=None).astype(np.float64)
        off[view.name, view.part] = float(np.abs(ordered - was).max())
    best = min(off, key=lambda key: off[key])
    if off[best] > room:
        return ()
    return tuple(_placed(weight, view, constants) for view in offered if (view.name, view.part) == best)


def _placed(weight: StoredWeight, view: WeightView, constants: Mapping[str, np.ndarray]) -> FoundWeight:
    was: np.ndarray = view.of(constants[view.name]).astype(np.float64)
    return FoundWeight(weight, view, was.reshape(weight.numbers.shape))

"""Where a wrong operand was read from: the elements of a known tensor, from another place or in other steps.

A result that an Add, Sub, Mul, Div or Concat makes tells one operand where the others are known. Is that one, or the
result itself, a known tensor's memory read in steps of its own along each axis? Such reads are transposed and reversed
orders, a view of a larger buffer read as if it were dense, rows repeated, and a stale buffer. The steps are those
between elements whose numbers occur once.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tensortriage.diagnose.sdk import TriageError, inner_values
from tensortriage.model.sdk import GOLDEN_PREFIX, mark_outputs
from tensortriage_meanings.lookups import lookup_ways
from tensortriage_meanings.orders import order_ways
from tensortriage_meanings.search import Unexplained, Ways
from tensortriage_meanings.site import Meaning, MeantNode

_ANCHORS = 64
"""Pairs of neighbours along an axis that are looked for in a tensor's memory."""
_ALONE = 8.0
"""By so much the next number of a tensor is further away than the nearest, for its place to be known."""
_SAME = 1e-3
"""Largest error of an element as a share of a tensor's RMS: half precision's rounding, twice over."""
_LEAST_KNOWN = 0.5
"""Share of an operand that a result tells at least: nothing where the other factor is 0."""
_MOST_ELEMENTS = 1 << 22
_MOST_PERMUTED = 4
_CURE = "give that operand memory of its own: mark it as an output, or copy it"


@dataclasses.dataclass(frozen=True)
class Read:
    """Elements of a tensor's memory.

    Attributes:
        array: The elements, in the shape in which they are read.
        order: Order of the tensor's axes in memory.
        start: The first one's place.
        steps: How far apart in memory neighbours along each axis are; 0 along axes of one element.
    """

    array: np.ndarray
    order: tuple[int, ...]
    start: int
    steps: tuple[int, ...]

    @property
    def dense(self) -> bool:
        """Whether the elements lie next to each other, without gaps."""
        sizes = sorted((abs(step), size) for step, size in zip(self.steps, self.array.shape, strict=True) if size > 1)
        places = [math.prod(size for _, size in sizes[:index]) for index in range(len(sizes))]
        return [step for step, _ in sizes] == places


def reads_of(subject: Unexplained, fed: Mapping[str, np.ndarray]) -> Iterator[Ways]:
    """Yield how the nodes that make a side's outputs come of values that are read elsewhere.

    Args:
        subject: The numbers.
        fed: The model's inputs by name.
    """
    model = subject.model
    inner = inner_values(model.graph, [node.name for node in model.graph.nodes])
    try:
        known = {**fed, **subject.run(mark_outputs(model, inner))}
    except TriageError:
        return
    for node in model.ir.graph:
        results = [value.name for value in node.outputs if value.name in subject.theirs]
        if len(results) == len(node.outputs) == 1 and (array := subject.theirs[results[0] or ""]).size:
            others = {name: value for name, value in known.items() if name != results[0]}
            site, result = MeantNode(node, model.opset, {}), np.asarray(array)
            found = [*lookup_ways(site, result, {**subject.around, **others})]
            found += order_ways(site, result, known.get(results[0] or ""), others)
            for way in found or read_ways(site, result, others):
                yield {node.name or "": way}


def read_ways(site: MeantNode, result: np.ndarray, known: Mapping[str, np.ndarray]) -> Iterator[Meaning]:
    """Yield how a node's result comes of an operand, or is itself, read elsewhere.

    Args:
        site: The node.
        result: The other side's result.
        known: Right values by name, the node's operands among them.
    """
    operands = [None if value is None else known.get(value.name or "", site.constant(at))
                for at, value in enumerate(site.node.inputs)]  # fmt: skip
    for index, made in _implied(site, operands, result):
        right = operands[index]
        if right is None or not made.size or right.shape != made.shape or _off(made, right) <= _SAME:
            continue
        name = site.input_name(index)
        if not np.any(np.abs(np.nan_to_num(made)) > _SAME * max(_rms(right), _rms(result))):
            words = f"its input {name} were 0 everywhere (memory that is never written)"
            yield Meaning(words, operands={index: np.zeros_like(right)}, cure=_CURE)
        for words, array in _reads(made, known, right):
            yield Meaning(f"its input {name} were {words}", operands={index: array}, cure=_CURE)
    rest: dict[int, int | None] = dict.fromkeys(range(1, len(site.node.inputs)))
    for words, array in _reads(result.astype(np.float64), known, None):
        if array.dtype == result.dtype:
            words = f"its result were {words}"
            yield Meaning(words, operands={0: array}, inputs=rest, op="Identity", cure=_CURE, alone=True)


def _implied(
    site: MeantNode, operands: Sequence[np.ndarray | None], result: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each operand as the others and the result tell it, float64; NaN where they do not."""
    if any(each is None or each.dtype.kind not in "fiu" for each in operands) or result.dtype.kind not in "fiu":
        return
    given, wide = [np.asarray(each, np.float64) for each in operands if each is not None], result.astype(np.float64)
    if site.op_type == "Concat":
        axis, ends = int(site.attribute("axis")), [0]
        ends += itertools.accumulate(each.shape[axis] for each in given)
        yield from enumerate(np.take(wide, range(*pair), axis) for pair in itertools.pairwise(ends))
    if len(given) != 2 or site.op_type not in ("Add", "Sub", "Mul", "Div"):
        return
    left, right = given
    with np.errstate(all="ignore"):
        found = {
            "Add": (wide - right, wide - left),
            "Sub": (wide + right, left - wide),
            "Mul": (wide / right, wide / left),
            "Div": (wide * right, left / wide),
        }[site.op_type]
    yield from enumerate(np.where(np.isfinite(each), each, np.nan) for each in found)


def _reads(
    made: np.ndarray, known: Mapping[str, np.ndarray], right: np.ndarray | None
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield in words, and as arrays, from which known tensors numbers are read; whole tensors before parts of others.

    Several that give the same numbers are one.
    """
    told: list[np.ndarray] = []
    for name, array in sorted(known.items(), key=lambda each: each[1].size != made.size):
        if array.dtype.kind != "f" or not 1 < array.size <= _MOST_ELEMENTS or made.size > _MOST_ELEMENTS:
            continue
        found = read_of(array, made)
        if found is None or any(np.array_equal(found.array, each) for each in told):
            continue
        told.append(found.array)
        belongs = None if right is None else read_of(array, right.astype(np.float64), orders=[found.order])
        yield _words(name.removeprefix(GOLDEN_PREFIX), array, found, belongs), found.array


def _words(name: str, array: np.ndarray, found: Read, belongs: Read | None) -> str:
    if found.array.shape == array.shape and found.start == 0 and np.array_equal(found.array, array):
        return f"'{name}', another tensor"
    layout = "" if found.order == tuple(range(array.ndim)) else f" (axes in the order {list(found.order)})"
    where = f"from element {found.start} of its memory{layout} on"
    if belongs is not None and belongs.steps == found.steps:
        return f"other elements of '{name}', {where}, not from {belongs.start} on"
    where += f", in steps of {list(found.steps)} by axis"
    if belongs is None:
        return f"elements of '{name}' {where}"
    as_dense = ", as if that view of it were dense" if found.dense and not belongs.dense else ""
    return f"other elements of '{name}'{as_dense}: {where}, not of {list(belongs.steps)}"


def read_of(array: np.ndarray, made: np.ndarray, *, orders: Sequence[tuple[int, ...]] | None = None) -> Read | None:
    """Return how numbers are read in the memory of an array; None where they are not, or that cannot be told.

    Args:
        array: The array, floating point.
        made: The numbers, float64, NaN where they are unknown.
        orders: Orders in memory of the array's axes; all, the given one first, by default.
    """
    pairs = _pairs(array, made)
    if pairs is None:
        return None
    if orders is None:
        axes = tuple(range(array.ndim))
        orders = list(itertools.permutations(axes)) if array.ndim <= _MOST_PERMUTED else [axes]
    for order in orders:
        shape = [array.shape[axis] for axis in order]

        def in_memory(places: np.ndarray, order: tuple[int, ...] = order, shape: Sequence[int] = shape) -> np.ndarray:
            indices = np.unravel_index(places, array.shape)
            return np.ravel_multi_index([indices[axis] for axis in order], shape)

        steps = [0 if pair is None else _commonest(in_memory(pair.second) - in_memory(pair.first)) for pair in pairs]
        some = next(pair for pair in pairs if pair is not None)
        start = _commonest(in_memory(some.first) - some.indices @ np.array(steps))
        places = start + sum(
            np.arange(size).reshape([-1 if axis == at else 1 for at in range(made.ndim)]) * steps[axis]
            for axis, size in enumerate(made.shape)
        )
        places = np.broadcast_to(places, made.shape)
        if places.min() < 0 or places.max() >= array.size:
            continue
        read = array.transpose(order).reshape(-1)[places]
        if _off(made, read) <= _SAME:
            return Read(read, order, start, tuple(steps))
    return None


class _Pair(NamedTuple):
    """Neighbours along an axis: indices of the first ones, ``[n, axis]``, and places of both in an array, ``[n]``."""

    indices: np.ndarray
    first: np.ndarray
    second: np.ndarray


def _pairs(array: np.ndarray, made: np.ndarray) -> list[_Pair | None] | None:
    """Return neighbours along each axis whose numbers an array has once each; None where an axis has none."""
    numbers = array.reshape(-1).astype(np.float64)
    order = np.argsort(numbers, kind="stable")
    rng, found = np.random.default_rng(0), list[_Pair | None]()
    for axis, size in enumerate(made.shape):
        if size == 1:
            found.append(None)
            continue
        indices = np.stack([rng.integers(0, each - (at == axis), _ANCHORS) for at, each in enumerate(made.shape)], 1)
        first, second = (
            _found(numbers[order], made[tuple((indices + step).T)]) for step in (0, np.eye(made.ndim, dtype=int)[axis])
        )
        both = (first >= 0) & (second >= 0)
        if not both.any():
            return None
        found.append(_Pair(indices[both], order[first[both]], order[second[both]]))
    return found if any(found) else None


def _found(numbers: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the places of numbers among sorted ones; -1 where there is none, or not one alone.

    Args:
        numbers: Sorted, ``[n]``.
        wanted: ``[m]``.
    """
    at = np.searchsorted(numbers, wanted)[:, None] + np.arange(-2, 2)
    off = np.abs(numbers[np.clip(at, 0, numbers.size - 1)] - wanted[:, None])
    off = np.where((at < 0) | (at >= numbers.size), np.inf, off)
    nearest, rows = off.argmin(1), np.arange(wanted.size)
    least, next_one = off[rows, nearest], np.partition(off, 1, axis=1)[:, 1]
    alone = (least <= _SAME * _rms(numbers)) & (next_one > _ALONE * least) & (next_one > 0.0) & np.isfinite(wanted)
    return np.where(alone, at[rows, nearest], -1)


def _commonest(numbers: np.ndarray) -> int:
    values, counts = np.unique(numbers, return_counts=True)
    return int(values[counts.argmax()])


def _off(made: np.ndarray, right: np.ndarray) -> float:
    """Return the RMS error of the known numbers as a share of the right ones' RMS; inf where few are known."""
    known = np.isfinite(made)
    if np.count_nonzero(known) < _LEAST_KNOWN * made.size:
        return math.inf
    return _rms(made[known] - right.astype(np.float64)[known]) / (_rms(right) or math.inf)


def _rms(numbers: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(numbers, dtype=np.float64))))

"""The transform from one feed to another, where both are given.

Numbers are fitted, by channel, after every way in which pixels and channels may have changed places; what leaves
nothing is the answer, the simplest first, and else what leaves least.
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from tensortriage_feeds.arrays.fits import EXACT, UNLIKE, fitted, unexplained
from tensortriage_feeds.arrays.functions import KIND
from tensortriage_feeds.arrays.input_numbers import scaled
from tensortriage_feeds.catalogue import InputCandidates, candidates
from tensortriage_feeds.pictures import PictureAxes, part, picture_axes
from tensortriage_feeds.tokens import exchanges, token_candidates
from tensortriage_feeds.transforms import CHANCE_BITS, Tensors, Transform, composed, cure_of, of_input
from tensortriage_feeds.two_feeds.detail import changed_leaves_more, in_detail, leaves_more
from tensortriage_feeds.two_feeds.geometry import geometries
from tensortriage_feeds.two_feeds.parts import part_of
from tensortriage_feeds.two_feeds.read_off import read_off
from tensortriage_feeds.two_feeds.solved import CLOSE, part_unlike, solved
from tensortriage_feeds.two_feeds.token_rows import other_rows
from tensortriage_feeds.two_feeds.usual_numbers import ALIKE, MOST_CHANNELS, NEAR, named

LESS = 0.5
"""The share of the difference that a transform which is not exact leaves at most: nothing is named that leaves most."""
_LEAST_FITTED = 4
"""Numbers through which a line is no chance: two have one."""
_LEAST_ROWS = 8
"""Rows of a table through which a line for each column is no chance."""
_OF_EACH = ("colours-mixed", "dtype", "gamma", "function")
"""Kinds of changes of each pixel by itself."""
_MOST_PARTS, _MOST_NUMBERS = 8, 32
"""Indices of an axis that are explained one by one, and whole numbers that are listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class FoundDifference:
    """How one feed became another.

    Attributes:
        steps: Transforms, in their order; empty where the feeds are equal, or nothing was found.
        residual: Remaining difference, as a share of the deviation of the inputs that it leaves unexplained; 0 for
            none.
        inputs: Inputs that differ.
        rounding: The largest difference, as a share of the deviation, where there is none but of rounding; else 0.
        complete: Whether something is told of each of the inputs that differ.
    """

    steps: tuple[Transform, ...]
    residual: float
    inputs: tuple[str, ...]
    rounding: float = 0.0
    complete: bool = True

    @property
    def is_known(self) -> bool:
        """Whether the transform is known."""
        return bool(self.steps) and self.complete and self.residual < UNLIKE


def difference(mine: Tensors, theirs: Tensors) -> FoundDifference:
    """Return the transform of one feed that makes another.

    Args:
        mine: The right one.
        theirs: The other one, with the same inputs; their shapes may differ.
    """
    unlike = tuple(name for name in mine if name in theirs and not equal(mine[name], theirs[name]))
    if not unlike:
        return FoundDifference((), 0.0, ())
    for transform in (*exchanges(mine), *token_candidates(mine)):
        made = transform(mine)
        if all(equal(made[name], theirs[name]) for name in mine if name in theirs):
            return FoundDifference((transform,), 0.0, unlike)
    if (rows := other_rows(mine, theirs)) is not None:
        return FoundDifference((rows,), 0.0, unlike)
    steps: list[Transform] = []
    worst, off, known = 0.0, 0.0, True
    for name in unlike:
        ways = [
            *_ways(name, mine[name], theirs[name]),
            *(_Way((step,), left) for step, left in in_detail(name, mine[name], theirs[name])),
        ]
        found = min(ways, key=lambda way: way.price, default=_Way((), np.inf))
        if found.residual > EXACT and mine[name].shape == theirs[name].shape:
            plain = unexplained(mine[name], theirs[name], None)
            found = found if found.residual <= LESS * plain else _Way((), plain)
        told = found.steps(name)
        steps.extend(told)
        exact, rounded = found.residual <= EXACT, found.residual <= EXACT and not told
        worst = max(worst, 0.0 if exact else found.residual)
        off = max(off, unexplained(mine[name], theirs[name], None) if rounded else 0.0)
        known = known and (exact or bool(told))
    return FoundDifference(tuple(steps), worst, unlike, off if not steps and known else 0.0, known)


def equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two tensors are equal, in type as well, NaN for NaN."""
    same = one.dtype == other.dtype and one.shape == other.shape
    return same and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """One way in which a tensor may have become another.

    Attributes:
        before: Transforms of places.
        residual: Remaining difference, numbers fitted; see `unexplained`.
        fit: Scale and offset by channel, or of all, the tensor before, and its axes where it is by channel.
        after: A change of type.
    """

    before: tuple[Transform, ...]
    residual: float
    fit: tuple[np.ndarray, np.ndarray, np.ndarray, PictureAxes | None] | None = None
    after: tuple[Transform, ...] = ()

    @property
    def price(self) -> float:
        """The rest that it leaves, each change of places beside: one more has to leave a third less."""
        return self.residual * (1 + 0.5 * len(self.before))

    def steps(self, name: str) -> tuple[Transform, ...]:
        """Return all transforms, those of numbers by their usual names."""
        if self.fit is None:
            return (*self.before, *self.after)
        scale, offset, made, axes = self.fit
        usual = named(scale, offset, made, axes, max(ALIKE, self.residual))
        return (*self.before, scaled(name, usual, axes, made.ndim), *self.after)


def _ways(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[_Way]:
    """Yield transforms of a tensor and their residuals, until one leaves none."""
    nearest = _Way((), np.inf)
    for before, made in _rearranged(name, mine, theirs):
        if made.shape != theirs.shape or leaves_more(made, theirs, nearest.residual):
            continue
        found = _with_numbers(name, before, made, theirs)
        yield found
        if found.residual <= EXACT:
            return
        nearest = min(nearest, found, key=lambda way: way.residual)
    copied = part_of(name, mine, theirs)
    if mine.shape == theirs.shape:
        if copied:
            yield _Way((copied,), 0.0)
            return
        if theirs.size and np.ptp(theirs) == 0 and picture_axes(mine.shape) is None:
            yield _lost(name, theirs)
            return
        known = candidates(name, mine)
        data = [each for each in known.numbers if each.kind == "gamma" or _is_sharp(each)]
        types = [(*nearest.before, each) for each in known.others if each.kind == "dtype" and nearest.before]
        least = nearest.residual
        for steps in (*((each,) for each in (*token_candidates({name: mine}), *data, *known.others)), *types):
            if all(step.kind in _OF_EACH and "each" not in step.parameters for step in steps) and changed_leaves_more(
                functools.partial(_made, name, steps), mine, theirs, least
            ):
                continue
            made = _made(name, steps, mine)
            if leaves_more(made, theirs, least):
                continue
            found = _with_numbers(name, steps, made, theirs)
            if found.residual > CLOSE and _is_sharp(steps[-1]):
                continue
            least = min(least, found.residual)
            yield found
            if found.residual <= EXACT:
                return
        found_off = itertools.chain(solved(name, mine, theirs), read_off(name, mine, theirs))
        yield from (_Way((step,), left) for step, left in found_off)
        if (part := _in_part(name, mine, theirs)) is not None:
            yield part
        if theirs.size and np.ptp(theirs) == 0:
            yield _lost(name, theirs)
            return
    if (axes := picture_axes(mine.shape)) and (other := picture_axes(theirs.shape)):
        yield from _geometric(name, (mine, axes), (theirs, other))
    if copied:
        yield _Way((copied,), 0.0)


def _made(name: str, steps: tuple[Transform, ...], array: np.ndarray) -> np.ndarray:
    return np.asarray(composed(steps, {name: array})[name])


def _is_sharp(transform: Transform) -> bool:
    """Return whether a transform is told only where it leaves next to nothing: functions that rise are all alike."""
    return transform.kind == KIND or "each" in transform.parameters or "space" in transform.parameters


def _in_part(name: str, mine: np.ndarray, theirs: np.ndarray) -> _Way | None:
    """Return what became of some indices of an axis, each by itself, where others are as they were."""
    said: list[tuple[int, tuple[Transform, ...]]] = []
    axis, size, indices = part_unlike(mine, theirs)
    for index in indices if len(indices) <= _MOST_PARTS else ():
        one, other = (np.take(array, index, axis).ravel() for array in (mine, theirs))
        ways = () if one.size < _LEAST_ROWS or size < _LEAST_FITTED else _ways(name, one, other)
        exact = _replaced(name, one, other) or next((way for way in ways if way.residual <= EXACT), None)
        if exact is None or not (steps := exact.steps(name)):
            return None
        said.append((index, steps))
    if not said:
        return None
    words = "; ".join(
        f"{' and '.join(step.words for step in steps)} in index {at} of axis {axis}" for at, steps in said
    )
    told = of_input(name, said[0][1][0].kind, f"{words}, elsewhere as it is", lambda _: theirs,
                    "; ".join(f"of index {at}: {cure_of(steps)}" for at, steps in said),
                    axis=axis, indices=[at for at, _ in said])  # fmt: skip
    return _Way((told,), 0.0)


def _replaced(name: str, one: np.ndarray, other: np.ndarray) -> _Way | None:
    """Return that each of a few whole numbers, such as those of categories, is always another one."""
    pairs = sorted(set(zip(one.tolist(), other.tolist(), strict=True)))
    if any(number != round(number) for pair in pairs for number in pair) or len({was for was, _ in pairs}) < len(pairs):
        return None
    if len({now - was for was, now in pairs}) == 1 or 2 * sum(was != now for was, now in pairs) > len(pairs) > len(
        {now for _, now in pairs}
    ):
        return None  # a line, or a limit
    again = (one.size - len(pairs)) * np.log2(max(len({now for _, now in pairs}), 1))
    if len(pairs) > _MOST_NUMBERS or again < CHANCE_BITS:
        return None
    told = ", ".join(f"{was:g} is {now:g}" for was, now in pairs if was != now)
    cure = "number categories as in training (an encoder that is saved with the model)"
    words = f"has other numbers for the same things: {told}"
    return _Way((of_input(name, "mapping", words, lambda _: other, cure),), 0.0)


def _lost(name: str, theirs: np.ndarray) -> _Way:
    words = f"is {theirs.flat[0] + 0:g} everywhere, whatever it is given"
    cure = "hand {x} over: it is lost on its way"
    return _Way((of_input(name, "constant", words, lambda x: np.full_like(x, theirs.flat[0]), cure),), 0.0)


def _rearranged(name: str, mine: np.ndarray, theirs: np.ndarray) -> Iterator[tuple[tuple[Transform, ...], np.ndarray]]:
    """Yield the tensor with channels and pixels in other places, the fewest changes first."""
    known = candidates(name, mine) if mine.shape == theirs.shape else InputCandidates()
    yield (), mine
    for chosen in itertools.chain(
        ((each,) for each in (*known.channels, *known.places)), itertools.product(known.channels, known.places)
    ):
        yield chosen, np.asarray(composed(chosen, {name: mine})[name])
    if mine.shape == theirs.shape:
        return
    if mine.size == theirs.size:
        for order in itertools.permutations(range(mine.ndim)):
            made = np.transpose(mine, order)
            if order != tuple(range(mine.ndim)) and made.shape == theirs.shape:
                yield _told(name, "layout", f"has its axes in the order {list(order)}", axes=list(order)), made
        words = f"has the shape {list(theirs.shape)} instead of {list(mine.shape)}"
        yield _told(name, "shape", words, shape=list(theirs.shape)), mine.reshape(theirs.shape)
    if mine.ndim == theirs.ndim and mine.shape[1:] == theirs.shape[1:] and len(theirs) < len(mine):
        words = f"has the first {len(theirs)} of {len(mine)} rows"
        yield _told(name, "batch-order", words, rows=len(theirs)), mine[: len(theirs)]


def _told(name: str, kind: str, words: str, **parameters: object) -> tuple[Transform, ...]:
    return (of_input(name, kind, words, lambda x: x, f"pass {{x}} as in the other file ({kind})", **parameters),)


def _with_numbers(name: str, before: tuple[Transform, ...], made: np.ndarray, theirs: np.ndarray) -> _Way:
    """Return the transforms that were made, with the scale and offset that fit best; none where none is needed."""
    after = _typed(name, made, theirs)
    exact = EXACT if not after or theirs.dtype.kind != "f" else max(EXACT, float(np.finfo(theirs.dtype).eps))
    if (left := unexplained(made, theirs, None)) <= exact:
        return _Way(before, 0.0 if left <= EXACT or after else left, after=after)
    if np.ptp(theirs) == 0 or made.size < _LEAST_FITTED:
        return _Way(before, max(left, UNLIKE), after=after)  # a line through few numbers says nothing
    axes = picture_axes(theirs.shape) or _columns(theirs.shape)
    uniform, by_channel = fitted(made, theirs, None), fitted(made, theirs, axes)
    chosen, used = (uniform, None) if uniform[2] <= max(1.05 * by_channel[2], exact) else (by_channel, axes)
    if chosen[2] > exact and (rows := _rows(theirs.shape)) and (by_row := fitted(made, theirs, rows))[2] <= exact:
        chosen, used = by_row, rows
    scale, offset, residual = chosen
    if residual > 0.9 * left or not np.isfinite(residual):
        return _Way(before, left, after=after)
    return _Way(before, 0.0 if residual <= exact else residual, (scale, offset, made, used), after)


def _rows(shape: tuple[int, ...]) -> PictureAxes | None:
    """Return the axis of a spectrogram's bins as that of channels, where enough numbers bear out those of each."""
    return PictureAxes(1, 0, 2) if len(shape) == 3 and shape[2] >= _LEAST_ROWS and shape[1] > MOST_CHANNELS else None


def _columns(shape: tuple[int, ...]) -> PictureAxes | None:
    """Return the axis of a table's columns as that of channels, where enough rows bear out numbers of each column."""
    return PictureAxes(1, 0, 0) if len(shape) == 2 and shape[0] >= _LEAST_ROWS else None


def _typed(name: str, made: np.ndarray, theirs: np.ndarray) -> tuple[Transform, ...]:
    if made.dtype == theirs.dtype or made.dtype == np.float64:
        return ()
    words = f"is {theirs.dtype} instead of {made.dtype}"
    step = of_input(name, "dtype", words, lambda x: x.astype(theirs.dtype), f"{{x}} = {{x}}.astype(np.{made.dtype})",
                    dtype=str(theirs.dtype))  # fmt: skip
    return (step,)


def _geometric(
    name: str, mine: tuple[np.ndarray, PictureAxes], theirs: tuple[np.ndarray, PictureAxes]
) -> Iterator[_Way]:
    """Yield crops, letterboxes and other sizes, at each order of the channels, with their residuals."""
    array, axes = mine
    other, other_axes = theirs
    if array.shape[axes.channel] != other.shape[other_axes.channel]:
        return
    array = _in_layout(array, axes, other_axes, other.ndim)
    for shape in geometries(name, array, other, other_axes):
        seen = part(other, other_axes, shape.box)
        for order in _orders(array.shape[other_axes.channel]):
            made = np.take(shape.made, order, axis=other_axes.channel)
            scale, offset, residual = fitted(made, seen, other_axes)
            steps: tuple[Transform, ...] = (shape.transform,)
            if order != sorted(order):
                kind = "channels-reversed" if order[:3] == [2, 1, 0] else "channels-permuted"
                steps += (of_input(name, kind, f"has its channels in the order {order}", lambda x: x,
                                   f"{{x}} = {{x}} in the order {order}", order=order),)  # fmt: skip
            plain = unexplained(made, seen, None)
            fit = (scale, offset, made, other_axes) if residual < 0.9 * plain and not _is_idle(scale, offset) else None
            yield _Way(steps, min(residual, plain), fit)
            if residual <= EXACT:
                return


def _is_idle(scale: np.ndarray, offset: np.ndarray) -> bool:
    """Return whether numbers are those of pictures that only differ in how they were resized."""
    return bool(np.abs(scale - 1).max() <= NEAR and np.abs(offset).max() <= NEAR)


def _orders(channels: int) -> Iterable[list[int]]:
    plain = list(range(channels))
    return [plain, [2, 1, 0, *plain[3:]]] if channels >= 3 else [plain]


def _in_layout(array: np.ndarray, axes: PictureAxes, other: PictureAxes, rank: int) -> np.ndarray:
    """Return pictures with their channels where the other tensor has them, and a batch if that has one."""
    found = np.moveaxis(array, axes.channel, -1) if axes.channel < axes.height else array
    if found.ndim < rank:
        found = found[None]
    elif found.ndim > rank:
        found = found[0]
    return np.moveaxis(found, -1, other.channel) if other.channel < other.height else found

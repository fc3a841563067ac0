"""The change to the numbers of a weight: moved, rounded, cut off, or made again.

Relations are tried from the most to the least specific; one is told only if it gives every number. What none gives is
told by how many numbers differ, and by how much.
"""

import itertools
from collections.abc import Callable

import numpy as np

from tensortriage.model.similarity.changes import ChangeKind
from tensortriage.values.dtype import DType
from tensortriage.values.text import magnitude, percent

_FORMATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2)
"""Those of more digits first: a number of one with fewer is one of the others as well, within their range."""

_DECIMALS = range(5)
_LEVELS = {127: "8 bits", 7: "4 bits"}
"""Largest integer of symmetric quantizers, by which scales are the largest number divided."""

_HALF_A_STEP, _ON_THE_GRID = 0.51, 1e-3
"""In steps: how far rounding to a grid moves, and float32's rounding of what lies on it."""

_FEWEST, _MOST_BLOCKS, _FEW_INDICES = 8, 16, 0.25
"""Numbers from which on a relation is no chance, parts of an axis that are told one by one, and the share of its
indices up to which those that differ are told."""

_RANK_SHARE, _MOST_RANK = 4, 256
"""A rank is low up to this part of a weight's shorter side, and up to this number."""
_OF_LOW_RANK = 1e-2
"""Share of a change's size that its low rank leaves: weights kept in fp16 leave 1e-3 of themselves, and of numbers at
random a quarter of the ranks leaves 0.6 and more."""
_MOST_AXES = 4
_LIMITS = ((1e-7, 1e4), (5.96e-8, 65504.0))
"""Sizes of numbers that converters to fp16 let pass: by default those of onnxconverter-common, and ONNX Runtime's."""


def relation(was: np.ndarray, now: np.ndarray) -> tuple[ChangeKind, str] | None:
    """Return the change of a weight, as the rest of ``has its weight 'w' ...``; None if no known change explains it.

    Args:
        was: The numbers as they were, float64.
        now: The others, of the same shape.
    """
    if words := _limited(was, now):
        return ChangeKind.WEIGHT_LIMITED, words
    if was.size < _FEWEST or not (np.isfinite(was).all() and np.isfinite(now).all()):
        return None
    tried: tuple[tuple[ChangeKind, Callable[[np.ndarray, np.ndarray], str]], ...] = (
        (ChangeKind.WEIGHT_REORDERED, _reordered),
        (ChangeKind.WEIGHT_COARSENED, narrowed),
        (ChangeKind.WEIGHT_COARSENED, _zeroed),
        (ChangeKind.WEIGHT_COARSENED, _clipped),
        (ChangeKind.WEIGHT_COARSENED, _on_a_grid),
        (ChangeKind.WEIGHT_ADAPTED, _adapted),
    )
    return next(((kind, words) for kind, find in tried if (words := find(was, now))), None)


def narrowed(was: np.ndarray, now: np.ndarray) -> str:
    """Return the narrower format whose numbers a weight was rounded to; empty when there is none."""
    return next((f"rounded to {dtype.label}" for dtype in _FORMATS if np.array_equal(_in(was, dtype), now)), "")


def _in(was: np.ndarray, dtype: DType) -> np.ndarray:
    with np.errstate(over="ignore"):
        return was.astype(np.float32).astype(dtype.numpy).astype(np.float64)


def _reordered(was: np.ndarray, now: np.ndarray) -> str:
    if (
        was.ndim > _MOST_AXES
        or was.max() != now.max()
        or not np.array_equal(np.sort(was, axis=None), np.sort(now, axis=None))
    ):
        return ""
    axes = [axis for axis in range(was.ndim) if was.shape[axis] > 1]
    for count in range(1, len(axes) + 1):
        for chosen in itertools.combinations(axes, count):
            if np.array_equal(np.flip(was, chosen), now):
                return f"reversed along {_axes(chosen)}"
    for axis in axes:
        if (order := _order(was, now, axis)) is not None:
            return f"with the slices of axis {axis} {_in_words(order)}"
    for turned in itertools.permutations(range(was.ndim)):
        if np.array_equal(was.transpose(turned).ravel(), now.ravel()):
            return f"with its axes in the order {list(turned)} and the original shape"
    return "in another order of its elements"


def _order(was: np.ndarray, now: np.ndarray, axis: int) -> np.ndarray | None:
    """Return the original index of each slice of an axis; None where some have none."""
    left, right = (np.ascontiguousarray(np.moveaxis(x, axis, 0)).reshape(x.shape[axis], -1) for x in (was, now))
    place = {row.tobytes(): index for index, row in enumerate(left)}
    order = [place.get(row.tobytes(), -1) for row in right]
    return None if min(order) < 0 else np.array(order)


def _in_words(order: np.ndarray) -> str:
    """Return an order of slices: rolled, in blocks (gates of an LSTM, heads), or any."""
    size = order.size
    if np.array_equal(order, np.roll(np.arange(size), shift := int(np.flatnonzero(order == 0)[0]))):
        return f"rolled by {shift}" if shift <= size // 2 else f"rolled by {shift - size}"
    moved = np.flatnonzero(order != np.arange(size))
    if moved.size == 2:
        return f"{moved[0]} and {moved[1]} exchanged"
    for blocks in range(3, _MOST_BLOCKS + 1):
        if size % blocks == 0 and size > blocks:
            rows = order.reshape(blocks, -1)
            firsts = rows[:, :1]
            if np.array_equal(rows, firsts + np.arange(size // blocks)) and not (firsts % (size // blocks)).any():
                return f"in another order: blocks of {size // blocks} as {(firsts[:, 0] * blocks // size).tolist()}"
    return f"in another order ({moved.size} of {size})"


def _zeroed(was: np.ndarray, now: np.ndarray) -> str:
    for dtype in (None, *_FORMATS):
        kept = was if dtype is None else _in(was, dtype)
        gone = kept != now
        if now[gone].any():
            continue
        told = f"zeroed in {_share(gone)}{places(gone)}"
        if dtype is None:
            return told
        least, normal = (magnitude(float(each)) for each in (np.abs(kept[gone]).max(), dtype.finfo.smallest_normal))
        return f"rounded to {dtype.label} and {told}, up to {least} (subnormal in that type is below {normal})"
    return ""


def _limited(was: np.ndarray, now: np.ndarray) -> str:
    for least, most in _LIMITS:
        sizes = np.where(was == 0.0, 0.0, np.clip(np.abs(was), least, most))
        limited = bool((sizes != np.abs(was)).any())
        if limited and np.array_equal(np.copysign(sizes, was).astype(np.float16).astype(np.float64), now):
            beyond = float(np.abs(was[np.abs(was) > most]).max(initial=0.0))
            return (
                f"cut at {magnitude(most)} ({magnitude(beyond)} before) by the converter to fp16 (max_finite_val)"
                if beyond
                else f"raised to {magnitude(least)} by the converter to fp16 (min_positive_val)"
            )
    return ""


def _clipped(was: np.ndarray, now: np.ndarray) -> str:
    low, high = float(now.min()), float(now.max())
    changed = was != now
    if np.count_nonzero(changed) < _FEWEST or not np.array_equal(np.clip(was, low, high), now):
        return ""
    return f"cut off at {magnitude(low)} and {magnitude(high)}, which changes {_share(changed)}"


def _on_a_grid(was: np.ndarray, now: np.ndarray) -> str:
    for decimals in _DECIMALS:
        if np.allclose(np.round(was, decimals), now, rtol=1e-6, atol=1e-9) and now.any():
            return f"rounded to {decimals} decimals"
    for axis in (None, *range(was.ndim)):
        if axis is not None and was.size < _FEWEST * was.shape[axis]:
            continue
        others = None if axis is None else tuple(each for each in range(was.ndim) if each != axis)
        largest = np.abs(now).max(axis=others, keepdims=True)
        for top, words in _LEVELS.items():
            step = np.where(largest > 0.0, largest, 1.0) / top
            places, moved = now / step, np.abs(now - was) / step
            if np.abs(places - np.rint(places)).max() <= _ON_THE_GRID and moved.max() <= _HALF_A_STEP:
                scales = "one scale" if axis is None else f"a scale for each index of axis {axis}"
                return f"rounded to {words} ({scales})"
    return ""


def _adapted(was: np.ndarray, now: np.ndarray) -> str:
    """Return the rank of a matrix that was added, if it is low; see `_OF_LOW_RANK`."""
    change = now - was
    most = min(was.shape) // _RANK_SHARE if was.ndim == 2 else 0
    sketched = min(most, _MOST_RANK)
    if not sketched or np.count_nonzero(change) < change.size / 2:
        return ""
    random = np.random.default_rng(0).standard_normal((was.shape[1], sketched + 1))
    basis, _ = np.linalg.qr(change @ random)
    sizes = np.linalg.svd(basis.T @ change, compute_uv=False)
    left = np.linalg.norm(change - basis @ (basis.T @ change))
    rank = int(np.count_nonzero(sizes > _OF_LOW_RANK * sizes[0]))
    if left > _OF_LOW_RANK * np.linalg.norm(change) or not 1 < rank <= sketched:  # an offset of each row has rank 1
        return ""
    return (
        f"moved by a matrix of rank {rank} ({percent(float(np.linalg.norm(change) / np.linalg.norm(was)))} of its "
        "size), as a LoRA adapter does that is merged in one of both files alone, or by another scale"
    )


def counted(was: np.ndarray, now: np.ndarray) -> str:
    """Return how many numbers of two arrays of one shape differ, where, and by how much; of few, the numbers."""
    changed = was != now
    if changed.any() and was.size <= _FEWEST and was.dtype.kind not in "OSU":
        return f"{_numbers(now)} instead of {_numbers(was)}"
    if was.dtype.kind in "iu" and was.dtype == now.dtype and np.ptp(now.astype(object) - was) == 0:
        by = int(now.flat[0]) - int(was.flat[0])
        return f"all {was.size} numbers are {abs(by)} too {'large' if by > 0 else 'small'}"
    told = f"{_share(changed)} differ"
    if was.dtype.kind in "OSUb" or not changed.any():
        return told if changed.any() else "equal but for signs of zeros"
    with np.errstate(all="ignore"):
        wide, other = was.astype(np.float64), now.astype(np.float64)
        largest = float(np.nanmax(np.abs(other - wide)))
        lost = np.count_nonzero(np.isfinite(wide) & ~np.isfinite(other))
        size = float(np.linalg.norm(other - wide) / np.linalg.norm(wide))
    told += f"{places(changed)}, by at most {magnitude(largest)}"
    if was.dtype.kind not in "iu" and was.size > 1 and np.isfinite(size):
        told += f" ({percent(size)} of its size)"
    return told + (f"; {lost} became NaN or Inf" if lost else "")


def _numbers(array: np.ndarray) -> str:
    told = [magnitude(float(each), 4) if array.dtype.kind == "f" else str(each) for each in array.ravel()]
    return told[0] if array.size == 1 else f"[{', '.join(told)}]"


def places(changed: np.ndarray) -> str:
    """Return in which few indices of an axis all changed elements are, as the rest of a sentence; empty if nowhere."""
    best: tuple[float, str] = (_FEW_INDICES, "")
    for axis, size in enumerate(changed.shape):
        indices = np.flatnonzero(changed.any(axis=tuple(each for each in range(changed.ndim) if each != axis)))
        if changed.ndim > 1 and indices.size and indices.size / size <= best[0]:
            shown = ", ".join(map(str, indices[:4])) + (", ..." if indices.size > 4 else "")
            best = (
                indices.size / size,
                f", all in {'index' if indices.size == 1 else 'indices'} {shown} of axis {axis}",
            )
    return best[1]


def _share(changed: np.ndarray) -> str:
    return f"{np.count_nonzero(changed)} of {changed.size} elements"


def _axes(axes: tuple[int, ...]) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"

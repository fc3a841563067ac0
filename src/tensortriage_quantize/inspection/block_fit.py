"""Do the scales of blocks fit the numbers that they are for? A fault is named by the change that would make them right.

The yardstick is the same quantizer with scales chosen for these numbers, each block's largest on the largest element.
Scales that are no powers of two cannot be held by E8M0, in which MX formats keep them.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from tensortriage.precision.sdk import decibels, integer_range, near_prediction
from tensortriage.sdk import DType, magnitude

MX_BLOCK = 32
"""Elements of a block, in all MX formats (OCP Microscaling Formats specification 1.0, table 1)."""


@dataclasses.dataclass(frozen=True, slots=True)
class BlockFit:
    """The fit of the scales of blocks.

    Attributes:
        kind: ``fits``, ``scale-not-positive``, ``scale-shape``, ``scale-unset``, ``scale-inverted``, ``axis``,
            ``order``, ``scale-too-small``, ``scale-too-large``, ``scale-repeated``, ``zero-point``, ``scale-unfit`` or
            ``scale-unrounded``.
        error: Relative RMS error of quantizing and dequantizing the numbers; None where these are not known.
        best_error: The same with the best scales.
        words: The fault and its cure; empty where they fit.
    """

    kind: str
    error: float | None = None
    best_error: float | None = None
    words: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Blocks:
    """Which numbers share a scale.

    Attributes:
        axis: The axis along which neighbours do.
        size: How many do.
        dtype: Type of the quantized numbers.
    """

    axis: int
    size: int
    dtype: DType


def fit_blocks(
    numbers: np.ndarray | None,
    scale: np.ndarray,
    zero_point: np.ndarray | None,
    *,
    shape: tuple[int, ...],
    blocks: Blocks,
) -> BlockFit:
    """Judge scales of blocks.

    Args:
        numbers: The numbers to quantize, finite, of ``shape``; None where they are unknown.
        scale: Scale of ``shape``, but for the axis: one per block there.
        zero_point: Likewise, or None for 0.
        shape: Shape of the tensor.
        blocks: Which numbers share a scale.
    """
    scales, axis, block, dtype = scale.astype(np.float64), blocks.axis % len(shape), blocks.size, blocks.dtype
    wanted = _scale_shape(shape, axis, block)
    if scales.shape != wanted:
        text = f"its scales have shape {list(scales.shape)}, blocks of {block} along axis {axis} need {list(wanted)}"
        return BlockFit("scale-shape", words=f"{text}; correct axis, block_size or the scales")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        bad = scales[~(np.isfinite(scales) & (scales > 0))].flat[0]
        return BlockFit(
            "scale-not-positive", words=f"its scale {magnitude(bad)} is not a positive number; calibrate again"
        )
    if numbers is None:
        return _alone(scales, block, dtype)
    x = numbers.astype(np.float64)
    zeros = np.zeros(scales.shape) if zero_point is None else zero_point.astype(np.float64)
    if zeros.shape != scales.shape:
        text = f"its zero points have shape {list(zeros.shape)}, its scales {list(scales.shape)}; correct the former"
        return BlockFit("zero-point", words=text)
    error = _error(x, scales, zeros, axis, block, dtype)
    shifted = bool(zeros.any()) or (_is_unsigned(dtype) and bool((x < 0).any()))
    best, best_zeros = _best(x, axis, block, dtype, shifted=shifted)
    least = _error(x, best, best_zeros, axis, block, dtype)
    if _near(error, least):
        return dataclasses.replace(_unrounded(scales, block, dtype), error=error, best_error=least)
    kind, words = _mistake(x, (scales, zeros), (best, best_zeros), Blocks(axis, block, dtype), least)
    return BlockFit(kind, error, least, words)


def _alone(scales: np.ndarray, block: int, dtype: DType) -> BlockFit:
    """Judge scales by nothing but themselves."""
    if scales.size > 1 and (scales == 1).all():
        return BlockFit("scale-unset", words=f"all its {scales.size} scales are 1, as if none was set; calibrate")
    return _unrounded(scales, block, dtype)


def _unrounded(scales: np.ndarray, block: int, dtype: DType) -> BlockFit:
    if not dtype.is_float or block != MX_BLOCK:
        return BlockFit("fits")
    odd = int((np.frexp(scales)[0] != 0.5).sum())
    if not odd:
        return BlockFit("fits")
    return BlockFit(
        "scale-unrounded",
        words=f"{odd} of its {scales.size} scales are not powers of two, which E8M0 cannot hold: an engine that "
        "computes in MX rounds them; store 2 ** (floor(log2(largest)) - emax)",
    )


def _mistake(
    x: np.ndarray,
    given: tuple[np.ndarray, np.ndarray],
    best: tuple[np.ndarray, np.ndarray],
    blocks: Blocks,
    least: float,
) -> tuple[str, str]:
    """Name the fault: the one change after which the same scales fit, or their likely origin."""
    scales, zeros = given
    axis, block, dtype = blocks.axis, blocks.size, blocks.dtype
    if (scales == 1).all():
        return "scale-unset", f"all its {scales.size} scales are 1, as if none was set; calibrate"
    tried: list[tuple[float, str, str]] = []
    inverse = _error(x, 1 / scales, zeros, axis, block, dtype)
    tried.append((inverse, "scale-inverted", "its scales divide where they should multiply; store 1 / scale"))
    for (other, arranged), (_, moved) in zip(
        _arrangements(scales, x.shape, axis, block), _arrangements(zeros, x.shape, axis, block), strict=True
    ):
        if other == axis:
            text = f"its scales are in another order than the blocks along axis {axis}; transpose them"
        else:
            text = f"its scales fit blocks along axis {other}, and are applied along axis {axis}; set axis to {other}"
        away = _error(x, arranged, moved, other, block, dtype)
        if other == axis:  # scales alone may be turned
            away = min(away, _error(x, arranged, zeros, axis, block, dtype))
        tried.append((away, "order" if other == axis else "axis", text))
    factor = float(np.median(scales / best[0]))
    word = "small" if factor < 1 else "large"
    text = f"its scales are too {word}, by a factor of {magnitude(max(factor, 1 / factor))}; calibrate again"
    tried.append((_error(x, scales / factor, zeros, axis, block, dtype), f"scale-too-{word}", text))
    if zeros.any() or best[1].any():
        fitting = _zeros(x, scales, axis, block, dtype)
        text = "its zero points, or their absence, do not fit its scales and numbers; calibrate again"
        tried.append((_error(x, scales, fitting, axis, block, dtype), "zero-point", text))
    found, kind, words = min(tried)
    return (kind, words) if _near(found, least) else _likeness(scales, best[0])


def _likeness(scales: np.ndarray, best: np.ndarray) -> tuple[str, str]:
    """Describe scales that no single change makes fit."""
    for along, size in enumerate(scales.shape):
        first = np.take(scales, [0], axis=along)
        if size > 1 and (scales == first).all():
            return (
                "scale-repeated",
                f"its scales are the same all along axis {along}, where the numbers need others: broadcast from "
                f"fewer? Store one for each block",
            )
    low, high = (float(np.quantile(scales / best, share)) for share in (0.05, 0.95))
    text = (
        f"its scales are {magnitude(low)} to {magnitude(high)} times those that fit, block by block: of other numbers?"
    )
    return "scale-unfit", f"{text} Calibrate again"


def _near(error: float, least: float) -> bool:
    """Return whether an error is near the least."""
    return near_prediction(0.0 if not error else decibels(error / least) if least else math.inf)


def _arrangements(
    scales: np.ndarray, shape: tuple[int, ...], axis: int, block: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield other axes, and scales as blocks along them would have them: as stored, and transposed."""
    for other in range(len(shape)):
        wanted = _scale_shape(shape, other, block)
        if math.prod(wanted) != scales.size:
            continue
        if other != axis:
            yield other, scales.reshape(wanted)
        yield other, np.ascontiguousarray(scales.T).reshape(wanted)
        yield other, scales.reshape(wanted[::-1]).T


def _scale_shape(shape: tuple[int, ...], axis: int, block: int) -> tuple[int, ...]:
    return tuple(-(-size // block) if along == axis else size for along, size in enumerate(shape))


def _spread(values: np.ndarray, size: int, axis: int, block: int) -> np.ndarray:
    """Return one number per element of one per block."""
    return np.take(np.repeat(values, block, axis=axis), np.arange(size), axis=axis)


def _is_unsigned(dtype: DType) -> bool:
    return dtype.is_integer and integer_range(dtype)[0] >= 0


def _largest(dtype: DType) -> float:
    return float(dtype.finfo.max) if dtype.is_float else integer_range(dtype)[1]


def _best(x: np.ndarray, axis: int, block: int, dtype: DType, *, shifted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and zero points that put the extremes of each block on the extreme elements.

    Args:
        x: The numbers.
        axis: The axis of blocks.
        block: How many share a scale.
        dtype: Type of the elements.
        shifted: Whether there are zero points; else they are 0, and the largest magnitude decides.
    """
    starts = np.arange(0, x.shape[axis], block)
    if not shifted or dtype.is_float:
        largest = np.maximum.reduceat(np.abs(x), starts, axis=axis)
        return np.where(largest > 0, largest / _largest(dtype), 1.0), np.zeros(largest.shape)
    low, high = integer_range(dtype)
    span = np.maximum(np.maximum.reduceat(x, starts, axis=axis), 0) - _lowest(x, axis, block)
    scales = np.asarray(np.where(span > 0, span / (high - low), 1.0))
    return scales, _zeros(x, scales, axis, block, dtype)


def _lowest(x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Return the smallest number of each block, 0 if all are larger."""
    return np.asarray(np.minimum(np.minimum.reduceat(x, np.arange(0, x.shape[axis], block), axis=axis), 0))


def _zeros(x: np.ndarray, scales: np.ndarray, axis: int, block: int, dtype: DType) -> np.ndarray:
    """Return the zero points that put the smallest number of each block on the smallest element."""
    low, high = integer_range(dtype)
    return np.asarray(np.clip(np.rint(low - _lowest(x, axis, block) / scales), low, high))


def _error(x: np.ndarray, scales: np.ndarray, zeros: np.ndarray, axis: int, block: int, dtype: DType) -> float:
    """Return the relative RMS error of passing x through, as ONNX defines both operators."""
    size = x.shape[axis]
    scale, zero = (_spread(values, size, axis, block) for values in (scales, zeros))
    with np.errstate(over="ignore", divide="ignore"):
        divided = x / scale
    if dtype.is_float:
        top = _largest(dtype)
        passed = np.clip(divided, -top, top).astype(np.float32).astype(dtype.numpy).astype(np.float64) * scale
    else:
        passed = (np.clip(np.rint(divided) + zero, *integer_range(dtype)) - zero) * scale
    power = float(np.square(x).sum())
    return math.sqrt(float(np.square(passed - x).sum()) / power) if power else 0.0

"""Do the scales of blocks fit the numbers that they are for? What is wrong with them is told by what would be right.

The yardstick is the same quantizer with scales chosen for these numbers, each block's largest on the largest element.
Scales that are no powers of two cannot be held by E8M0, in which MX formats keep them.
"""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from tensortriage.compare.judgement.relative_error import decibels
from tensortriage.compare.judgement.within import near_prediction
from tensortriage.compare.quantization.quantizer_fit import integer_range
from tensortriage.values.dtype import DType

MX_BLOCK = 32
"""Of all MX formats (OCP Microscaling Formats specification 1.0, table 1)."""


@dataclasses.dataclass(frozen=True, slots=True)
class BlockFit:
    """How scales of blocks fit.

    Attributes:
        kind: ``fits``, ``scale-not-positive``, ``scale-shape``, ``scale-unset``, ``scale-inverted``, ``axis``,
            ``order``, ``scale-too-small``, ``scale-too-large`` or ``scale-unrounded``.
        error: Relative RMS error of quantizing and dequantizing the numbers; None where these are not known.
        best_error: The same with the best scales.
        words: What is wrong, and what to do; empty where they fit.
    """

    kind: str
    error: float | None = None
    best_error: float | None = None
    words: str = ""


def fit_blocks(
    numbers: np.ndarray | None,
    scale: np.ndarray,
    zero_point: np.ndarray | None,
    *,
    shape: tuple[int, ...],
    axis: int,
    block: int,
    dtype: DType,
) -> BlockFit:
    """Judge scales of blocks.

    Args:
        numbers: What is quantized, finite, of ``shape``; None where it is not known.
        scale: Of ``shape``, but for the axis: one per block there.
        zero_point: Likewise, or None for 0.
        shape: Shape of the tensor.
        axis: The axis along which neighbours share a scale.
        block: How many do.
        dtype: Type of the quantized numbers.
    """
    scales, axis = scale.astype(np.float64), axis % len(shape)
    wanted = _scale_shape(shape, axis, block)
    if scales.shape != wanted:
        text = f"its scales have shape {list(scales.shape)}, blocks of {block} along axis {axis} need {list(wanted)}"
        return BlockFit("scale-shape", words=f"{text}; correct axis, block_size or the scales")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        bad = scales[~(np.isfinite(scales) & (scales > 0))].flat[0]
        return BlockFit("scale-not-positive", words=f"its scale {bad:.3g} is not a positive number; calibrate again")
    if numbers is None:
        return _alone(scales, block, dtype)
    x = numbers.astype(np.float64)
    zeros = np.zeros(scales.shape) if zero_point is None else zero_point.astype(np.float64)
    error = _error(x, scales, zeros, axis, block, dtype)
    best = _best(x, axis, block, dtype)
    least = _error(x, best, np.zeros(best.shape), axis, block, dtype) if not zeros.any() else error
    if _near(error, least):
        return dataclasses.replace(_unrounded(scales, block, dtype), error=error, best_error=least)
    found = _mistake(x, scales, axis, block, dtype, least)
    if found is None:
        factor = float(np.median(scales / best))
        word = "small" if factor < 1 else "large"
        text = f"its scales are too {word}, by a factor of {max(factor, 1 / factor):.3g}; calibrate again"
        found = f"scale-too-{word}", text
    return BlockFit(found[0], error, least, found[1])


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
        words=f"{odd} of its {scales.size} scales are no powers of two, which E8M0 cannot hold: an engine that "
        "computes in MX rounds them; store 2 ** (floor(log2(largest)) - emax)",
    )


def _mistake(
    x: np.ndarray, scales: np.ndarray, axis: int, block: int, dtype: DType, least: float
) -> tuple[str, str] | None:
    """Name the one change after which the same scales fit; None where there is none."""
    if (scales == 1).all():
        return "scale-unset", f"all its {scales.size} scales are 1, as if none was set; calibrate"
    tried: list[tuple[float, str, str]] = []
    none = np.zeros(scales.shape)
    inverse = _error(x, 1 / scales, none, axis, block, dtype)
    tried.append((inverse, "scale-inverted", "its scales divide where they should multiply; store 1 / scale"))
    for other, arranged in _arrangements(scales, x.shape, axis, block):
        if other == axis:
            text = f"its scales are in another order than the blocks along axis {axis}; transpose them"
        else:
            text = f"its scales fit blocks along axis {other}, and are applied along axis {axis}; set axis to {other}"
        away = _error(x, arranged, np.zeros(arranged.shape), other, block, dtype)
        tried.append((away, "order" if other == axis else "axis", text))
    found, kind, words = min(tried)
    return (kind, words) if _near(found, least) else None


def _near(error: float, least: float) -> bool:
    """Say whether an error is near the least."""
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


def _largest(dtype: DType) -> float:
    return float(dtype.finfo.max) if dtype.is_float else integer_range(dtype)[1]


def _best(x: np.ndarray, axis: int, block: int, dtype: DType) -> np.ndarray:
    """Return the scales that put the largest number of each block on the largest element."""
    starts = np.arange(0, x.shape[axis], block)
    largest = np.maximum.reduceat(np.abs(x), starts, axis=axis)
    return np.where(largest > 0, largest / _largest(dtype), 1.0)


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

"""How an engine gets a quantizer wrong: a part of its definition left out, taken from elsewhere, or rounded otherwise.

A misreading is reported when it gives the engine's result and the definition does not.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tensortriage.compare.quantization.quantizer_fit import along_axis, integer_range
from tensortriage.model.ir.graph import Node
from tensortriage.model.quantization.qdq import is_quantizer
from tensortriage.values.dtype import DType

_AGREES = 0.995
"""Share of the elements that a misreading must give exactly: a border case may round the other way."""

_EXACT = 1e-4
"""Relative difference of floats that are given exactly: four digits, which fp16 does not hold and float32 does."""


def misreading(node: Node, operands: Sequence[np.ndarray | None], target: np.ndarray) -> str:
    """Return which misreading of a QuantizeLinear or DequantizeLinear gives a result; empty when none does.

    Args:
        node: The operator.
        operands: One array per input.
        target: The engine's result.
    """
    if not is_quantizer(node) or node.attributes.get("block_size"):
        return ""
    x, scale = operands[0], operands[1]
    if x is None or scale is None or not x.size or x.shape != target.shape:
        return ""
    zero = operands[2] if len(operands) > 2 and operands[2] is not None else np.zeros(scale.shape)
    axis = node.attributes.get("axis", 1)
    axis = axis % x.ndim if isinstance(axis, int) and x.ndim else 0
    for words, made in _misreadings(node.op_type, x, scale, zero, axis, DType.from_numpy(target.dtype)):
        if _same(made, target):
            return words
    return ""


def _same(made: np.ndarray, target: np.ndarray) -> bool:
    wide = target.astype(np.float64)
    with np.errstate(all="ignore"):
        if DType.from_numpy(target.dtype).is_float:
            close = np.abs(made - wide) <= _EXACT * np.maximum(np.abs(made), np.abs(wide))
        else:
            close = made == wide
    return float(close.mean()) >= _AGREES and np.unique(wide.reshape(-1)[: 1 << 14]).size > 1


def _misreadings(
    op_type: str, x: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int, dtype: DType
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the result of each misreading."""
    wide, scales, zeros = (np.asarray(array).astype(np.float64) for array in (x, scale, zero))
    zeros = np.broadcast_to(zeros, scales.shape)
    limits = integer_range(dtype) if dtype.is_integer else (-np.inf, np.inf)

    def made(s: np.ndarray, z: np.ndarray, along: int = axis, rounded: "np.ufunc | None" = None) -> np.ndarray:
        s, z = along_axis(s, wide, along), along_axis(z, wide, along)
        if op_type == "DequantizeLinear":
            return np.asarray((wide - z) * s)
        with np.errstate(all="ignore"):
            return np.asarray(np.clip((rounded or np.rint)(wide / s) + z, *limits))

    if zeros.any():
        yield "it ignores the zero point", made(scales, np.zeros(scales.shape))
        yield "it takes the zero point with the wrong sign", made(scales, -zeros)
    if scales.size > 1:
        first = np.full(scales.shape, scales.flat[0])
        yield "it takes the scale of the first channel for all", made(first, np.full(scales.shape, zeros.flat[0]))
        yield "it takes the scale of the first channel for all, with each one's zero point", made(first, zeros)
        for other in range(wide.ndim):
            if other != axis and wide.shape[other] == scales.size:
                yield f"it applies the scales along axis {other} instead of {axis}", made(scales, zeros, other)
    if op_type == "QuantizeLinear":
        yield "it cuts digits off instead of rounding to nearest", made(scales, zeros, rounded=np.trunc)
        yield "it rounds down instead of to nearest", made(scales, zeros, rounded=np.floor)
        if limits[0] < 0:
            yield (
                "it saturates at the range of uint8",
                np.asarray(np.clip(np.rint(wide / along_axis(scales, wide, axis)), 0, 255)),
            )
    inverse = made(1.0 / scales, zeros)
    if op_type == "DequantizeLinear":
        inverse = np.asarray((wide - along_axis(zeros, wide, axis)) / along_axis(scales, wide, axis))
    yield "it multiplies where it should divide by the scale, or the reverse", inverse

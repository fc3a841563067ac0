"""Quantizers of OpenVINO files: FakeQuantize, and integers that a Subtract and a Multiply make real numbers of.

FakeQuantize cuts off at a range, rounds to so many levels in it, and maps these to another range: two formats with one
grid if that is the same range, and zero on a level of it.
"""

from typing import Any

import ml_dtypes
import numpy as np

from tensortriage_engines.openvino.intermediate import Layer
from tensortriage_engines.openvino.network import OnnxGraph, integers

NEAR = 1e-3
"""Steps by which a zero may miss its level: ranges are stored in float32."""
_LEVELS: dict[int, Any] = {
    256: np.uint8, 255: np.int8, 65536: np.uint16, 65535: np.int16, 16: ml_dtypes.uint4, 15: ml_dtypes.int4,
}  # fmt: skip
_SIGNED: dict[int, Any] = {256: np.int8, 65536: np.int16, 16: ml_dtypes.int4}


def decompressed(network: OnnxGraph, layer: Layer) -> bool:
    """Return whether a Subtract or Multiply belongs to stored integers, which then are known with it."""
    for number in (0, 1):
        numbers, other = network.stored(layer, number), network.stored(layer, 1 - number)
        if numbers is None or other is None or not numbers.whole or not numbers.dtype or numbers.scale is not None:
            continue
        by = network.constant(layer, 1 - number)
        if layer.kind == "Multiply":
            network.keep(layer, numbers.then(layer.name, scale=by))
            return True
        if number == 0 and numbers.zero is None:
            network.keep(layer, numbers.then(layer.name, zero=by))
            return True
    return False


def fake_quantize(network: OnnxGraph, layer: Layer) -> None:
    """Write a pair of QuantizeLinear and DequantizeLinear, or the steps of a FakeQuantize that is no pair."""
    levels = int(layer.data["levels"])
    ends = [np.asarray(network.constant(layer, number), np.float64) for number in range(1, 5)]
    grid = _grid(levels, *ends)
    if grid is None:
        _in_steps(network, layer, levels, ends)
        return
    scale, zero, out = grid
    axis = next((axis for axis, size in enumerate(scale.shape) if size > 1), None)
    if sum(size > 1 for size in scale.shape) > 1:
        _in_steps(network, layer, levels, ends)
        return
    value, dtype = network.value(layer, 0), _LEVELS[levels]
    if levels % 2 == 0 and (zero == levels // 2).all():  # meant to be symmetric
        dtype, zero = _SIGNED[levels], np.zeros_like(zero)
    if levels % 2:  # the lowest integer is none of the levels
        bounds = [
            network.fixed(f"{layer.name}/{key}", end.astype(np.float32))
            for key, end in zip("lh", ends[:2], strict=True)
        ]
        value = network.between(layer, "Max", [network.between(layer, "Min", [value, bounds[1]]), bounds[0]])
    shape, attributes = (
        (() if axis is None else (-1,)),
        {} if axis is None else {"axis": axis + len(network.shape(layer)) - scale.ndim},
    )
    integer = network.fixed(f"{layer.name}/zero_point", zero.astype(np.int64).reshape(shape).astype(dtype))
    steps = [each.astype(np.float32).reshape(shape) for each in (scale, out)]
    names = [network.fixed(f"{layer.name}/scale", steps[0])] * 2
    if not np.allclose(steps[0], steps[1], rtol=NEAR / levels, atol=0.0):
        names[1] = network.fixed(f"{layer.name}/out_scale", steps[1])
    (result,) = network.results(layer)
    whole = network.fresh(f"{result}/whole")
    network.node("QuantizeLinear", layer.name, [value, names[0], integer], [whole], **attributes)
    network.node(
        "DequantizeLinear", f"{layer.name}/DequantizeLinear", [whole, names[1], integer], [result], **attributes
    )
    network.give(layer, [result])


def _grid(levels: int, *ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return step, zero and step of the results for ranges that are integers of a format; else None."""
    if levels not in _LEVELS:
        return None
    low, high, out_low, out_high = np.broadcast_arrays(*ends)
    scale, out = (high - low) / (levels - 1), (out_high - out_low) / (levels - 1)
    if not (scale > 0).all() or not (out > 0).all():
        return None
    bounds = integers(_LEVELS[levels])
    first = bounds.min + levels % 2  # of 255 levels the first is -127
    zero, out_zero = first - low / scale, first - out_low / out
    near = (np.abs(zero - np.rint(zero)) <= NEAR) & (np.abs(out_zero - zero) <= NEAR)
    if not near.all() or (np.rint(zero) < bounds.min).any() or (np.rint(zero) > bounds.max).any():
        return None
    return scale, np.rint(zero), out


def _in_steps(network: OnnxGraph, layer: Layer, levels: int, ends: list[np.ndarray]) -> None:
    low, high, out_low, out_high = (
        network.fixed(f"{layer.name}/{key}", end.astype(np.float32))
        for key, end in zip(("low", "high", "out_low", "out_high"), ends, strict=True)
    )
    by = network.fixed(f"{layer.name}/steps", ((levels - 1) / (ends[1] - ends[0])).astype(np.float32))
    back = network.fixed(f"{layer.name}/step", ((ends[3] - ends[2]) / (levels - 1)).astype(np.float32))
    del out_high
    cut = network.between(layer, "Max", [network.between(layer, "Min", [network.value(layer, 0), high]), low])
    whole = network.between(
        layer, "Round", [network.between(layer, "Mul", [network.between(layer, "Sub", [cut, low]), by])]
    )
    network.one(layer, "Add", [network.between(layer, "Mul", [whole, back], "back"), out_low])

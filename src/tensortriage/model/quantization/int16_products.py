"""A quantized file as kernels without VNNI compute it: pairs of products of 8-bit numbers added in saturating int16.

Beside each product by an int8 weight stands what its pairs lose
(`tensortriage.compare.quantization.int16_sums` has the arithmetic and its source). Only pairs of weights that may go
beyond int16 at all are looked at, as many of each column as the worst column has.
"""

import functools
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import (
    CONVOLUTION,
    INTEGERS,
    OperatorBody,
    Results,
    Writer,
    array_of,
    needed,
    refuse_if,
    writers,
)
from tensortriage.model.operator_bodies.replace_nodes import with_written
from tensortriage.model.quantization.as_pairs import products_as_pairs
from tensortriage.model.quantization.int8_products import int8_products
from tensortriage.model.transforms.rewrite_helpers import is_standard

_FITS = 128
"""Largest sum of the magnitudes of two weights whose products with 255 fit: 128 * 255 is 32640, of 32767."""
_MOST_WEIGHTS = 1 << 25
"""Numbers that the pairs of one convolution may be written with."""


def int16_products(model: Model, *, fused: bool = True, by_tap: bool = False) -> Model | None:
    """Return a model whose products by int8 weights saturate in int16; None where all fit.

    Args:
        model: The model; it is not changed. Its products are written in pairs in the result, or as MatMulInteger.
        fused: Whether products between pairs count, which a kernel for integers computes where they are fused; those
            of operators on integers always do.
        by_tap: Whether the last of an odd number of channels has no partner in a convolution; else that is the first of
            the next tap.
    """
    graph = model.graph
    products = [each for each in int8_products(graph) if fused or not each.in_pairs]
    weights = (each.weight for each in products if each.weight in graph.constants)
    if not any(2 * int(np.abs(graph.weight(name).astype(np.int16)).max(initial=0)) > _FITS for name in weights):
        return None
    convolution: Writer = functools.partial(_convolution, by_tap=by_tap)
    of_products = {"MatMul": _product, "Gemm": _product, "Conv": convolution, "MatMulInteger": _integers}
    left = {each.node.name for each in int8_products(graph)} - {each.node.name for each in products}

    def chosen(write: Writer, body: OperatorBody) -> Results:
        refuse_if(body.owner in left)
        return write(body)

    taken = {op_type: functools.partial(chosen, write) for op_type, write in of_products.items()}
    layers = {name.removeprefix(INTEGERS): write for name, write in writers().items() if name.startswith(INTEGERS)}
    return with_written(products_as_pairs(with_written(model, layers, runtime=())), taken, runtime=())


def by_tap_padded(channels_second: np.ndarray) -> np.ndarray:
    """Return data or weights with an even number of channels, so that pairs do not go beyond one tap of a kernel."""
    odd = channels_second.shape[1] % 2
    return np.pad(channels_second, [(0, 0), (0, odd), *[(0, 0)] * (channels_second.ndim - 2)])


@frozen_dataclass
class _Pairs:
    """The pairs that may not fit, by column and number, padded with pairs of zeros.

    Attributes:
        places: Where the first of each is along the summed axis; the second follows.
        weights: Both, along the last axis.
    """

    places: np.ndarray
    weights: np.ndarray


@frozen_dataclass
class _Operand:
    """A dequantized operand: its integers, scale, and zero point, 0 where there is none."""

    stored: ir.Value
    scale: ir.Value
    zero: np.ndarray

    @classmethod
    def of(cls, value: ir.Value) -> "_Operand":
        node = value.producer()
        refuse_if(not is_standard(node, "DequantizeLinear"))
        assert node is not None
        zero = (
            array_of(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else np.zeros((), np.int8)
        )
        refuse_if(zero is None)
        return cls(needed(node.inputs[0]), needed(node.inputs[1]), np.asarray(zero))


def _product(body: OperatorBody) -> Results:
    data, weight = map(_Operand.of, body.inputs(2))
    numbers = _numbers(body, data.stored)
    if body.attribute("transA", 0):
        numbers = body.op("Transpose", numbers, perm=[1, 0])
    columns = _int8(weight.stored).T if body.attribute("transB", 0) else _int8(weight.stored)
    lost = _lost(body, numbers, columns)
    scale = body.op("Mul", data.scale, weight.scale)
    return (body.op("Sub", _again(body), body.op("Mul", lost, scale)),)


def _integers(body: OperatorBody) -> Results:
    data, weight = body.inputs(2)
    own = is_standard(data.producer(), "DynamicQuantizeLinear")  # in the body of a loop no types are known
    refuse_if(not own and body.type_of(data.name or "") != ir.DataType.UINT8)  # int8 on both sides is exact
    lost = body.op("Cast", _lost(body, _numbers(body, data), _int8(weight)), to=int(ir.DataType.INT32))
    return (body.op("Sub", _again(body), lost),)


def _convolution(body: OperatorBody, *, by_tap: bool) -> Results:
    data, weight = map(_Operand.of, body.inputs(2))
    kernels = _int8(weight.stored)
    alone, group = kernels.shape[1], body.attribute("group", 1)
    refuse_if(alone == 1 and group > 1)  # each channel by itself is summed in int32
    kernels = by_tap_padded(kernels) if by_tap and group == 1 else kernels
    channels, taps = kernels.shape[1], int(np.prod(kernels.shape[2:]))
    pairs = _beyond(np.moveaxis(kernels, 1, -1).reshape(len(kernels), -1).T)
    count, most = pairs.places.shape
    refuse_if(count * most * channels * taps > _MOST_WEIGHTS)
    wide = np.zeros((count * most, taps * channels), np.float32)
    for second in (0, 1):  # a pair of zeros at the end of the axis has no second place
        places = np.minimum(pairs.places.reshape(-1) + second, taps * channels - 1)
        wide[np.arange(count * most), places] += pairs.weights[..., second].reshape(-1)
    wide = np.moveaxis(wide.reshape(-1, *kernels.shape[2:], channels), -1, 1)[:, :alone]
    moved = body.type_of(data.stored.name or "") == ir.DataType.INT8
    zero = float(data.zero.reshape(-1)[0]) + 128.0 * moved
    numbers = body.op("Sub", _numbers(body, data.stored), body.constant(zero))
    bias = body.constant(zero * pairs.weights.sum(axis=-1).reshape(-1))
    given = body.given(*CONVOLUTION)
    sums = body.op("Conv", numbers, body.constant(wide), bias, **given)
    each = body.op("Reshape", _excess(body, sums), body.integers(0, count, most, -1))
    result = _again(body)
    lost = body.op("Reshape", _summed(body, each, 2), body.op("Shape", result))
    step = body.op("Reshape", weight.scale, body.integers(-1, *[1] * (kernels.ndim - 2)))
    return (body.op("Sub", result, body.op("Mul", lost, body.op("Mul", data.scale, step))),)


def _again(body: OperatorBody) -> ir.Value:
    """Return the result of the node, computed as it was."""
    node = body.node
    given = {name: each.value for name, each in node.attributes.items()}
    return body.op(node.op_type, *node.inputs, **given)


def _int8(value: ir.Value) -> np.ndarray:
    array = array_of(value)
    refuse_if(array is None or array.dtype != np.int8)
    return np.asarray(array)


def _beyond(columns: np.ndarray) -> _Pairs:
    """Return the pairs of a weight that may go beyond int16.

    Raises:
        OperatorBodyMissing: When there is none.
    """
    refuse_if(columns.ndim != 2)
    wide = np.pad(columns.astype(np.float32), ((0, len(columns) % 2), (0, 0)))
    pairs = np.stack([wide[0::2], wide[1::2]], axis=-1).swapaxes(0, 1)  # columns, pairs, 2
    large = np.maximum(np.maximum(pairs, 0.0).sum(axis=-1), np.maximum(-pairs, 0.0).sum(axis=-1)) > _FITS
    most = int(large.sum(axis=1).max(initial=0))
    refuse_if(most == 0)
    first = np.argsort(~large, axis=1, kind="stable")[:, :most]
    chosen = np.where(np.take_along_axis(large, first, 1)[..., None], np.take_along_axis(pairs, first[..., None], 1), 0)
    return _Pairs(2 * first, chosen.astype(np.float32))


def _numbers(body: OperatorBody, stored: ir.Value) -> ir.Value:
    """Return integers as kernels multiply them: those of int8 moved up by 128."""
    wide = body.op("Cast", stored, to=int(ir.DataType.FLOAT))
    moved = body.type_of(stored.name or "") == ir.DataType.INT8
    return body.op("Add", wide, body.constant(128)) if moved else wide


def _lost(body: OperatorBody, numbers: ir.Value, columns: np.ndarray) -> ir.Value:
    """Return the loss of the pairs of a matrix product, in units of the products."""
    pairs, last = _beyond(columns), len(columns) - 1
    sides = []
    for second in (0, 1):
        places = body.integers(*np.minimum(pairs.places.reshape(-1) + second, last).tolist())
        factors = body.constant(pairs.weights[..., second].reshape(-1))
        sides.append(body.op("Mul", body.op("Gather", numbers, places, axis=-1), factors))
    lost = _excess(body, body.op("Add", *sides))
    rows = body.part(body.op("Shape", numbers), 0, -1, 0)
    shape: Any = body.op("Concat", rows, body.integers(*pairs.places.shape), axis=0)
    return _summed(body, body.op("Reshape", lost, shape), -1)


def _excess(body: OperatorBody, sums: ir.Value) -> ir.Value:
    return body.op("Sub", sums, body.op("Min", body.op("Max", sums, body.constant(-32768)), body.constant(32767)))


def _summed(body: OperatorBody, x: ir.Value, axis: int) -> ir.Value:
    return body.along("ReduceSum", x, [axis], since=13, keepdims=0)

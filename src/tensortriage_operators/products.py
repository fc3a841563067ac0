"""Products and convolutions with the operations that ONNX Runtime fuses into them, and products by few-bit weights."""

from functools import partial

import numpy as np
import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import (
    CONVOLUTION,
    OperatorBody,
    Results,
    array_of,
    body_of,
    in_int8,
    needed,
    refuse_if,
)

_WITHOUT_PARAMETERS = ("Relu", "Sigmoid", "Tanh")
_INT8_ACTIVATIONS = 4
"""``accuracy_level`` of MatMulNBits from which a kernel may round activations to int8."""


@body_of("FusedMatMul", "TransposeMatMul")
def fused_matmul(body: OperatorBody) -> Results:
    """Write ``alpha * A' B'``, optionally with the last two axes exchanged, or the first of all behind the batch."""
    given = [
        _from_batch(body, value) if body.attribute(name, 0) else value
        for value, name in zip(body.inputs(2), ("transBatchA", "transBatchB"), strict=True)
    ]
    first, other = (
        _exchanged(body, value, needed(body.input(index))) if body.attribute(name, 0) else value
        for index, (value, name) in enumerate(zip(given, ("transA", "transB"), strict=True))
    )
    product = body.op("MatMul", first, other)
    alpha = body.attribute("alpha", 1.0)
    return (product if alpha == 1 else body.op("Mul", product, body.constant(alpha)),)


@body_of("FusedConv")
def fused_convolution(body: OperatorBody) -> Results:
    """Write a convolution, its summand, and its activation."""
    x, weight = body.inputs(2)
    bias = body.input(2)
    y = body.op("Conv", x, weight, *([bias] if bias is not None else []), **body.given(*CONVOLUTION))
    return (activated(body, body.plus(y, 3), list(body.attribute("activation_params", ()))),)


@body_of("FusedGemm")
def fused_gemm(body: OperatorBody) -> Results:
    """Write Gemm and its activation."""
    inputs = [value for index in range(3) if (value := body.input(index)) is not None]
    product = body.op("Gemm", *inputs, **body.given("alpha", "beta", "transA", "transB"))
    return (activated(body, product, [*body.given("activation_alpha", "activation_beta").values()]),)


@body_of("MatMulNBits")
def matmul_of_few_bits(body: OperatorBody) -> Results:
    """Write a product by a dequantized weight; blocks along its rows of K numbers have a scale and a zero point each.

    The weight is kept packed until it is read, and dequantized as any other, so that it counts as a quantized one.
    Reordered groups and weights that are computed are refused.
    """
    refuse_if(body.input(4) is not None)
    x, packed, scales = body.inputs(3)
    zeros = body.input(3)
    refuse_if(any(value is not None and array_of(value) is None for value in (packed, scales, zeros)))
    terms, columns = int(body.attribute("K", 0)), int(body.attribute("N", 0))
    bits, block = int(body.attribute("bits", 4)), int(body.attribute("block_size", 32))
    rows, blocks = columns * -(-terms // block), -(-terms // block)
    stored = body.weight(partial(_numbers, packed, rows, bits, block), (rows, block), np.uint8)
    shifted = body.op(
        "Sub", body.op("DequantizeLinear", stored, body.constant(1)), _zero_points(body, rows, blocks, bits)
    )
    step = body.weight(lambda: stored_array(scales).astype(np.float32).reshape(rows, 1), (rows, 1))
    weight = body.op("Reshape", body.op("Mul", shifted, step), body.integers(columns, blocks * block))
    if blocks * block > terms:
        weight = body.part(weight, 0, terms, 1)
    weight = body.op("Transpose", weight, perm=[1, 0])
    if body.coarse and body.attribute("accuracy_level", 0) >= _INT8_ACTIVATIONS:
        x = in_int8(body, x, terms, block)
    return (body.plus(body.op("MatMul", x, weight), 5),)


def _numbers(packed: ir.Value, rows: int, bits: int, block: int) -> np.ndarray:
    """Return the stored numbers as uint8, one row for each block."""
    return numbers_in(stored_array(packed).reshape(rows, -1), bits)[:, :block]


def _zero_points(body: OperatorBody, rows: int, blocks: int, bits: int) -> ir.Value:
    """Return the zero points as float32, one row for each block; the middle of the range where there are none."""
    zeros = body.input(3)
    if zeros is None:
        return body.constant(2 ** (bits - 1))

    def unpacked() -> np.ndarray:
        stored = stored_array(zeros)
        if stored.dtype == np.uint8:
            stored = numbers_in(stored.reshape(rows // blocks, -1), bits)[:, :blocks]
        return stored.astype(np.float32).reshape(rows, 1)

    return body.weight(unpacked, (rows, 1))


def numbers_in(array: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers in the bytes of the last axis, those in the low bits first; other numbers as they are."""
    if array.dtype != np.uint8 or bits == 8:
        return array
    places = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (array[..., None] >> places) & np.uint8(2**bits - 1)
    return numbers.reshape(*array.shape[:-1], -1)


def stored_array(value: ir.Value) -> np.ndarray:
    """Return the array of a constant."""
    found = array_of(value)
    assert found is not None
    return found


def _from_batch(body: OperatorBody, value: ir.Value) -> ir.Value:
    """Return a tensor with its first axis moved to the last position but one."""
    rank = len(body.shape_of(value))
    return body.op("Transpose", value, perm=[*range(1, rank - 1), 0, rank - 1])


def _exchanged(body: OperatorBody, value: ir.Value, like: ir.Value) -> ir.Value:
    axes = list(range(len(body.shape_of(like))))
    refuse_if(len(axes) < 2)
    axes[-2:] = axes[-1], axes[-2]
    return body.op("Transpose", value, perm=axes)


def activated(body: OperatorBody, y: ir.Value, parameters: list[float]) -> ir.Value:
    """Write the activation that a node names, with its parameters; an unknown one is refused."""
    kind = body.attribute("activation", "")
    if not kind or kind in _WITHOUT_PARAMETERS:
        return body.op(kind, y) if kind else y
    if kind == "LeakyRelu":
        return body.op(kind, y, alpha=parameters[0] if parameters else 0.01)
    if kind == "HardSigmoid" and len(parameters) == 2:
        return body.op(kind, y, alpha=parameters[0], beta=parameters[1])
    refuse_if(kind != "Clip" or len(parameters) != 2 or body.opset < 11)
    return body.op(kind, y, *(needed(body.constant(bound)) for bound in parameters))

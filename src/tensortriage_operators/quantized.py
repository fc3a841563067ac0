"""Operators of ONNX Runtime on quantized numbers: operands dequantized, the plain operator, its result quantized.

ONNX Runtime computes some of them with tables or in integers; both stay within one step of the result's scale of this.
"""

import onnx_ir as ir

from tensortriage.model.operator_bodies.operator_body import (
    OperatorBody,
    Results,
    array_of,
    body_of,
    needed,
    refuse_if,
)

PER_AXIS = 13
"""Operator set from which DequantizeLinear has a scale for each slice of an axis."""


@body_of("QuantizeLinear", "DequantizeLinear")
def of_standard(body: OperatorBody) -> Results:
    """Write the standard operator of the same name, which has the 16-bit types from operator set 21 on."""
    inputs = [value for value in body.node.inputs if value is not None]
    return (body.op(body.node.op_type, *inputs, axis=body.attribute("axis", 1)),)


@body_of("QLinearAdd", "QLinearMul")
def of_two(body: OperatorBody) -> Results:
    """Write a sum or a product of two quantized tensors."""
    result = body.op(body.node.op_type.removeprefix("QLinear"), real(body, 0), real(body, 3))
    return (stored(body, result, 6),)


@body_of("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
def of_one(body: OperatorBody) -> Results:
    """Write a function of one quantized tensor."""
    kind = body.node.op_type.removeprefix("QLinear")
    attributes = {}
    if kind == "LeakyRelu":
        attributes = {"alpha": body.attribute("alpha", 0.01)}
    elif kind == "Softmax":
        attributes = {"axis": _softmax_axis(body)}
    return (stored(body, body.op(kind, real(body, 0), **attributes), 3),)


@body_of("QLinearGlobalAveragePool", "QLinearAveragePool")
def of_pool(body: OperatorBody) -> Results:
    """Write an average over windows of an image, whose channels may be last."""
    kind = body.node.op_type.removeprefix("QLinear")
    names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    x, last = real(body, 0), bool(body.attribute("channels_last", 0))
    rank = body.rank(needed(body.input(0)), 4)
    y = body.op(
        kind, body.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]) if last else x, **body.given(*names)
    )
    return (stored(body, body.op("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y, 3),)


@body_of("QLinearConcat")
def of_many(body: OperatorBody) -> Results:
    """Write quantized tensors one after the other, in one scale."""
    starts = range(2, len(body.node.inputs), 3)
    whole = body.op("Concat", *(real(body, start) for start in starts), axis=body.attribute("axis", 0))
    return (stored(body, whole, 0),)


@body_of("QGemm")
def of_gemm(body: OperatorBody) -> Results:
    """Write Gemm of quantized tensors, its bias in the scale of the products; scales may be one for each column."""
    first, other = real(body, 0), _columns(body)
    inputs = [first, other]
    if (bias := body.input(6)) is not None:
        inputs.append(_bias(body, bias))
    given = {name: body.attribute(name, 0) for name in ("transA", "transB")}
    result = body.op("Gemm", *inputs, **given, alpha=body.attribute("alpha", 1.0))
    return (result if body.input(7) is None else stored(body, result, 7),)


def _bias(body: OperatorBody, bias: ir.Value) -> ir.Value:
    """Return the real numbers of a bias of QGemm, in one DequantizeLinear where both scales are constants."""
    left, scale = array_of(body.input(1)), array_of(body.input(4))
    if left is not None and scale is not None and (scale.size == 1 or body.opset >= PER_AXIS):
        return body.op("DequantizeLinear", bias, body.constant((left * scale).reshape(scale.shape)), axis=0)
    step = body.op("Mul", needed(body.input(1)), needed(body.input(4)))
    return body.op("Mul", body.op("DequantizeLinear", bias, body.constant(1)), step)


def _columns(body: OperatorBody) -> ir.Value:
    """Return the real numbers of the weight of QGemm; before opset 13 no standard operator has several scales."""
    numbers, scale, zero = needed(body.input(3)), needed(body.input(4)), body.input(5)
    if all(size == 1 for size in body.shape_of(scale)):
        return real(body, 3)
    if body.opset >= PER_AXIS:
        zeros = [zero] if zero is not None else []
        return body.op("DequantizeLinear", numbers, scale, *zeros, axis=0 if body.attribute("transB", 0) else 1)
    wide, places = int(ir.DataType.FLOAT), (1,) if body.attribute("transB", 0) else ()
    found = body.op("DequantizeLinear", numbers, body.constant(1))
    if zero is not None:
        offset = body.op("Cast", zero, to=wide)
        several = any(size != 1 for size in body.shape_of(zero))
        found = body.op("Sub", found, body.unsqueeze(offset, *places) if places and several else offset)
    return body.op("Mul", found, body.unsqueeze(scale, *places) if places else scale)


@body_of("DynamicQuantizeMatMul")
def of_dynamic(body: OperatorBody) -> Results:
    """Write a product whose first operand is quantized to uint8 by its own range."""
    x, weight, scale = body.inputs(3)
    numbers, step, zero = body.op_of("DynamicQuantizeLinear", [x], {}, outputs=3)
    return (body.plus(integer_product(body, (numbers, weight), (step, scale), (zero, body.input(3))), 4),)


@body_of("MatMulIntegerToFloat")
def of_integers(body: OperatorBody) -> Results:
    """Write a product of integers, scaled."""
    first, other, step, scale = body.inputs(4)
    product = integer_product(body, (first, other), (step, scale), (body.input(4), body.input(5)))
    return (body.plus(product, 6),)


def integer_product(
    body: OperatorBody,
    operands: tuple[ir.Value, ir.Value],
    scales: tuple[ir.Value, ir.Value],
    zeros: tuple[ir.Value | None, ir.Value | None],
) -> ir.Value:
    """Return a product of integers, in real numbers."""
    points = zeros if zeros[1] is not None else zeros[:1] if zeros[0] is not None else ()
    whole = body.op("Cast", body.op("MatMulInteger", *operands, *points), to=int(ir.DataType.FLOAT))
    return body.op("Mul", whole, body.op("Mul", *scales))


def real(body: OperatorBody, start: int) -> ir.Value:
    """Return the real numbers of the quantized tensor at an input; its scale and zero point are the next inputs."""
    return body.op("DequantizeLinear", *_triple(body, needed(body.input(start)), start + 1))


def stored(body: OperatorBody, result: ir.Value, start: int) -> ir.Value:
    """Return a result in the scale and zero point that are at two inputs."""
    return body.op("QuantizeLinear", *_triple(body, result, start))


def _triple(body: OperatorBody, value: ir.Value, start: int) -> list[ir.Value]:
    zero = body.input(start + 1)
    return [value, needed(body.input(start)), *([zero] if zero is not None else [])]


def _softmax_axis(body: OperatorBody) -> int:
    axis = int(body.attribute("axis", -1))
    refuse_if(body.attribute("opset", 13) < 13 and axis not in (-1, len(body.shape_of(needed(body.input(0)))) - 1))
    return axis

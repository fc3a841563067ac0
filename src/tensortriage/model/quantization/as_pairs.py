"""A quantized file rewritten with pairs: the computation of each integer operator, spelled out.

ONNX Runtime writes one network as pairs of QuantizeLinear and DequantizeLinear, as operators on integers (QOperator),
or with activations quantized by their own range as they come (dynamic quantization). Spelled out as pairs all three are
a plain network with quantizers next to it, so that facts about pairs apply to each. Steps have the name of their
node and a number.
"""

import onnx_ir as ir

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import (
    CONVOLUTION,
    PAIRS,
    OperatorBody,
    OperatorBodyMissing,
    Results,
    array_of,
    needed,
    writers,
)
from tensortriage.model.operator_bodies.replace_nodes import with_written
from tensortriage.model.quantization.qdq import ROUNDING_OPS
from tensortriage.model.transforms.rewrite_helpers import is_standard

_INTEGER_OPS = (ROUNDING_OPS | {"MatMulInteger", "ConvInteger"}) - {"QuantizeLinear"}
_PRODUCTS = ("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QAttention", "QGemm")


def as_pairs(model: Model) -> Model:
    """Return a model whose operators on integers are written as pairs; itself where there are none.

    Operators of ONNX Runtime's own whose form has no body stay as they are, and so do products of integers whose scales
    are not multiplied in one place.
    """
    if not any(node.op_type in _INTEGER_OPS for node in model.graph.nodes):
        return model
    own = {"QLinearConv": _convolution, "QLinearMatMul": _product, "Mul": scaled_product}
    known = {name.removeprefix(PAIRS): writer for name, writer in writers().items() if name.startswith(PAIRS)}
    return with_written(model, own | known, runtime=_INTEGER_OPS)


def products_as_pairs(model: Model) -> Model:
    """Return a model whose products of integers are written as pairs, or as MatMulInteger."""
    return with_written(model, {"QLinearConv": _convolution, "QLinearMatMul": _product}, runtime=_PRODUCTS)


def owner_of(graph: Graph, name: str) -> Node | None:
    """Return the node of a file that a node of its form in pairs belongs to; None where it has none."""
    owner, _, number = name.rpartition("/")
    if name in graph:
        return graph.node(name)
    return graph.node(owner) if number.isdigit() and owner in graph else None


def _convolution(body: OperatorBody) -> Results:
    x, weight = _real(body, 0), _real(body, 3, axis=0)
    inputs = [x, weight]
    if (bias := body.input(8)) is not None:
        inputs.append(_bias(body, bias))
    y = body.op("Conv", *inputs, **body.given(*CONVOLUTION))
    return (body.op("QuantizeLinear", y, needed(body.input(6)), needed(body.input(7))),)


def _bias(body: OperatorBody, bias: ir.Value) -> ir.Value:
    """Return the real numbers of a bias, which is stored in steps of the product of both scales."""
    step, scale = (array_of(body.input(index)) for index in (1, 4))
    if step is None or scale is None:
        raise OperatorBodyMissing
    return body.op("DequantizeLinear", bias, body.constant((step * scale).reshape(scale.shape)), axis=0)


def _product(body: OperatorBody) -> Results:
    y = body.op("MatMul", _real(body, 0), _real(body, 3))
    return (body.op("QuantizeLinear", y, needed(body.input(6)), needed(body.input(7))),)


def _real(body: OperatorBody, start: int, *, axis: int = 1) -> ir.Value:
    inputs = [needed(body.input(index)) for index in range(start, start + 3)]
    return body.op("DequantizeLinear", *inputs, axis=axis)


def scaled_product(body: OperatorBody) -> Results:
    """Write a product of activations that were quantized as they came, in place of the Mul by both scales.

    Raises:
        OperatorBodyMissing: When the node is no such Mul.
    """
    node, quantizer = _integer_product(body.node)
    scale = _other_factor(body.node, quantizer.outputs[1])
    convolves = node.op_type == "ConvInteger"
    zero = node.inputs[3] if len(node.inputs) > 3 else None
    weight = [needed(node.inputs[1]), scale, *([zero] if zero is not None else [])]
    operands = needed(quantizer.inputs[0]), body.op("DequantizeLinear", *weight, axis=0 if convolves else 1)
    body.owner = node.name or ""
    if not convolves:
        return (body.op("MatMul", *operands),)
    given = {name: node.attributes[name].value for name in CONVOLUTION if name in node.attributes}
    return (body.op("Conv", *operands, **given),)


def _integer_product(scaled: ir.Node) -> tuple[ir.Node, ir.Node]:
    """Return the product of integers, cast, that a node reads, and the quantizer of its activations."""
    for value in scaled.inputs:
        cast = None if value is None else value.producer()
        node = needed(cast.inputs[0]).producer() if is_standard(cast, "Cast") else None
        quantizer = needed(node.inputs[0]).producer() if is_standard(node, "MatMulInteger", "ConvInteger") else None
        if is_standard(quantizer, "DynamicQuantizeLinear"):
            assert node is not None
            return node, quantizer
    raise OperatorBodyMissing


def _other_factor(scaled: ir.Node, step: ir.Value) -> ir.Value:
    """Return the other factor of the product with the step of the activations, where a node reads that product."""
    for value in scaled.inputs:
        both = None if value is None else value.producer()
        if is_standard(both, "Mul") and step in both.inputs:
            return needed(next((other for other in both.inputs if other is not step), None))
    raise OperatorBodyMissing

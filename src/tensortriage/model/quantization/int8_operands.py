"""Products by weights of few bits as engines on CPUs compute them: they round activations to int8, in groups.

ONNX Runtime makes a MatMulNBits of accuracy level 4 out of a DequantizeLinear of 4 bits and the MatMul behind it;
OpenVINO quantizes dynamically before each product by a weight of 8 bits or less.
"""

from collections.abc import Mapping

from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, in_int8, refuse_if
from tensortriage.model.operator_bodies.replace_nodes import with_written
from tensortriage.model.quantization.blocked import blocked_quantizers
from tensortriage.values.dtype import DType

_FOUR_BITS = (DType.INT4, DType.UINT4)
_FEW_BITS = (*_FOUR_BITS, DType.INT8, DType.UINT8)
_GROUP = 32
"""Activations that share a scale in OpenVINO, by default."""


def blocks_of_products(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the terms of a MatMul by a 4-bit weight, and the terms per scale, by dequantized value."""
    stored = {each.value: each for each in blocked_quantizers(graph) if each.stored and each.dtype in _FOUR_BITS}
    found = {}
    for node in graph.nodes:
        each = stored.get(node.inputs[1]) if node.op_type == "MatMul" and not node.domain else None
        terms = graph.constants[each.quantized].shape if each and each.quantized in graph.constants else None
        if each and each.axis == 0 and terms and len(terms) == 2 and isinstance(terms[0], int):
            found[each.value] = terms[0], each.block
    return found


def groups_of_products(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return the same for weights of at most 8 bits in OpenVINO's groups, by dequantized value."""
    found = {}
    for node in graph.nodes:
        made = graph.producer(node.inputs[1]) if node.op_type == "MatMul" and not node.domain else None
        stored = graph.constants.get(made.inputs[0]) if made and made.op_type == "DequantizeLinear" else None
        if stored is None or stored.dtype not in _FEW_BITS or stored.shape is None or len(stored.shape) != 2:
            continue
        if isinstance(terms := stored.shape[0], int) and terms % _GROUP == 0:
            found[node.inputs[1]] = terms, _GROUP
    return found


def int8_operands(model: Model) -> Model | None:
    """Return the model with the operands of 4-bit weights in int8; None for a model without any."""
    return _rounded(model, blocks_of_products(model.graph))


def int8_groups(model: Model) -> Model | None:
    """Return the model with the operands of compressed weights in int8, as in OpenVINO; None without any."""
    return _rounded(model, groups_of_products(model.graph))


def _rounded(model: Model, known: Mapping[str, tuple[int, int]]) -> Model | None:

    def product(body: OperatorBody) -> Results:
        x, weight = body.inputs(2)
        refuse_if(weight.name not in known)
        return (body.op("MatMul", in_int8(body, x, *known[weight.name or ""]), weight),)

    return with_written(model, {"MatMul": product}, runtime=()) if known else None

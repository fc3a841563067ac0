"""Products by weights of 4 bits in blocks, as ONNX Runtime computes them: its CPU kernels round activations to int8.

It makes a MatMulNBits of accuracy level 4 out of a DequantizeLinear and the MatMul behind it.
"""

from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import OperatorBody, Results, refuse_if
from tensortriage.model.operator_bodies.products import in_int8
from tensortriage.model.operator_bodies.replace_nodes import with_written
from tensortriage.model.quantization.blocked import blocked_quantizers
from tensortriage.values.dtype import DType

_FOUR_BITS = (DType.INT4, DType.UINT4)


def blocks_of_products(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return how many terms a MatMul has by a weight of 4 bits, and how many share a scale, by what is dequantized."""
    stored = {each.value: each for each in blocked_quantizers(graph) if each.stored and each.dtype in _FOUR_BITS}
    found = {}
    for node in graph.nodes:
        each = stored.get(node.inputs[1]) if node.op_type == "MatMul" and not node.domain else None
        terms = graph.constants[each.quantized].shape if each and each.quantized in graph.constants else None
        if each and each.axis == 0 and terms and len(terms) == 2 and isinstance(terms[0], int):
            found[each.value] = terms[0], each.block
    return found


def int8_operands(model: Model) -> Model | None:
    """Return the model with what it multiplies by weights of 4 bits in int8; None for a model without any."""
    known = blocks_of_products(model.graph)

    def product(body: OperatorBody) -> Results:
        x, weight = body.inputs(2)
        refuse_if(weight.name not in known)
        return (body.op("MatMul", in_int8(body, x, *known[weight.name or ""]), weight),)

    return with_written(model, {"MatMul": product}, runtime=()) if known else None

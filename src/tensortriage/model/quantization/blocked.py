"""Tensors that are quantized in blocks: QuantizeLinear and DequantizeLinear with ``block_size`` (operator set 21)."""

import dataclasses

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.dtype import DType

DEFAULT_AXIS = 1
"""Of both operators."""


@dataclasses.dataclass(frozen=True, slots=True)
class BlockedQuantizer:
    """One tensor that is quantized in blocks, or dequantized from them.

    Attributes:
        node: Name of the QuantizeLinear, or of the DequantizeLinear of a weight that is stored quantized.
        value: The floating-point value that is quantized; of a stored weight what is made of it.
        stored: Whether it is a weight that is stored quantized.
        scale: Name of the scales, a constant.
        zero_point: Name of the zero points, a constant; empty when omitted.
        axis: The axis along which neighbours share a scale.
        block: How many do.
        dtype: Type of the quantized numbers.
    """

    node: str
    value: str
    stored: bool
    scale: str
    zero_point: str
    axis: int
    block: int
    dtype: DType


def blocked_quantizers(graph: Graph) -> tuple[BlockedQuantizer, ...]:
    """Return what is quantized in blocks with constant scales, in topological order."""
    found = (_blocked(graph, node) for node in graph.nodes)
    return tuple(each for each in found if each is not None)


def _blocked(graph: Graph, node: Node) -> BlockedQuantizer | None:
    if node.domain or node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.inputs) < 2:
        return None
    given, scale, zero = (*node.inputs, "")[:3]
    block, axis = node.attributes.get("block_size"), node.attributes.get("axis", DEFAULT_AXIS)
    if not isinstance(block, int) or block < 1 or not isinstance(axis, int) or scale not in graph.constants:
        return None
    stored = node.op_type == "DequantizeLinear"
    if stored and given not in graph.constants:
        return None  # its QuantizeLinear tells more
    if zero and zero not in graph.constants:
        return None
    told = node.attributes.get("output_dtype")
    if stored:
        dtype = graph.constants[given].dtype
    elif zero:
        dtype = graph.constants[zero].dtype
    else:
        dtype = DType(told) if isinstance(told, int) and told else DType.UINT8
    value = node.outputs[0] if stored else given
    return None if dtype is None else BlockedQuantizer(node.name, value, stored, scale, zero, axis, block, dtype)

"""Tensors that are quantized in blocks: QuantizeLinear and DequantizeLinear with ``block_size`` (operator set 21)."""

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.dtype import DType

DEFAULT_AXIS = 1
"""Of both operators."""


@frozen_dataclass
class BlockedQuantizer:
    """One tensor that is quantized in blocks, or dequantized from them.

    Attributes:
        node: Name of the QuantizeLinear, or of the DequantizeLinear of a weight that is stored quantized.
        value: The floating-point value that is quantized; of a stored weight the dequantized value.
        quantized: Name of the numbers of a weight that is stored quantized; empty for others.
        scale: Name of the scales.
        zero_point: Name of the zero points; empty when omitted.
        axis: The axis along which neighbours share a scale.
        block: How many do.
        dtype: Type of the quantized numbers; None where only the numbers show it.
    """

    node: str
    value: str
    quantized: str
    scale: str
    zero_point: str
    axis: int
    block: int
    dtype: DType | None

    @property
    def stored(self) -> bool:
        """Whether it is a weight that is stored quantized."""
        return bool(self.quantized)


def blocked_quantizers(graph: Graph) -> tuple[BlockedQuantizer, ...]:
    """Return the quantizations in blocks, in topological order; scales may be constants or made by other nodes."""
    found = (_blocked(graph, node) for node in graph.nodes)
    return tuple(each for each in found if each is not None)


def made_of_constants(graph: Graph, value: str) -> bool:
    """Return whether a value is a constant, or computed from constants alone."""
    if value in graph.constants:
        return True
    makers = graph.ancestors([value])
    made = {name for node in makers for name in node.outputs}
    return bool(makers) and all(
        name in made or name in graph.constants for node in makers for name in node.uses if name
    )


def _is_quantized_here(graph: Graph, value: str) -> bool:
    return any(node.op_type == "QuantizeLinear" for node in graph.ancestors([value]))


def _blocked(graph: Graph, node: Node) -> BlockedQuantizer | None:
    if node.domain or node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.inputs) < 2:
        return None
    given, scale, zero = (*node.inputs, "")[:3]
    block, axis = node.attributes.get("block_size"), node.attributes.get("axis", DEFAULT_AXIS)
    if not isinstance(block, int) or block < 1 or not isinstance(axis, int):
        return None
    stored = node.op_type == "DequantizeLinear"
    if stored and (_is_quantized_here(graph, given) or not made_of_constants(graph, given)):
        return None  # the QuantizeLinear has more information
    told = node.attributes.get("output_dtype")
    dtype: DType | None = None
    if stored:
        dtype = graph.constants[given].dtype if given in graph.constants else None
    elif zero:
        dtype = graph.constants[zero].dtype if zero in graph.constants else None
    else:
        dtype = DType(told) if isinstance(told, int) and told else DType.UINT8
    value = node.outputs[0] if stored else given
    return BlockedQuantizer(node.name, value, given if stored else "", scale, zero, axis, block, dtype)

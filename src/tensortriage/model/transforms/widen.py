"""A model typed in fp16 or bf16, as it was before: the same nodes and names in float32.

Weights keep the rounded numbers; Casts between float32 and the narrow type disappear. What is left is the network as
somebody wrote it, to be compared with the one it was converted from.
"""

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.graph import Graph
from tensortriage.model.ir.messages import DTYPE_ATTRIBUTES
from tensortriage.model.ir.traversal import all_graphs, all_nodes, replace_tensors
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.rewrite_helpers import is_standard
from tensortriage.values.dtype import Precision

NARROW = {ir.DataType.FLOAT16: Precision.FP16, ir.DataType.BFLOAT16: Precision.BF16}
"""Types that a model is written in to compute in fewer bits."""


def narrow_nodes(model: Model) -> dict[str, Precision]:
    """Return the nodes of the main graph that make a tensor of a narrow type, and which; Casts are left out."""
    types = infer_types(model.ir, {})
    found = {}
    for node in model.ir.graph:
        made = (types.get(value) for value in node.outputs)
        narrow = [NARROW[kind.dtype] for kind in made if isinstance(kind, ir.TensorType) and kind.dtype in NARROW]
        if narrow and not is_standard(node, "Cast", "CastLike", "Constant"):
            found[node.name or ""] = narrow[0]
    return found


def stores_narrow(graph: Graph) -> bool:
    """Return whether constants of a narrow type are widened before anything computes with them."""
    kinds = {NARROW[kind].dtype for kind in NARROW}
    stored = {name for name, spec in graph.constants.items() if spec.dtype in kinds and spec.shape != ()}
    return any(node.op_type == "Cast" and node.inputs[0] in stored for node in graph.nodes)


def widened(model: Model) -> Model:
    """Return the model in which float32 takes the place of fp16 and bf16; inputs and outputs included.

    Args:
        model: The model; it is not changed.
    """
    clone = model.clone().ir
    types = infer_types(clone, {})
    mere = [node for node in all_nodes(clone) if _only_retypes(node, types)]
    replace_tensors(clone, _wide_tensor)
    for node in all_nodes(clone):
        name = DTYPE_ATTRIBUTES.get(node.op_type, "")
        attr = node.attributes.get(name)
        if attr is not None and not attr.is_ref() and ir.DataType(attr.as_int()) in NARROW:
            node.attributes[name] = ir.AttrInt64(name, ir.DataType.FLOAT.value)
    for value in _values(clone):
        if isinstance(value.type, ir.TensorType) and value.type.dtype in NARROW:
            value.type = ir.TensorType(ir.DataType.FLOAT)
    for node in mere:
        _skip(node)
    return Model.from_ir(clone)


def _only_retypes(node: ir.Node, types: dict[ir.Value, ir.TypeProtocol]) -> bool:
    """Return whether a node is a Cast between float32 and a narrow type, or between two of these."""
    if not is_standard(node, "Cast") or node.inputs[0] is None or not node.outputs[0].name:
        return False
    before = types.get(node.inputs[0])
    attr = node.attributes.get("to")
    if not isinstance(before, ir.TensorType) or attr is None or attr.is_ref():
        return False
    kinds = {before.dtype, ir.DataType(attr.as_int())}
    return bool(kinds & NARROW.keys()) and kinds <= {ir.DataType.FLOAT, *NARROW}


def _skip(node: ir.Node) -> None:
    """Make all readers read the operand of a node; where a graph output must keep its name it becomes an Identity."""
    result, source = node.outputs[0], node.inputs[0]
    graph = node.graph
    if graph is None or source is None:
        return
    producer = source.producer()
    if not result.is_graph_output():
        result.replace_all_uses_with(source)
        graph.remove(node, safe=True)
    elif producer is not None and producer.graph is graph and not source.is_graph_output():
        name, result.name = result.name, None
        result.replace_all_uses_with(source, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        source.name = name
    else:
        node.op_type = "Identity"
        node.attributes.clear()


def _wide_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    if tensor.dtype not in NARROW:
        return tensor
    return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)


def _values(model: ir.Model) -> Iterator[ir.Value]:
    for graph in all_graphs(model):
        yield from (*graph.inputs, *graph.initializers.values())
    for node in all_nodes(model):
        yield from node.outputs

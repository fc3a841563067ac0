"""Turns Constant nodes into initializers, so that they do not count as nodes."""

import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.model import Model


def without_constant_nodes(model: Model) -> Model:
    """Return the model in which Constant nodes of the main graph are initializers of the same name.

    Those that are outputs of the model stay, and so do those without a tensor, such as constants of sparse form.

    Args:
        model: The model; it is not changed.
    """
    clone = model.clone().ir
    for node in tuple(clone.graph):
        if not any(value.is_graph_output() for value in node.outputs):
            lift_constant(clone.graph, node)
    return Model.from_ir(clone)


def lift_constant(graph: ir.Graph, node: ir.Node) -> None:
    """Make a node an initializer of the same name, in place, if it is a Constant with a tensor."""
    tensor = constant_tensor(node)
    if tensor is None:
        return
    old = node.outputs[0]
    new = ir.Value(name=old.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape), const_value=tensor)
    graph.register_initializer(new)
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(node, safe=True)

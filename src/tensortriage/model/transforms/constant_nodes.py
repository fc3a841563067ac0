"""Turns Constant nodes into initializers, so that they do not count as nodes."""

import onnx_ir as ir

from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import Names


def without_constant_nodes(model: Model) -> Model:
    """Return the model in which Constant nodes of the main graph are initializers of the same name.

    Those that are outputs of the model stay, and so do those without a tensor, such as constants of sparse form.

    Args:
        model: The model; it is not changed.
    """
    if not any(node.op_type == "Constant" for node in model.ir.graph):
        return model
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    for node in [node for node in graph if node.op_type == "Constant"]:
        old, tensor = node.outputs[0], constant_tensor(node)
        if tensor is None or old in graph.outputs or not old.name:
            continue
        name, old.name = old.name, names.fresh(f"before::{old.name}")
        new = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape), const_value=tensor)
        graph.register_initializer(new)
        old.replace_all_uses_with(new)
        graph.remove(node, safe=True)
    return Model.from_ir(clone.ir)

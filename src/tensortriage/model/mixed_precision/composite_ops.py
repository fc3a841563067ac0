"""Put the function bodies that ONNX gives to composite operators in the place of their nodes.

Attention is two products and a Softmax: an engine that computes it in a narrow format rounds in between, and takes its
approximations there. The bodies are those of the operators' schemas (onnx.defs), for the types of each node.
"""

import onnx
import onnx_ir as ir
from onnx import inliner

from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.rewrite_helpers import is_standard

COMPOSITE = ("Attention", "SoftmaxCrossEntropyLoss")
"""Operators of several steps that round, which the engine ``reference`` computes in one."""


def with_bodies(model: Model) -> Model:
    """Return the model with bodies in the place of composite nodes of its main graph; values keep their names.

    A node stays when the types of its operands are not known, or ONNX has no body for them.
    """
    if not any(is_standard(node, *COMPOSITE) for node in all_nodes(model.ir)):
        return model
    specs = value_specs(model)
    types = {name: spec.dtype.value for name, spec in specs.items() if spec.dtype is not None}
    clone = model.clone()
    for node in [node for node in clone.ir.graph if is_standard(node, *COMPOSITE)]:
        _replace(node, clone.ir, types)
    return Model.from_ir(clone.ir)


def _replace(node: ir.Node, model: ir.Model, types: dict[str, int]) -> None:
    used = [value for value in node.inputs if value is not None]
    if any(value.name not in types for value in used):
        return
    proto = ir.to_proto(node)
    names = dict.fromkeys(name for name in proto.input if name)
    typed = [onnx.helper.make_tensor_value_info(name, types[name], None) for name in names]
    made = [
        onnx.helper.make_tensor_value_info(name, types.get(name, onnx.TensorProto.UNDEFINED), None)
        for name in proto.output
        if name
    ]
    alone = onnx.helper.make_model(
        onnx.helper.make_graph([proto], "composite", typed, made),
        opset_imports=[onnx.helper.make_opsetid("", model.graph.opset_imports[""])],
    )
    key = [(node.domain, node.op_type)]
    body = ir.from_proto(inliner.inline_selected_functions(alone, key, inline_schema_functions=True)).graph
    if any(is_standard(inner, node.op_type) for inner in body):
        return
    given = {value.name: value for value in used}
    for index, inner in enumerate(steps := list(body)):
        inner.name = f"{node.name}/{index}"
    for value in list(body.inputs):
        value.replace_all_uses_with(given[value.name])
    made_inside = {value.name: value for value in body.outputs}
    for inner in steps:
        for value in inner.outputs:
            if value.name and value.name not in made_inside:
                value.name = f"{node.name}/{value.name}"
    outputs = [value for value in node.outputs if value.name]
    body.outputs.clear()
    body.remove(steps)
    ir.convenience.replace_nodes_and_values(
        model.graph, node, [node], steps, outputs, [made_inside[value.name] for value in outputs]
    )

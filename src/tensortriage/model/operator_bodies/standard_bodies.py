"""The bodies that ONNX gives to its own composite operators.

They are those of the operators' schemas (onnx.defs), for the types of each node.
"""

import onnx
import onnx_ir as ir
from onnx import inliner

from tensortriage.model.operator_bodies.operator_body import NoBody, OperatorBody, Results
from tensortriage.model.transforms.rewrite_helpers import is_standard

COMPOSITE = ("Attention", "SoftmaxCrossEntropyLoss")
"""Operators of several steps that round, which the engine ``reference`` computes in one."""


def write_standard(body: OperatorBody) -> Results:
    """Write the body of a node of a composite operator.

    Raises:
        NoBody: When the type of an operand is not known, or ONNX has no body for this form.
    """
    node = body.node
    proto = ir.to_proto(node)
    alone = onnx.helper.make_model(
        onnx.helper.make_graph([proto], "composite", *_typed(body)),
        opset_imports=[onnx.helper.make_opsetid("", body.opset)],
    )
    key = [(node.domain, node.op_type)]
    graph = ir.from_proto(inliner.inline_selected_functions(alone, key, inline_schema_functions=True)).graph
    if any(is_standard(inner, node.op_type) for inner in graph):
        raise NoBody
    given = {value.name: value for value in node.inputs if value is not None}
    for value in list(graph.inputs):
        value.replace_all_uses_with(given[value.name])
    made = {value.name: value for value in graph.outputs}
    steps = list(graph)
    graph.outputs.clear()
    graph.remove(steps)
    body.nodes.extend(steps)
    return [made.get(value.name) if value.name else None for value in node.outputs]


def _typed(body: OperatorBody) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Return inputs and outputs of a node, each once, with their types.

    Raises:
        NoBody: When the type of an input is not known.
    """
    used = dict.fromkeys(value.name or "" for value in body.node.inputs if value is not None)
    types = {name: body.type_of(name) for name in (*used, *(v.name for v in body.node.outputs if v.name))}
    if any(types[name] is None for name in used):
        raise NoBody

    def infos(names: list[str]) -> list[onnx.ValueInfoProto]:
        return [
            onnx.helper.make_tensor_value_info(name, types[name] or onnx.TensorProto.UNDEFINED, None) for name in names
        ]

    return infos([*used]), infos([value.name for value in body.node.outputs if value.name])

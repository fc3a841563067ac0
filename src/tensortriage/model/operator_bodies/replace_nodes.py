"""Put bodies in place of composite nodes; values that the model names keep their names."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx import inliner

from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.operator_body import (
    OperatorBody,
    OperatorBodyMissing,
    Results,
    Writer,
    writers,
)
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS, Names, is_standard

COMPOSITE = ("Attention", "SoftmaxCrossEntropyLoss")
"""Operators of several steps that round, which the engine ``float64`` computes in one."""

RUNTIME_DOMAIN = "com.microsoft"
LAYOUT_DOMAINS = {"com.microsoft.nchwc": "nchwc", "com.ms.internal.nhwc": "nhwc"}
"""Domains of ONNX Runtime for operators on another layout, and how the table of writers begins their names."""
_RUNTIME_IN_STANDARD = frozenset({"SimplifiedLayerNormalization"})
"""Operators of ONNX Runtime that it keeps in the standard domain."""


def with_runtime_bodies(model: Model) -> Model:
    """Return the model with bodies in place of operators that are ONNX Runtime's own, where one is known.

    They compute in the declared types.
    """
    return _with_bodies(model, [node for node in all_nodes(model.ir) if _is_runtime(node)], coarse=False)


def with_bodies(model: Model) -> Model:
    """Return the model with bodies for ONNX's own composite operators as well.

    They make what a node lets kernels make coarser, as ``accuracy_level`` of MatMulNBits does. A node stays when the
    types of its operands are not known, or nobody has a body for its form.
    """
    found = [node for node in all_nodes(model.ir) if _is_runtime(node) or is_standard(node, *COMPOSITE)]
    return _with_bodies(model, found, coarse=True)


def with_written(model: Model, written: Mapping[str, Writer], *, runtime: Collection[str]) -> Model:
    """Return the model with nodes written otherwise, and without those that nothing reads then.

    Args:
        model: The model; it is not changed.
        written: What writes nodes, by operator.
        runtime: Operators of ONNX Runtime's own to be written by their bodies otherwise.
    """

    def writer(node: ir.Node) -> Writer | None:
        own = written.get(node.op_type) if node.domain in (*STANDARD_DOMAINS, RUNTIME_DOMAIN) else None
        return own or (writers().get(_key(node)) if _is_runtime(node) and node.op_type in runtime else None)

    from onnx_ir.passes.common import RemoveUnusedNodesPass  # with all passes of onnx_ir; most commands need none

    made = _once(model, writer, coarse=False).ir
    RemoveUnusedNodesPass()(made)
    return Model.from_ir(made)


def _is_runtime(node: ir.Node) -> bool:
    if node.domain == RUNTIME_DOMAIN or node.domain in LAYOUT_DOMAINS:
        return _key(node) in writers()
    return node.op_type in _RUNTIME_IN_STANDARD and node.domain in STANDARD_DOMAINS


def _key(node: ir.Node) -> str:
    layout = LAYOUT_DOMAINS.get(node.domain)
    return node.op_type if layout is None else f"{layout}.{node.op_type}"


def _with_bodies(model: Model, wanted: Collection[ir.Node], *, coarse: bool) -> Model:
    if not wanted:
        return model
    kinds = {node.op_identifier() for node in wanted}
    left = len(wanted)
    while True:  # what a body tells of its results may be what the next node lacked
        model, before = _once(model, lambda node: _writer(node, kinds), coarse=coarse), left
        left = sum(node.op_identifier() in kinds for node in all_nodes(model.ir))
        if left in (0, before):
            return model


def _writer(node: ir.Node, kinds: Collection[ir.OperatorIdentifier]) -> Writer | None:
    if node.op_identifier() not in kinds:
        return None
    return writers()[_key(node)] if _is_runtime(node) else write_standard


def _once(model: Model, writer: Callable[[ir.Node], Writer | None], *, coarse: bool) -> Model:
    specs = value_specs(model)
    clone = model.clone()
    names = Names(clone.ir.graph)
    opset = clone.ir.graph.opset_imports.get("", 1)
    for node in list(all_nodes(clone.ir)):
        if (write := writer(node)) is None:
            continue
        body = OperatorBody(node, opset, specs, coarse=coarse)
        try:
            results = write(body)
        except OperatorBodyMissing:
            continue
        _put(body, results, names)
    return Model.from_ir(clone.ir)


def _put(body: OperatorBody, results: Sequence[ir.Value | None], names: Names) -> None:
    node, graph = body.node, body.node.graph
    if graph is None or any(body.wants(i) for i in range(len(results), len(node.outputs))):
        return
    pairs = [(value, made) for value, made in zip(node.outputs, results, strict=False) if value.name]
    if any(made is None for _, made in pairs):
        return
    inner = {id(value) for step in body.nodes for value in step.outputs}
    olds, news = [], []
    for old, made in pairs:
        assert made is not None
        new = made if id(made) in inner and made not in news else body.op("Identity", made)
        olds.append(old)
        news.append(new)
    for index, step in enumerate(body.nodes):
        step.name = names.fresh(f"{body.owner}/{index}")
        for value in step.outputs:
            if value not in news:
                value.name = names.fresh(f"{body.owner}/{index}:{step.op_type}")
    for weight in body.weights:
        weight.name = names.fresh(f"{node.name}/weight")
        graph.register_initializer(weight)
    ir.convenience.replace_nodes_and_values(graph, node, [node], body.nodes, olds, news)


def write_standard(body: OperatorBody) -> Results:
    """Write the body that ONNX gives to a composite operator (onnx.defs), for the types of a node.

    Raises:
        OperatorBodyMissing: When the type of an operand is not known, or ONNX has no body for this form.
    """
    node = body.node
    proto = ir.to_proto(node)
    alone = onnx.helper.make_model(
        onnx.helper.make_graph([proto], "composite", *_typed(body)),
        opset_imports=[onnx.helper.make_opsetid("", body.opset)],
    )
    graph = ir.from_proto(_inlined(alone)).graph
    if any(is_standard(inner, node.op_type) for inner in graph):
        raise OperatorBodyMissing
    given = {value.name: value for value in node.inputs if value is not None}
    for value in list(graph.inputs):
        value.replace_all_uses_with(given[value.name])
    made = {value.name: value for value in graph.outputs}
    steps = list(graph)
    graph.outputs.clear()
    graph.remove(steps)
    body.nodes.extend(steps)
    return [made.get(value.name) if value.name else None for value in node.outputs]


def _inlined(alone: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model of a node with its body in its place.

    ONNX's own way fails where an operand before the last is left out, of whose type it asks; a body can be had still.
    """
    (node,), version = alone.graph.node, alone.opset_import[0].version
    schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
    if all(node.input) or not schema.has_context_dependent_function:
        key = [(node.domain, node.op_type)]
        return inliner.inline_selected_functions(alone, key, inline_schema_functions=True)
    kinds = {value.name: value.type for value in alone.graph.input} | {"": onnx.TypeProto()}
    types = [kinds[name].SerializeToString() for name in node.input]
    function = onnx.FunctionProto.FromString(schema.get_context_dependent_function(node.SerializeToString(), types))
    function.domain = node.domain = "composite"
    alone.functions.append(function)
    alone.opset_import.append(onnx.helper.make_opsetid("composite", 1))
    return inliner.inline_local_functions(alone)


def _typed(body: OperatorBody) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Return inputs and outputs of a node, each once, with their types.

    Raises:
        OperatorBodyMissing: When the type of an input is not known.
    """
    used = dict.fromkeys(value.name or "" for value in body.node.inputs if value is not None)
    types = {name: body.type_of(name) for name in (*used, *(v.name for v in body.node.outputs if v.name))}
    if any(types[name] is None for name in used):
        raise OperatorBodyMissing

    def infos(names: list[str]) -> list[onnx.ValueInfoProto]:
        return [
            onnx.helper.make_tensor_value_info(name, types[name] or onnx.TensorProto.UNDEFINED, None) for name in names
        ]

    return infos([*used]), infos([value.name for value in body.node.outputs if value.name])

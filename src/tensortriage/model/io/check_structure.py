"""Whether the graph of a model file hangs together: every name defined once, every use of a name defined.

Checked on the protobuf message, before onnx_ir sees it: onnx_ir repairs some of these faults silently, and a debugging
tool must not investigate another model than the one it was given.
"""

from collections.abc import Iterable, Mapping, Sequence

import onnx

from tensortriage.errors import ModelError
from tensortriage.model.io.check_attributes import check_attributes
from tensortriage.model.io.check_limits import check_limits, check_rank
from tensortriage.model.io.check_tensors import check_tensor, densify, known_dtype
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.messages import bodies

_NOTHING_LIFTED: Mapping[int, int] = {}


def check_structure(proto: onnx.ModelProto, *, lifted: Mapping[int, int] = _NOTHING_LIFTED) -> None:
    """Check a whole model; makes sparse tensors dense in place.

    Args:
        proto: The model.
        lifted: Initializers of the main graph whose data were lifted out: position to length in bytes.

    Raises:
        ModelError: With the slug of the first fault found.
    """
    for what, found in (("node", proto.graph.node), ("output", proto.graph.output)):
        if not found:
            raise ModelError(f"the model has no {what}s", slug="model-empty", cure=f"export a model with {what}s")
    _require_text("the model", proto.producer_name, proto.producer_version, proto.domain, proto.doc_string)
    _require_text("the model", *(text for p in proto.metadata_props for text in (p.key, p.value)))
    check_limits(proto)
    _check_graph(proto.graph, (), "the main graph", lifted)
    for function in proto.functions:
        where = f"function {quoted(function.name)}"
        names: set[str] = set()
        _define(names, function.input, "input", where)
        _check_nodes(function.node, (names,), where, in_function=True)
        _require(function.output, "output", (names,), where)


def _check_graph(
    graph: onnx.GraphProto,
    outer: tuple[set[str], ...],
    where: str,
    lifted: Mapping[int, int] = _NOTHING_LIFTED,
    *,
    in_function: bool = False,
) -> None:
    _require_text(where, graph.name, graph.doc_string)
    densify(graph, where)
    for index, tensor in enumerate(graph.initializer):
        check_tensor(tensor, f"initializer {quoted(tensor.name)} of {where}", lifted_bytes=lifted.get(index))
    for value in (*graph.input, *graph.output, *graph.value_info):
        _check_type(value, where)
    names: set[str] = set()
    _define(names, (value.name for value in graph.input), "input", where)
    # An initializer may repeat the name of an input: it is that input's default.
    initializers: set[str] = set()
    _define(initializers, (tensor.name for tensor in graph.initializer), "initializer", where)
    names |= initializers
    _check_nodes(graph.node, (*outer, names), where, in_function=in_function)
    # Outer scopes do not count: engines refuse a body that returns an outer value as it is.
    _require((value.name for value in graph.output), "output", (names,), where)


def _check_type(value: onnx.ValueInfoProto, where: str) -> None:
    tensor = value.type.tensor_type
    if tensor.elem_type:
        known_dtype(tensor.elem_type, f"value {quoted(value.name)} of {where}")
    check_rank(len(tensor.shape.dim), f"value {quoted(value.name)} of {where}")
    _require_text(where, value.name, *(dim.dim_param for dim in tensor.shape.dim))


def _check_nodes(
    nodes: Sequence[onnx.NodeProto], scopes: tuple[set[str], ...], where: str, *, in_function: bool = False
) -> None:
    """Check the nodes of one graph, whose own names are the last of the scopes and are completed here.

    The order of the nodes does not matter: `Model` sorts them.
    """
    for node in nodes:
        repeated = next((name for name in node.output if name and name in scopes[-1]), "")
        if repeated:
            first = next((node for node in nodes if repeated in node.output), None)
            raise _made_twice(repeated, None if first is node else first, node, where)
        _define(scopes[-1], filter(None, node.output), "output", where)
    for node in nodes:
        metadata = (text for prop in node.metadata_props for text in (prop.key, prop.value))
        _require_text(where, node.name, node.op_type, node.domain, *metadata)
        if not node.op_type:
            raise _nameless(f"{_shown(node)} of {where} has no operator type")
        _require(filter(None, node.input), "input", scopes, where, node)
        _require_text(where, *(text for attr in node.attribute for text in (attr.name, attr.ref_attr_name)))
        if node.attribute or node.op_type == "Constant":
            check_attributes(node, f"{_shown(node)} of {where}", in_function=in_function)
        for attribute in node.attribute:
            for tensor in _tensors(attribute):
                check_tensor(tensor, f"attribute {quoted(attribute.name)} of {_shown(node)} of {where}")
        for name, body in bodies(node):
            at = f"attribute {quoted(name)} of {_shown(node)} of {where}"
            _check_graph(body, scopes, at, in_function=in_function)


_TENSOR, _TENSORS = onnx.AttributeProto.TENSOR, onnx.AttributeProto.TENSORS


def _shown(node: onnx.NodeProto) -> str:
    return f"node {quoted(node.name)} ({quoted(node.op_type)})" if node.name else f"a {quoted(node.op_type)} node"


def _tensors(attribute: onnx.AttributeProto) -> Iterable[onnx.TensorProto]:
    if attribute.ref_attr_name:
        return ()
    return (attribute.t,) if attribute.type == _TENSOR else attribute.tensors if attribute.type == _TENSORS else ()


def _define(names: set[str], new: Iterable[str], what: str, where: str) -> None:
    for name in new:
        _require_text(where, name)
        if not name:
            raise _nameless(f"an {what} of {where} has no name")
        if name in names:
            raise ModelError(
                f"{quoted(name)}, an {what} of {where}, is defined more than once",
                slug="value-defined-twice",
                cure="give every value one name and one definition: export the model again",
            )
        names.add(name)


def _made_twice(value: str, first: onnx.NodeProto | None, second: onnx.NodeProto, where: str) -> ModelError:
    """Return the error for a value that a node makes though there is one of that name."""
    first_words = "an input or an initializer has the same name"
    cure = "export the model with another name for the output"
    if first is not None:
        first_words = f"so does {_shown(first)}"
        cure = "triage surgeon sanitize MODEL -o FIXED gives the first one another name"
    return ModelError(
        f"{_shown(second)} of {where} makes {quoted(value)}, and {first_words}: it is defined more than once",
        slug="value-defined-twice",
        cure=cure,
    )


def _require_text(where: str, *texts: object) -> None:
    """Refuse text that is not UTF-8, for which protobuf gives bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise _nameless(f"{quoted(text)}, in {where}, is not UTF-8 text")


def _nameless(message: str) -> ModelError:
    return ModelError(
        message,
        slug="name-invalid",
        cure="the file is damaged or was written by a faulty exporter: export the model again",
    )


def _require(
    used: Iterable[str],
    what: str,
    scopes: Sequence[set[str]],
    where: str,
    node: onnx.NodeProto | None = None,
) -> None:
    for name in used:
        if not any(name in scope for scope in scopes):
            user = "" if node is None else f"{_shown(node)} of "
            raise ModelError(
                f"{quoted(name)}, an {what} of {user}{where}, is not defined by any node, input or initializer",
                slug="value-undefined",
                cure="the file is damaged or was cut wrongly: export the model again",
            )

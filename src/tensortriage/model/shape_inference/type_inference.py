"""The type of every value, inside the bodies of If, Loop and Scan as well, from operator schemas alone.

ONNX shape inference tells the types of the main graph, but not those inside bodies, and needs a copy of the model in
one protobuf. A cut, a rounding Cast or a typed conversion needs the type only, and types follow from the schemas:
operands that share a type variable share the type.
"""

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from tensortriage.model.ir.attributes import bodies, constant_tensor
from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.messages import DTYPE_ATTRIBUTES
from tensortriage.model.shape_inference.runtime_types import runtime_results
from tensortriage.model.shape_inference.schemas import schema_results
from tensortriage.values.spec import ValueSpec

_FLOAT = ir.TensorType(ir.DataType.FLOAT)
_INT64 = ir.TensorType(ir.DataType.INT64)
_BOOL = ir.TensorType(ir.DataType.BOOL)
_NO_TENSOR = ir.OptionalType(ir.TensorType(ir.DataType.UNDEFINED))

DEFAULT_TYPES = {
    "BlackmanWindow": _FLOAT, "HammingWindow": _FLOAT, "HannWindow": _FLOAT, "MelWeightMatrix": _FLOAT,
    "Multinomial": ir.TensorType(ir.DataType.INT32), "QuantizeLinear": ir.TensorType(ir.DataType.UINT8),
    "RandomNormal": _FLOAT, "RandomUniform": _FLOAT, "SequenceEmpty": _FLOAT,
}  # fmt: skip
"""Output types where the attribute that names them is absent."""

_LIKE_INPUT = frozenset({"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"})

Types = dict[ir.Value, ir.TypeProtocol]


@collector_paused()
def infer_types(model: ir.Model, specs: Mapping[str, ValueSpec]) -> Types:
    """Return the type of every value of a model, bodies included, where it is known.

    Args:
        model: The model; it is not changed.
        specs: Recorded or inferred specs of values of the main graph; they override declarations.
    """
    found: Types = {}
    for value in (*model.graph.inputs, *(v for node in model.graph for v in node.outputs)):
        spec = specs.get(value.name or "")
        if (
            spec is not None
            and spec.dtype is not None
            and (value.type is None or isinstance(value.type, ir.TensorType))
        ):
            found[value] = ir.TensorType(ir.DataType(spec.dtype.value))
    _visit(model.graph, model.opset_imports, found)
    return found


def _visit(graph: ir.Graph, opsets: Mapping[str, int], found: Types) -> None:
    for value in graph.inputs:
        if value.type is not None:
            found.setdefault(value, value.type)
    for value in graph.initializers.values():
        if value.const_value is not None:
            found[value] = ir.TensorType(value.const_value.dtype)
    for node in graph:
        for value in node.outputs:
            if value.type is not None:
                found.setdefault(value, value.type)
        graphs = bodies(node)
        made = _body_results(node, graphs, opsets, found) if graphs else _results(node, opsets, found)
        for value, kind in zip(node.outputs, made, strict=False):
            if kind is not None:
                found.setdefault(value, kind)


def _body_results(
    node: ir.Node, graphs: Sequence[ir.Graph], opsets: Mapping[str, int], found: Types
) -> Sequence[ir.TypeProtocol | None]:
    """Visit the bodies of a node and return the types of its outputs."""
    fed = [None if value is None else found.get(value) for value in node.inputs]
    if node.op_type == "Loop":
        fed = [_INT64, _BOOL, *fed[2:]]
    elif node.op_type == "Scan" and opsets.get("", 0) < 9:
        fed = fed[1:]  # Scan 8 takes the sequence lengths first
    results: Sequence[ir.TypeProtocol | None] = ()
    for body in graphs:
        for value, kind in zip(body.inputs, fed, strict=False):
            if kind is not None:
                found.setdefault(value, kind)
        _visit(body, opsets, found)
        made = [found.get(value) for value in body.outputs]
        results = results or (made[1:] if node.op_type == "Loop" else made)
    return results if node.op_type in ("If", "Loop", "Scan") else ()


def _results(node: ir.Node, opsets: Mapping[str, int], found: Types) -> Sequence[ir.TypeProtocol | None]:
    fed = [None if value is None else found.get(value) for value in node.inputs]
    if node.domain == "ai.onnx.ml" and node.op_type == "ZipMap":
        return (_NO_TENSOR,)  # a sequence of maps, for which onnx_ir has no type
    if node.op_type == "LayerNormalization":
        attr = node.attributes.get("stash_type")
        stash = _FLOAT if attr is None or attr.is_ref() else ir.TensorType(ir.DataType(attr.as_int()))
        return (fed[0], stash, stash)
    special = _special(node, fed) if node.domain in ("", "ai.onnx") else None
    made = runtime_results(node, fed)
    made = schema_results(node, fed, opsets) if made is None else made
    return made if special is None else (special, *made[1:])


def _special(node: ir.Node, fed: Sequence[ir.TypeProtocol | None]) -> ir.TypeProtocol | None:
    """Return the type of the first output where the schema does not tie it to an input."""
    op = node.op_type
    if op == "ConstantOfShape":
        attr = node.attributes.get("value")
        return _FLOAT if attr is None or attr.is_ref() else ir.TensorType(attr.as_tensor().dtype)
    if op in DTYPE_ATTRIBUTES and op != "SequenceEmpty":
        return _named_type(node, fed)
    if op == "SequenceEmpty":
        return ir.SequenceType(_named_type(node, fed) or _FLOAT)
    if op == "Constant":
        tensor = constant_tensor(node)
        return None if tensor is None else ir.TensorType(tensor.dtype)
    first = fed[0] if fed else None
    if first is None:
        return None
    if op in ("SequenceConstruct", "SplitToSequence"):
        return ir.SequenceType(first)
    if op == "Optional":
        return ir.OptionalType(first)
    if op in ("SequenceAt", "ConcatFromSequence") and isinstance(first, ir.SequenceType):
        return first.elem_type
    if op == "OptionalGetElement":
        return first.elem_type if isinstance(first, ir.OptionalType) else first
    return None


def _named_type(node: ir.Node, fed: Sequence[ir.TypeProtocol | None]) -> ir.TypeProtocol | None:
    attr = node.attributes.get(DTYPE_ATTRIBUTES[node.op_type])
    if attr is not None and attr.type == ir.AttributeType.INT and not attr.is_ref() and attr.as_int():
        return ir.TensorType(ir.DataType(attr.as_int()))
    if node.op_type in _LIKE_INPUT:
        return fed[0] if fed else None
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        source = 2 if node.op_type == "QuantizeLinear" else 1
        return fed[source] if source < len(fed) and fed[source] is not None else DEFAULT_TYPES.get(node.op_type)
    return DEFAULT_TYPES.get(node.op_type)

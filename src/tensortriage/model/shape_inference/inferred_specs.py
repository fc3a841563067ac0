"""Specs of values as onnx's shape inference finds them, on a model without its large weights."""

import weakref
from collections.abc import Mapping
from types import MappingProxyType

import onnx

from tensortriage.model.io.hollow_message import hollow_proto
from tensortriage.model.io.serialize import to_bytes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.onnx_inference import infer_shapes
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_READ_BYTES = 1024
_INVENTED = "unk__"
"""Prefixes of names that onnx's shape inference gives to unknown dimensions."""
_DTYPES = {dtype.value: dtype for dtype in DType}


def inferred_specs(model: Model) -> tuple[ValueSpec, ...]:
    """Return the inferred specs of a model; computed once, for a model never changes. Empty where inference fails."""
    if (known := _INFERRED.get(model)) is None:
        known = _INFERRED[model] = _infer(model)
    return known


_INFERRED: weakref.WeakKeyDictionary[Model, tuple[ValueSpec, ...]] = weakref.WeakKeyDictionary()


def shapes_with(model: Model, sizes: Mapping[tuple[str, int], int | str]) -> Mapping[str, tuple[int | str | None, ...]]:
    """Return the shapes of all values of known rank, with names or sizes of one's own for the inputs' open dimensions.

    Args:
        model: The model.
        sizes: The name or size of an open dimension by input and axis.
    """
    specs = [*model.graph.constants.values(), *_infer(model, sizes)]
    return {spec.name: spec.shape for spec in specs if spec.shape is not None}


def _infer(model: Model, sizes: Mapping[tuple[str, int], int | str] = MappingProxyType({})) -> tuple[ValueSpec, ...]:
    proto = hollow_proto(model.ir, above_bytes=_READ_BYTES)
    named = {info.name: info for info in (proto.graph.input if sizes else ())}
    for (name, axis), size in sizes.items():
        dim = named[name].type.tensor_type.shape.dim[axis]
        if isinstance(size, str):
            dim.dim_param = size
        else:
            dim.dim_value = size
    for info in (*proto.graph.value_info, *proto.graph.output):  # a symbol of its own keeps inference from a number
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param.startswith(_INVENTED):
                dim.ClearField("dim_param")
    imported = {opset.domain for opset in proto.opset_import}
    for domain in {node.domain for node in proto.graph.node} - imported - {"", "ai.onnx"}:
        proto.opset_import.add(domain=domain, version=1)  # ONNX Runtime runs such files, inference refuses all of them
    serialized = to_bytes(proto)
    result = infer_shapes(serialized)
    if result is None:
        return ()
    graph = onnx.ModelProto.FromString(result).graph
    return tuple(map(_proto_spec, (*named.values(), *graph.value_info, *graph.output)))


def _proto_spec(info: onnx.ValueInfoProto) -> ValueSpec:
    if not info.type.HasField("tensor_type"):
        return ValueSpec(info.name, None, None)
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return ValueSpec(info.name, _DTYPES.get(tensor.elem_type), None)
    shape = tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param if dim.dim_param else None
        for dim in tensor.shape.dim
    )
    return ValueSpec(info.name, _DTYPES.get(tensor.elem_type), shape)

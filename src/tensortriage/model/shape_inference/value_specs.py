"""Specs of all values before any run: declared in the file, inferred, or recorded from a run."""

import weakref
from collections.abc import Mapping
from types import MappingProxyType

import onnx

from tensortriage.model.io.serialize import hollow_proto, to_bytes
from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.onnx_subprocess import ExtensionFailed, call_extension
from tensortriage.model.ir.specs import value_spec
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_NOTHING: Mapping[str, ValueSpec] = MappingProxyType({})
_READ_BYTES = 1024
_INVENTED = "unk__"
"""Prefixes of names that onnx's shape inference gives to unknown dimensions."""
_DTYPES = {dtype.value: dtype for dtype in DType}


@collector_paused()
def value_specs(
    model: Model, recorded: Mapping[str, ValueSpec] = _NOTHING, *, refine: bool = False
) -> Mapping[str, ValueSpec]:
    """Return the specs of all values of the main graph.

    When the file leaves a type or a rank open, and no recorded spec closes it, onnx's shape inference (with data
    propagation) fills in what it can: declared dtypes and numbers are kept. Where inference fails, only what is
    declared remains.

    Args:
        model: The model.
        recorded: Specs of arrays that a run produced; they win over everything.
        refine: Whether to infer even when every type and rank is declared, for the sake of open dimensions.

    Returns:
        A spec for every input, initializer and node output, also for those of which nothing is known.
    """
    declared = [*model.ir.graph.inputs, *model.ir.graph.initializers.values()]
    declared += [value for node in model.ir.graph for value in node.outputs if value.name]
    specs = {value.name or "": value_spec(value) for value in declared}
    if refine or any(spec.dtype is None or spec.shape is None for name, spec in specs.items() if name not in recorded):
        for spec in _inferred(model):
            if spec.name in specs:
                specs[spec.name] = _merged(specs[spec.name], spec)
    return MappingProxyType({**specs, **recorded})


def typing_specs(model: Model) -> Mapping[str, ValueSpec]:
    """Return the specs without which `infer_types` leaves the type of a value of the main graph open.

    There are none where operator schemas give all types; ONNX's shape inference, a process of its own, is not needed.
    """
    types = infer_types(model.ir, _NOTHING)
    typed = all(value in types for node in model.ir.graph for value in node.outputs if value.name)
    return _NOTHING if typed else value_specs(model)


def _inferred(model: Model) -> tuple[ValueSpec, ...]:
    """Return the inferred specs of a model, which never changes: computed once for all callers."""
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
    result = infer_shapes(to_bytes(proto))
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


def _merged(declared: ValueSpec, inferred: ValueSpec) -> ValueSpec:
    """Fill in the open parts of a declaration; a number overrides a symbol, a symbol overrides an open size."""
    shape = inferred.shape if declared.shape is None else declared.shape
    if declared.shape and inferred.shape and len(declared.shape) == len(inferred.shape):
        shape = tuple(map(_known, declared.shape, inferred.shape))
    return ValueSpec(declared.name, declared.dtype or inferred.dtype, shape)


def _known(declared: int | str | None, inferred: int | str | None) -> int | str | None:
    if isinstance(declared, int) or (declared is not None and not isinstance(inferred, int)):
        return declared
    return inferred


_SECONDS = 10.0
_CALL = "extension.shape_inference.infer_shapes(model, False, False, True)"  # check_type, strict_mode, data_prop


def infer_shapes(model: bytes, *, limit_seconds: float = _SECONDS) -> bytes | None:
    """Return a serialized model with the inferred types added to its value_info.

    Args:
        model: Serialized ModelProto.
        limit_seconds: Longest time; ordinary models take a fraction of a second.

    Returns:
        The same model with more value_info (onnx.shape_inference, lenient, with data propagation); None when inference
        refused the model, crashed, or ran out of time or memory (4 GiB).
    """
    try:
        return call_extension(_CALL, model, limit_seconds=limit_seconds)
    except ExtensionFailed:
        return None

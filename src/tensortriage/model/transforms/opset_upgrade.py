"""Raise a model's opset when an edit needs an operator the old one cannot express.

The conversion is ONNX's own version converter, given the graph without its large weights. Names of nodes and values do
not change; some operators gain Constants where an attribute became an input. What the converter loses is put back:
metadata, declared shapes and model-local functions. Functions whose operators changed meanwhile are inlined.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.hollow_message import hollow_proto
from tensortriage.model.io.serialize import TRAINING, to_bytes
from tensortriage.model.ir.onnx_subprocess import ExtensionFailed, call_extension
from tensortriage.model.model import Model
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS, is_standard
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_SMALL_BYTES = 4096
_ANY_VERSION = 18
_SCAN_CHANGED = 9
_BOOL_MASK = 10
_RESIZE_CHANGED = 11
"""Opset in which Resize was given other coordinates by default; the converter leaves the defaults."""
_FREE_INITIALIZERS = 4
"""IR version from which initializers need not be inputs; older models that leave them out are common all the same."""


def require_opset(model: Model, version: int) -> Model:
    """Return the model itself when its opset is high enough, else a converted copy that shares the weights.

    Args:
        model: The model; it is not changed.
        version: Lowest version of the standard operator set that will do.

    Raises:
        ModelError: When the model cannot be converted (slug ``opset-too-old``).
    """
    if model.opset >= version:
        return model
    if not model.opset:  # a model without standard operators can have any version of them
        clone = model.clone()
        clone.ir.opset_imports[""] = max(version, _ANY_VERSION)
        return clone
    if model.opset < _SCAN_CHANGED and any(node.op_type == "Scan" for node in model.ir.graph):
        raise _too_old(model, version, "the batch axis of Scan was removed in opset 9")
    original = model.ir
    if not _functions_hold(original, version):
        from tensortriage.model.transforms.inline_functions import inline_functions  # brings passes of onnx_ir

        original = model.clone().ir
        inline_functions(original)
    proto = hollow_proto(original, above_bytes=_SMALL_BYTES)
    if {weight.name for weight in proto.graph.initializer} - {value.name for value in proto.graph.input}:
        proto.ir_version = max(proto.ir_version, _FREE_INITIALIZERS)
    try:
        call = f"extension.version_converter.convert_version(model, {int(version)})"
        converted = ir.from_proto(onnx.ModelProto.FromString(call_extension(call, to_bytes(proto))))
    except ExtensionFailed as error:
        raise _too_old(model, version, str(error)) from error
    _restore(converted, original)
    _restore_annotations(converted, original)
    if model.opset < _RESIZE_CHANGED <= version:
        _restore_resampling(converted)
    for key, function in original.functions.items():
        converted.functions[key] = function.clone()
        converted.functions[key].opset_imports[""] = version
    return Model.from_ir(converted)


def retyped(raised: Model, specs: Mapping[str, ValueSpec]) -> Mapping[str, ValueSpec]:
    """Return specs as they are after raising the opset: the mask of Dropout became bool with 10.

    Args:
        raised: What `require_opset` returned.
        specs: Types and shapes of the values of the model before.
    """
    if raised.opset < _BOOL_MASK:
        return specs
    masks = {node.outputs[1].name for node in raised.ir.graph if node.op_type == "Dropout" and len(node.outputs) > 1}
    return {
        name: dataclasses.replace(spec, dtype=DType.BOOL) if name in masks else spec for name, spec in specs.items()
    }


def _too_old(model: Model, version: int, reason: str) -> ModelError:
    return ModelError(
        f"opset {version} is needed, but the model has opset {model.opset} and cannot be converted: {reason}",
        slug="opset-too-old",
        cure=f"export the model with opset {version} or higher",
    )


def _restore(converted: ir.Model, original: ir.Model) -> None:
    """Turn the inputs in place of large weights back into initializers, and restore the small ones."""
    real_inputs = {value.name for value in original.graph.inputs}
    inputs: dict[str | None, Any] = {value.name: value for value in converted.graph.inputs}
    for name, old in original.graph.initializers.items():
        small = converted.graph.initializers.get(name)
        if small is not None and small.const_value is not None and old.const_value is not None:
            if (small.const_value.dtype, small.const_value.shape) == (old.const_value.dtype, old.const_value.shape):
                small.const_value = old.const_value  # with its documentation; absent ones know that they are
        elif name not in converted.graph.initializers and name in inputs:
            value = inputs[name]
            value.const_value = old.const_value
            converted.graph.register_initializer(value)
            if name not in real_inputs:
                converted.graph.inputs.remove(value)
    converted.ir_version = max(original.ir_version, converted.ir_version)
    converted.metadata_props.update(original.metadata_props)


def _restore_resampling(converted: ir.Model) -> None:
    """Give every Resize the coordinates that Upsample and the first Resize had (onnx/docs/Changelog.md)."""
    for node in ir.traversal.RecursiveGraphIterator(converted.graph):
        if is_standard(node, "Resize"):
            node.attributes.add(ir.AttrString("coordinate_transformation_mode", "asymmetric"))
            node.attributes.add(ir.AttrString("nearest_mode", "floor"))


def _restore_annotations(converted: ir.Model, original: ir.Model) -> None:
    """Restore the parts that the converter drops: metadata of the graph and its nodes, types and shapes of values."""
    converted.graph.metadata_props.update(original.graph.metadata_props)
    converted.graph.meta.update({TRAINING: original.graph.meta[TRAINING]} if TRAINING in original.graph.meta else {})
    nodes = {node.name: node for node in original.graph}
    values = {value.name: value for node in original.graph for value in node.outputs}
    named = values | {value.name: value for value in (*original.graph.inputs, *original.graph.initializers.values())}
    for value in (*converted.graph.inputs, *converted.graph.initializers.values()):
        _annotate_like(value, named.get(value.name))
    for node in converted.graph:
        if node.name in nodes and nodes[node.name].op_type == node.op_type:
            node.metadata_props.update(nodes[node.name].metadata_props)
        for value in node.outputs:
            old = values.get(value.name)
            _annotate_like(value, old)
            if old is not None and value.type is None:
                value.type = old.type
                value.shape = None if old.shape is None else old.shape.copy()


def _annotate_like(value: ir.Value, old: ir.Value | None) -> None:
    """Give a value the documentation, metadata and quantization annotation that it had."""
    if old is not None and old is not value:
        value.doc_string = value.doc_string or old.doc_string
        value.metadata_props.update(old.metadata_props)
        value.meta.update(old.meta)


def _functions_hold(model: ir.Model, version: int) -> bool:
    """Return whether every standard operator that functions use means the same in a later opset."""
    for function in model.functions.values():
        old = function.opset_imports.get("", model.opset_imports.get("", version))
        for node in ir.traversal.RecursiveGraphIterator(function):
            if node.domain in STANDARD_DOMAINS and _since(node.op_type, old) != _since(node.op_type, version):
                return False
    return True


def _since(op_type: str, version: int) -> int | None:
    try:
        return int(onnx.defs.get_schema(op_type, version).since_version)
    except onnx.defs.SchemaError:
        return None

"""Raise a model's opset when an edit needs an operator the old one cannot express.

The conversion is ONNX's own version converter, given the graph without its large weights. Names of nodes and values do
not change; some operators gain Constants where an attribute became an input.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.model.serializing import hollow_proto
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

_SMALL_BYTES = 4096
_ANY_VERSION = 18
_SCAN_CHANGED = 9
_BOOL_MASK = 10
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
    proto = hollow_proto(model.ir, above_bytes=_SMALL_BYTES)
    if {weight.name for weight in proto.graph.initializer} - {value.name for value in proto.graph.input}:
        proto.ir_version = max(proto.ir_version, _FREE_INITIALIZERS)
    try:
        converted = ir.from_proto(onnx.version_converter.convert_version(proto, version))
    except Exception as error:  # the converter is C++ behind pybind and raises RuntimeError, IndexError and its own
        raise _too_old(model, version, str(error).strip().partition("\n")[0][:200]) from error
    _restore(converted, model.ir)
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
    """Turn the inputs that stood for large weights back into initializers."""
    real_inputs = {value.name for value in original.graph.inputs}
    inputs: dict[str | None, Any] = {value.name: value for value in converted.graph.inputs}
    for name, old in original.graph.initializers.items():
        if name not in converted.graph.initializers and name in inputs:
            value = inputs[name]
            value.const_value = old.const_value
            converted.graph.register_initializer(value)
            if name not in real_inputs:
                converted.graph.inputs.remove(value)
    converted.ir_version = max(original.ir_version, converted.ir_version)
    converted.metadata_props.update(original.metadata_props)

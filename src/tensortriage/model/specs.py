"""From onnx_ir values and tensors to `ValueSpec`, without reading any numbers."""

from typing import Any

import onnx_ir as ir

from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def tensor_spec(tensor: Any, name: str) -> ValueSpec:
    """Return name, element type and shape of an onnx_ir tensor."""
    return ValueSpec(name, DType(tensor.dtype.value), tuple(tensor.shape.numpy()))


def value_spec(value: ir.Value) -> ValueSpec:
    """Return name, element type and shape of an onnx_ir value, as far as declared.

    Sequences, optionals and maps have neither: numbers in them are not one tensor.
    """
    if not isinstance(value.type, ir.TensorType):
        return ValueSpec(value.name or "", None, None)
    dtype = None if value.type.dtype == ir.DataType.UNDEFINED else DType(value.type.dtype.value)
    shape = None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return ValueSpec(value.name or "", dtype, shape)

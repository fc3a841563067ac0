"""From onnx_ir values and tensors to `ValueSpec`, without reading any numbers."""

from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage.model.wire import input_messages
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
    shape = None if value.shape is None else tuple(map(_size, value.shape))
    return ValueSpec(value.name or "", dtype, shape)


def _size(dimension: int | ir.SymbolicDim) -> int | str | None:
    """Return a size as declared; some exporters write -1 for one that is open."""
    size = dimension if isinstance(dimension, int) else dimension.value
    return None if isinstance(size, int) and size < 0 else size


def input_specs(path: Path) -> tuple[ValueSpec, ...]:
    """Return the inputs that a file declares, in order, without loading its nodes and weights.

    Raises:
        OSError: When the file cannot be read.
        WireError: When it is not protobuf.
    """
    messages = map(onnx.ValueInfoProto.FromString, input_messages(path).values())
    return tuple(value_spec(ir.from_proto(message)) for message in messages)

"""The nodes of a parsed ONNX message as plain data: the facts that an inspection needs, and no more.

`tensortriage.model.ir.graph` is the index that everything else works on. It is made of an onnx_ir model; this one is
made of the message itself, so that looking into a model costs no more than parsing it.
"""

import math
from typing import Any

import numpy as np
import onnx

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.dtype import DType

_DTYPES = {dtype.value for dtype in DType}
_TENSOR, _TENSORS = onnx.AttributeProto.TENSOR, onnx.AttributeProto.TENSORS
_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS
_FIELDS = {
    onnx.AttributeProto.FLOAT: "f", onnx.AttributeProto.INT: "i", onnx.AttributeProto.STRING: "s",
    onnx.AttributeProto.FLOATS: "floats", onnx.AttributeProto.INTS: "ints", onnx.AttributeProto.STRINGS: "strings",
}  # fmt: skip


@frozen_dataclass
class ValueFacts:
    """Declaration of a value in a model.

    Attributes:
        name: Value name.
        type: Label of the element type, ``sequence(float32)`` and the like for others; empty when not declared.
        shape: One entry per axis: a number, a symbol, or None for an unknown one. None when not declared.
    """

    name: str
    type: str
    shape: tuple[int | str | None, ...] | None


@frozen_dataclass
class ConstantFacts:
    """A tensor that a model stores.

    Attributes:
        name: Value name.
        dtype: Element type.
        shape: Dimensions.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes as stored, sub-byte types packed; strings count as nothing."""
        return (self.count * self.dtype.bits + 7) // 8


def op_label(node: onnx.NodeProto) -> str:
    """Return an operator's name, with its domain when that is not the standard one."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"


def declared_value(info: onnx.ValueInfoProto) -> ValueFacts:
    """Return the spec of a value in a message."""
    tensor = info.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if info.type.HasField("tensor_type") and tensor.HasField("shape"):
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim)
    return ValueFacts(info.name, type_label(info.type), shape)


def type_label(declared: onnx.TypeProto) -> str:
    """Return the label of a value's type; empty when it is not declared."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        number = getattr(declared, kind).elem_type
        label = _dtype_label(number)
        return label if kind == "tensor_type" else f"sparse({label})"
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')}({type_label(getattr(declared, kind).elem_type)})"
    if kind == "map_type":
        return f"map({_dtype_label(declared.map_type.key_type)}, {type_label(declared.map_type.value_type)})"
    return "" if kind is None else kind.removesuffix("_type")


def _dtype_label(number: int) -> str:
    return DType(number).label if number in _DTYPES else "?"


def stored_tensor(tensor: onnx.TensorProto, name: str) -> ConstantFacts:
    """Return the facts of an initializer or of a Constant node's tensor."""
    return ConstantFacts(name, DType(tensor.data_type), tuple(tensor.dims))


def attribute_text(attribute: onnx.AttributeProto) -> str:
    """Return an attribute's value as text; for tensors and graphs only their kind."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type == _TENSOR:
        return _tensor_text(attribute.t)
    if attribute.type == _TENSORS:
        return ", ".join(map(_tensor_text, attribute.tensors))
    if attribute.type == _GRAPH:
        return f"graph of {len(attribute.g.node)} nodes"
    if attribute.type == _GRAPHS:
        return f"{len(attribute.graphs)} graphs"
    value: Any = getattr(attribute, _FIELDS.get(attribute.type, "ints"))
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace"))
    if isinstance(value, int | float):
        return _number_text(value)
    texts = (item.decode("utf-8", "replace") if isinstance(item, bytes) else _number_text(item) for item in value)
    return "[" + ", ".join(texts) + "]"


def _number_text(number: float) -> str:
    """Return an attribute's number; floats are float32, so 1e-05 and not 9.99999974e-06."""
    return str(np.float32(number)) if isinstance(number, float) else str(number)


def _tensor_text(tensor: onnx.TensorProto) -> str:
    return f"{DType(tensor.data_type).label}{list(tensor.dims)}"

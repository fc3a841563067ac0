"""A node's attributes and constants, as plain Python and numpy."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.messages import CONSTANT_TYPES
from tensortriage.model.ir.specs import tensor_spec

_EMPTY: Mapping[str, object] = MappingProxyType({})
_BODIES = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def plain_attributes(node: ir.Node) -> Mapping[str, object]:
    """Return the attributes of a node as scalars, tuples, and a `ValueSpec` for every tensor; bodies are left out."""
    if not node.attributes:
        return _EMPTY
    return MappingProxyType({name: _plain(attr) for name, attr in node.attributes.items() if attr.type not in _BODIES})


def bodies(node: ir.Node) -> tuple[ir.Graph, ...]:
    """Return the graphs held by the attributes of a node (If, Loop, Scan), directly, not recursively."""
    found: list[ir.Graph] = []
    for attr in node.attributes.values():
        if attr.type == ir.AttributeType.GRAPH and not attr.is_ref():
            found.append(attr.value)
        elif attr.type == ir.AttributeType.GRAPHS and not attr.is_ref():
            found.extend(attr.value)
    return tuple(found)


def constant_tensor(node: ir.Node) -> Any:
    """Return the onnx_ir tensor that a Constant node holds, or None when the node holds none (or is no Constant)."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for name, attr in node.attributes.items():
        if attr.is_ref():
            return None
        if name == "value":
            return attr.value
        if name in CONSTANT_TYPES:
            array = np.asarray(attr.value, dtype=CONSTANT_TYPES[name].numpy)
            return ir.tensor(array) if array.dtype != object else _strings(array)
    return None


def _strings(array: np.ndarray) -> ir.StringTensor:
    return ir.StringTensor([str(word).encode() for word in array.ravel()], shape=ir.Shape(array.shape))


def _plain(attr: ir.Attr) -> object:
    if attr.is_ref():
        return f"@{attr.ref_attr_name}"
    if attr.type == ir.AttributeType.TENSOR:
        tensor = attr.value
        return tensor_spec(tensor, tensor.name or "")
    if attr.type == ir.AttributeType.TENSORS:
        return tuple(tensor_spec(tensor, tensor.name or "") for tensor in attr.value)
    if attr.type in (ir.AttributeType.TYPE_PROTO, ir.AttributeType.TYPE_PROTOS):
        return str(attr.value)
    return tuple(attr.value) if isinstance(attr.value, list | tuple) else attr.value

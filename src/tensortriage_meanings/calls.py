"""Calls of a node's own operator within a body, in ONNX's text syntax: with other operands, attributes as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from tensortriage_meanings.site import MeantNode

_NOTHING: Mapping[int, str] = {}


def formal(site: MeantNode) -> str:
    """Return the names of a body's inputs, ``i0, i1, ...``, in parentheses: one for each input of the node."""
    return f"({', '.join(f'i{index}' for index in range(len(site.node.inputs)))})"


def call(site: MeantNode, operands: Mapping[int, str] = _NOTHING) -> str:
    """Return a call of the node's operator.

    Args:
        site: The node.
        operands: Other names of operands by index; empty for one that is left out. The others are named as by `formal`.
    """
    given = [value is not None for value in site.node.inputs]
    called = [operands.get(index, f"i{index}") if there else "" for index, there in enumerate(given)]
    attributes = ", ".join(f"{name}={text(site.attribute(name))}" for name in site.node.attributes)
    domain = f"{site.node.domain}." if site.node.domain else ""
    return f"{domain}{site.op_type}{f'<{attributes}>' if attributes else ''}({', '.join(called)})"


def text(value: Any) -> str:
    """Return an attribute in ONNX's text syntax: a number, a word, a list of them, or a tensor."""
    if isinstance(value, ir.TensorProtocol):
        array = value.numpy()
        array = array.astype(int) if array.dtype.kind == "b" else array
        kind = onnx.TensorProto.DataType.Name(int(value.dtype)).lower()
        return f"{kind}{list(array.shape) if array.ndim else ''} {{{', '.join(map(repr, array.reshape(-1).tolist()))}}}"
    if isinstance(value, bytes | str):
        return f'"{value.decode() if isinstance(value, bytes) else value}"'
    if isinstance(value, Sequence):
        return f"[{', '.join(map(text, value))}]"
    return repr(value)

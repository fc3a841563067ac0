"""Texts that are equal exactly when two nodes, attributes or bodies are the same, names apart.

Tensors count by content, values inside bodies by how they are made, and a call of a model-local function by what that
function does.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from tensortriage.model.io.lazy_weights import content_sha256
from tensortriage.model.ir.traversal import outer_values
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS

Known = Mapping[ir.Value, str]
"""Keys of the values that are in scope."""
_PLAIN = {"dilations": 1, "strides": 1, "pads": 0, "output_padding": 0}
"""Windows along each axis where nothing is said; ONNX has no default for lists by axis."""


def digest(*parts: str) -> str:
    """Return one hash over several texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def tensor_key(tensor: Any) -> str:
    """Return type, shape and content of a tensor."""
    return f"{tensor.dtype}{tensor.shape}{content_sha256(tensor)}"


def operands(node: ir.Node) -> tuple[ir.Value | None, ...]:
    """Return the inputs of a node, None for omitted ones, and the captures of its bodies behind them."""
    own = set(node.inputs)
    return (*node.inputs, *(value for value in outer_values(node) if value not in own))


class NodeKeys:
    """Makes the keys of one model's nodes.

    Args:
        functions: The model-local functions of the model.
    """

    def __init__(self, functions: Mapping[ir.OperatorIdentifier, ir.Function]) -> None:
        self._functions = functions
        self._function_keys: dict[ir.OperatorIdentifier, str] = {}

    def signature(self, node: ir.Node) -> str:
        """Return a hash over the operation of a node, apart from its operands."""
        known = {value: f"operand {index}" for index, value in enumerate(operands(node)) if value is not None}
        return digest(*self._parts(node, known, 0))

    def attribute(self, node: ir.Node, name: str) -> str:
        """Return the key of one attribute of a node; empty when the node lacks it, or has it as if it lacked it."""
        known = {value: f"operand {index}" for index, value in enumerate(operands(node)) if value is not None}
        attr = node.attributes.get(name)
        is_plain = attr is not None and name in _PLAIN and not attr.is_ref() and set(attr.value) == {_PLAIN[name]}
        return "" if attr is None or is_plain else self._attribute(attr, known, 0)

    def function(self, node: ir.Node) -> str:
        """Return the key of the model-local function that a node calls; empty when it calls none."""
        identifier = node.op_identifier()
        if identifier not in self._functions:
            return ""
        if identifier not in self._function_keys:
            self._function_keys[identifier] = "itself"  # ONNX forbids recursion; a hostile file must not hang us
            function = self._functions[identifier]
            defaults = [f"{name}={self._attribute(attr, {}, 0)}" for name, attr in sorted(function.attributes.items())]
            known = {value: f"argument {index}" for index, value in enumerate(function.inputs)}
            self._function_keys[identifier] = digest(*defaults, self._graph(function, function.outputs, known, 0))
        return self._function_keys[identifier]

    def _parts(self, node: ir.Node, known: Known, depth: int) -> list[str]:
        domain = "" if node.domain in STANDARD_DOMAINS else node.domain
        parts = [domain, node.op_type, node.overload, str(len(node.outputs)), self.function(node)]
        for name, attr in sorted(node.attributes.items()):
            parts.extend((name, self._attribute(attr, known, depth)))
        return parts

    def _attribute(self, attr: ir.Attr, known: Known, depth: int) -> str:
        if attr.is_ref():
            return f"reference to {attr.ref_attr_name}"
        if attr.type == ir.AttributeType.TENSOR:
            return tensor_key(attr.as_tensor())
        if attr.type == ir.AttributeType.TENSORS:
            return " ".join(map(tensor_key, attr.as_tensors()))
        if attr.type == ir.AttributeType.GRAPH:
            return self._body(attr.as_graph(), known, depth + 1)
        if attr.type == ir.AttributeType.GRAPHS:
            return " ".join(self._body(graph, known, depth + 1) for graph in attr.as_graphs())
        value = tuple(attr.value) if isinstance(attr.value, list | tuple) else attr.value
        return f"{attr.type} {value!r}"

    def _body(self, graph: ir.Graph, outer: Known, depth: int) -> str:
        known = dict(outer)
        known.update((value, f"input {index} at depth {depth}") for index, value in enumerate(graph.inputs))
        for value in graph.initializers.values():
            if value.const_value is not None:
                known[value] = tensor_key(value.const_value)
        return self._graph(graph, graph.outputs, known, depth)

    def _graph(
        self, nodes: Iterable[ir.Node], outputs: Sequence[ir.Value], known: dict[ir.Value, str], depth: int
    ) -> str:
        for node in nodes:
            used = ["" if value is None else known.get(value, "?") for value in node.inputs]
            key = digest(*self._parts(node, known, depth), *used)
            known.update((value, f"{key}/{index}") for index, value in enumerate(node.outputs))
        return digest(*(known.get(value, "?") for value in outputs))

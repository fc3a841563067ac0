"""A read-only index of a model's main graph: producers and consumers of values, and dependencies.

Nodes are plain data with string names, so that nothing above `model` touches onnx_ir. The bodies of If, Loop and Scan
are not searched: a node with bodies is one unit, and the outer values its bodies use count as uses by that node.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import bodies, constant_tensor, plain_attributes
from tensortriage.model.ir.shape_operands import shape_like_values
from tensortriage.model.ir.specs import tensor_spec
from tensortriage.model.ir.traversal import captures
from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin, read_origin
from tensortriage.values.grouping import grouped
from tensortriage.values.spec import ValueSpec


@frozen_dataclass(eq=False)
class Node:
    """One operation of the main graph.

    Attributes:
        index: Position in topological order.
        name: Unique, never empty.
        op_type: E.g. ``MatMul``.
        domain: Operator domain; empty for the ONNX standard.
        inputs: Value names; ``''`` is an omitted optional input.
        outputs: Value names; ``''`` is an omitted optional output.
        attributes: Scalars, strings, tuples of them, and a `ValueSpec` per tensor; bodies are left out.
        captures: Outer values used by its If, Loop or Scan bodies, in order of first use.
        has_body: Whether it holds a graph of its own (If, Loop, Scan, ...).
    """

    index: int
    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]
    captures: tuple[str, ...]
    has_body: bool

    @property
    def uses(self) -> tuple[str, ...]:
        """Every value the node needs: the inputs that are not omitted, then the captures."""
        if not self.captures and "" not in self.inputs:
            return self.inputs
        return (*(name for name in self.inputs if name), *self.captures)


class Graph:
    """Index of the main graph of an onnx_ir model, built once; the model must not be changed afterwards.

    Args:
        model: A model whose nodes have unique names and are in topological order (what `Model` makes sure of).
    """

    def __init__(self, model: ir.Model) -> None:
        self._ir = model.graph
        self.nodes: tuple[Node, ...] = tuple(_index_node(i, node) for i, node in enumerate(model.graph))
        self._by_name = {node.name: node for node in self.nodes}
        self._producers = {output: node for node in self.nodes for output in node.outputs if output}
        self._consumers = _consumers(self.nodes)
        self._tensors: dict[str, Any] = {}
        self._origins: dict[str, NodeOrigin] = {}
        self.initializers: Mapping[str, ValueSpec] = self._register(
            (name, value.const_value) for name, value in model.graph.initializers.items()
        )
        constant_nodes = ((n.outputs[0].name or "", constant_tensor(n)) for n in model.graph if n.op_type == "Constant")
        self.constants: Mapping[str, ValueSpec] = MappingProxyType(
            {**self.initializers, **self._register((name, tensor) for name, tensor in constant_nodes)}
        )
        self.values: tuple[str, ...] = tuple(self._producers)

    def _register(self, tensors: Iterable[tuple[str, Any]]) -> Mapping[str, ValueSpec]:
        found = {name: tensor for name, tensor in tensors if tensor is not None}
        self._tensors.update(found)
        return MappingProxyType({name: tensor_spec(tensor, name) for name, tensor in found.items()})

    def node(self, name: str) -> Node:
        """Return the node of that name.

        Raises:
            UsageError: When there is none (slug ``node-unknown``).
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise UsageError(
                f"the model has no node named {name!r}",
                slug="node-unknown",
                cure="list the nodes with triage inspect model",
            ) from None

    def origin(self, name: str) -> NodeOrigin:
        """Return where a node comes from; nothing but empty texts for a name that the model does not have.

        One that does not say so itself has the module that `NodeOrigin.among` finds.
        """
        if name not in self._origins:
            made = self._own_origin(name)
            if not made.is_known and (node := self._by_name.get(name)) is not None:
                users = [user for value in node.outputs if value for user in self.consumers(value)]
                makers = [maker for value in node.uses if (maker := self.producer(value)) is not None]
                made = made.among(
                    name,
                    users=[self._own_origin(user.name) for user in users],
                    makers=[self._own_origin(maker.name) for maker in makers if maker.op_type != "Constant"],
                )
            self._origins[name] = made
        return self._origins[name]

    def origin_labels(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the origins of nodes in words, each once, in order; nothing where names suffice."""
        labels = (self.origin(name).beside(name) for name in names)
        return tuple(dict.fromkeys(label for label in labels if label))

    def _own_origin(self, name: str) -> NodeOrigin:
        node = self._ir_nodes.get(name)
        return UNKNOWN if node is None else read_origin(name, node.metadata_props, node.doc_string or "")

    def __contains__(self, node_name: object) -> bool:
        return node_name in self._by_name

    def producer(self, value: str) -> Node | None:
        """Return the node that makes a value; None for graph inputs, initializers and unknown names."""
        return self._producers.get(value)

    def consumers(self, value: str) -> tuple[Node, ...]:
        """Return the nodes that use a value, bodies included, in topological order, each once."""
        return self._consumers.get(value, ())

    def depth(self, node: Node) -> int:
        """Return the length of the longest chain of nodes that leads to a node; 0 when it depends on no other."""
        return self._depths[node.index]

    def ancestors(self, values: Collection[str]) -> tuple[Node, ...]:
        """Return every node that values depend on, their producers included, in topological order."""
        return self._closure(values, lambda value: filter(None, (self.producer(value),)), lambda node: node.uses)

    def descendants(self, values: Collection[str]) -> tuple[Node, ...]:
        """Return every node that depends on values (their producers are not included), in topological order."""
        return self._closure(values, self.consumers, lambda node: node.outputs)

    def weight(self, name: str) -> np.ndarray:
        """Return the array of an initializer or of a Constant node's output, memory-mapped when stored externally.

        Returns:
            Read-only in spirit: never write to it. bf16, fp8, int4, fp4 and 2-bit types come as ml_dtypes arrays,
            strings as object arrays of str.

        Raises:
            UsageError: When the value is not constant (slug ``value-not-constant``).
        """
        if name not in self._tensors:
            raise UsageError(
                f"{name!r} is neither an initializer nor the output of a Constant node",
                slug="value-not-constant",
                cure="name a weight; triage inspect model --show weights lists them",
            )
        array: np.ndarray = self._tensors[name].numpy()
        if array.dtype.kind in "SO":
            return np.array([_text(word) for word in array.ravel()], dtype=object).reshape(array.shape)
        return array

    @cached_property
    def output_names(self) -> frozenset[str]:
        """Names of the graph's outputs."""
        return frozenset(value.name or "" for value in self._ir.outputs)

    @cached_property
    def shape_like(self) -> frozenset[str]:
        """Values that decide shapes: see `tensortriage.model.ir.shape_operands`."""
        return shape_like_values(self.nodes, frozenset(self.constants))

    @cached_property
    def _ir_nodes(self) -> Mapping[str, ir.Node]:
        return {node.name or "": node for node in self._ir}

    @cached_property
    def _depths(self) -> tuple[int, ...]:
        depths: list[int] = []
        for node in self.nodes:
            before = [depths[made.index] for made in map(self.producer, node.uses) if made is not None]
            depths.append(1 + max(before) if before else 0)
        return tuple(depths)

    def _closure(
        self,
        values: Collection[str],
        neighbours: Callable[[str], Iterable[Node]],
        onward: Callable[[Node], Iterable[str]],
    ) -> tuple[Node, ...]:
        pending = list(values)
        seen: set[int] = set()
        while pending:
            for node in neighbours(pending.pop()):
                if node.index not in seen:
                    seen.add(node.index)
                    pending.extend(onward(node))
        return tuple(self.nodes[index] for index in sorted(seen))


def _text(word: object) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)


def _consumers(nodes: Iterable[Node]) -> dict[str, tuple[Node, ...]]:
    users = grouped((value, node) for node in nodes for value in dict.fromkeys(node.uses))
    return {value: tuple(found) for value, found in users.items()}


def _index_node(index: int, node: ir.Node) -> Node:
    graphs = bodies(node)
    return Node(
        index=index,
        name=node.name or "",
        op_type=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        inputs=tuple("" if value is None else value.name or "" for value in node.inputs),
        outputs=tuple(value.name or "" for value in node.outputs),
        attributes=plain_attributes(node),
        captures=tuple(dict.fromkeys(value.name or "" for value in captures(graphs))),
        has_body=bool(graphs),
    )

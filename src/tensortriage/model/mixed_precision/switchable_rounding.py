"""One model for every mixed precision: which nodes round to a format is said when it runs, not when it is built.

`tensortriage.model.mixed_precision.emulate_rounding` writes one choice of nodes into the model. A search for the right
choice would build a session per candidate; here every rounding sits in a branch of an ``If``, and one element of a bool
input opens it. A run costs what the open branches cost, and the numbers are those of `round_results` bit for bit.
"""

from collections.abc import Collection, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.mixed_precision.lowerable_nodes import Lowering, decide
from tensortriage.model.mixed_precision.rounding_nodes import Rounder, is_constant, opset_needed
from tensortriage.model.model import Model
from tensortriage.model.transforms.opset_upgrade import require_opset, retyped
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, take_over
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

SWITCHES = "round::switches"
"""The further input: bool ``[n]``, one element per switch."""


@frozen_dataclass
class Switch:
    """One place where a value may be rounded.

    Attributes:
        node: Node of the main graph that rounds there: its own result, or an operand that it reads.
        unless: Node that has rounded the value already if it computes in the format; empty when there is none.
    """

    node: str
    unless: str


@frozen_dataclass
class Switched:
    """A model whose inputs switch the format of each node on and off.

    Attributes:
        model: The model; its last input is `SWITCHES`.
        switches: What each element of that input opens.
        nodes: Nodes of the main graph that can compute in the format, in topological order.
        rounding: Those that round something of their own: a result, or a constant. The others only hand numbers on.
    """

    model: Model
    switches: tuple[Switch, ...]
    nodes: tuple[str, ...]
    rounding: tuple[str, ...]

    def feed(self, kept: Collection[str]) -> dict[str, np.ndarray]:
        """Return the inputs that let every node but the kept ones compute in the format."""
        wide = frozenset(kept)
        low = {name for name in self.nodes if name not in wide}
        return {SWITCHES: np.array([s.node in low and s.unless not in low for s in self.switches])}


def switch_rounding(model: Model, precision: Precision, *, specs: Mapping[str, ValueSpec]) -> Switched:
    """Return a model in which the format of every node can be switched.

    What rounds, and what never does, is as in `tensortriage.model.mixed_precision.emulate_rounding.round_results`;
    nodes inside the bodies of If, Loop and Scan go with the node of the main graph that holds them.

    Args:
        model: The model; it is not changed.
        precision: fp16, bf16, fp8e4m3, fp8e5m2 or int8.
        specs: Types of values; see `tensortriage.model.shape_inference.value_specs.value_specs`.

    Raises:
        UsageError: For another precision (``precision-not-emulated``).
        ModelError: When the type of a value is not known (``value-type-unknown``) or the opset cannot express the
            format and the model cannot be upgraded (``opset-too-old``).
    """
    upgraded = require_opset(model, opset_needed(precision))
    lowering = decide(upgraded, specs=retyped(upgraded, specs))
    edit = _Switching(lowering, precision)
    edit.apply()
    return Switched(
        Model.from_ir(lowering.model),
        tuple(edit.switches),
        tuple(edit.nodes),
        tuple(n for n in edit.nodes if n in edit.rounding),
    )


class _Switching:
    """One edit of one model."""

    def __init__(self, lowering: Lowering, precision: Precision) -> None:
        self.switches: list[Switch] = []
        self.nodes: list[str] = []
        self.rounding: set[str] = set()
        self._lowering = lowering
        self._rounder = Rounder(lowering, precision)
        self._names: Names = self._rounder.names
        self._graph = lowering.model.graph
        self._conditions: dict[Switch, ir.Value] = {}
        self._input = ir.Value(name=self._names.fresh(SWITCHES), type=ir.TensorType(ir.DataType.BOOL))
        self._low = set(lowering.lowered())

    def apply(self) -> None:
        """Edit the model in place: operands first, while the makers of values are still those of the model."""
        owned: list[tuple[ir.Node, list[ir.Node]]] = []
        for node in tuple(self._graph):
            inside = [node, *(inner for body in bodies(node) for inner in ir.traversal.RecursiveGraphIterator(body))]
            low = [inner for inner in inside if inner in self._low]
            if low:
                self.nodes.append(node.name or "")
                owned.append((node, low))
        results = [(owner, value) for owner, low in owned for node in low for value in self._results(node)]
        for owner, low in owned:
            for node in low:
                for index, value in enumerate(node.inputs):
                    if value is not None and self._rounder.rounds_operand(node, index, value):
                        self._operand(owner, node, index, value)
        for owner, value in results:
            self._result(owner, value)
            self.rounding.add(owner.name or "")
        self._declare()

    def _results(self, node: ir.Node) -> list[ir.Value]:
        """Return the values that a node rounds; of If, Loop and Scan all, since a body may pass on unrounded ones."""
        if bodies(node) and node.graph is self._graph:
            return [value for value in node.outputs if value.name and self._rounder.is_wide(value)]
        return [value for value in node.outputs if self._rounder.rounds_result(node, value)]

    def _operand(self, owner: ir.Node, node: ir.Node, index: int, value: ir.Value) -> None:
        producer = value.producer()
        own = is_constant(value)
        if own:
            self.rounding.add(owner.name or "")
        if producer is not None and producer.graph is not self._graph and not own:
            return  # made in the same body, by a node that rounds together with this one
        if producer is None and not own and not value.is_graph_input():
            return
        unless = "" if producer is None or producer not in self._low else producer.name or ""
        gate = self._gate(value, Switch(owner.name or "", unless))
        graph = node.graph
        assert graph is not None
        graph.insert_before(node, gate)
        gate.outputs[0].name = self._names.fresh(f"operand::{value.name}")
        node.replace_input_with(index, gate.outputs[0])

    def _result(self, owner: ir.Node, value: ir.Value) -> None:
        users = tuple(value.uses())
        gate = self._gate(value, Switch(owner.name or "", ""))
        take_over(value, [gate], users, name=self._names.fresh(f"exact::{value.name}"))

    def _gate(self, value: ir.Value, wanted: Switch) -> ir.Node:
        """Return an If that rounds a value when its switch is on."""
        switch = self._switch(wanted)
        nodes = self._rounder.nodes(value)
        copy = ir.Node("", "Identity", [value], name=self._names.fresh(f"as_is::{value.name}"))
        copy.outputs[0].name = self._names.fresh(f"as_is::{value.name}")
        copy.outputs[0].type = value.type
        then = ir.Graph((), nodes[-1].outputs[:1], nodes=nodes, name="rounded")
        otherwise = ir.Graph((), copy.outputs, nodes=(copy,), name="as_it_is")
        branches = [ir.AttrGraph("then_branch", then), ir.AttrGraph("else_branch", otherwise)]
        gate = ir.Node("", "If", [switch], branches, name=self._names.fresh(f"gate::{value.name}"))
        gate.outputs[0].type = value.type
        gate.outputs[0].shape = None if value.shape is None else value.shape.copy()
        return gate

    def _switch(self, wanted: Switch) -> ir.Value:
        """Return the value that opens every gate of one kind."""
        if wanted not in self._conditions:
            number = initializer(self._names.fresh("switch_number"), np.array(len(self.switches), np.int64))
            self._graph.register_initializer(number)
            node = ir.node("Gather", [self._input, number], name=self._names.fresh("switch"))
            node.outputs[0].name = self._names.fresh("switch")
            node.outputs[0].type = ir.TensorType(ir.DataType.BOOL)
            self._graph.insert_before(self._graph[0], node)
            self._conditions[wanted] = node.outputs[0]
            self.switches.append(wanted)
        return self._conditions[wanted]

    def _declare(self) -> None:
        """Give the input its size, now that it is known."""
        self._input.shape = ir.Shape((len(self.switches),))
        self._graph.inputs.append(self._input)

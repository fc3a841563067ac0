"""Pairs of QuantizeLinear and DequantizeLinear, seen as a gate between a value and its readers.

`switch_quantizers` makes one model for every choice of quantized nodes: each such operand gets a Where between the
output and the input of its pair, and one bool input, an element per node, chooses. A search for the nodes that must
stay float then needs one session. So does `switch_pairs` for the pairs themselves.
"""

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.api import Model
from tensortriage.precision.sdk import Names, initializer, quantizers, replace_output
from tensortriage.sdk import ModelError

SWITCHES = "quantized::"


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizerSwitches:
    """A model with an input that switches quantized operands on and off.

    Attributes:
        model: The model; `input` is its further input, bool, an element per node.
        input: Name of that input.
        nodes: Nodes that read quantized operands, or nodes that dequantize, in topological order.
    """

    model: Model
    input: str
    nodes: tuple[str, ...]

    def feed(self, kept: Collection[str]) -> dict[str, np.ndarray]:
        """Return the input that lets every node but the kept ones read quantized operands."""
        return {self.input: np.array([name not in kept for name in self.nodes])}


def switch_quantizers(model: Model) -> QuantizerSwitches:
    """Return a model in which the quantized operands of every node can be switched off.

    Args:
        model: A model with Q/DQ pairs, weights included (a weight stored in 8 bits has no float to go back to); it is
            not changed.

    Raises:
        ModelError: When no node of the main graph reads the result of a pair (``quantizers-none``).
    """
    edit = _Switching(model)
    for node in tuple(edit.graph):
        pairs = [(index, value, source) for index, value in enumerate(node.inputs) if (source := source_of(value))]
        if pairs:
            switch = edit.switch(node)
            gates = [edit.gate(switch, value, source, source.name) for _, value, source in pairs]
            edit.graph.insert_before(node, [switch, *gates])
            for (index, _, _), gate in zip(pairs, gates, strict=True):
                node.replace_input_with(index, gate.outputs[0])
    if not edit.nodes:
        raise ModelError(
            "no node of the model reads a quantized operand", slug="quantizers-none", cure="quantize it first"
        )
    return edit.finished()


def switch_pairs(
    model: Model, weights: Mapping[str, np.ndarray], *, tops: Mapping[str, float] | None = None
) -> QuantizerSwitches:
    """Return a model in which every pair can be bypassed.

    Args:
        model: A model with Q/DQ pairs; it is not changed.
        weights: Float originals of weights that are stored quantized, by the result of their DequantizeLinear; without
            one such a pair stays as it is.
        tops: Quantized values whose pair is an activation as well, each with its upper end (infinity for a ReLU): the
            pair still cuts off its operand there when it is bypassed.

    Returns:
        The model; its ``nodes`` are the DequantizeLinear nodes of the pairs.

    Raises:
        ModelError: When there is none that can be switched (``quantizers-none``).
    """
    pairs = [pair for pair in quantizers(model.graph) if not pair.of_weight or pair.result in weights]
    if not pairs:
        raise ModelError("the model has no pair of quantizers", slug="quantizers-none", cure="quantize it first")
    edit = _Switching(model)
    graph, names = edit.graph, edit.names
    nodes = {node.name: node for node in graph}
    for pair in pairs:
        back = nodes[pair.dequantize]
        result = back.outputs[0]
        source = nodes[pair.quantize].inputs[0] if pair.quantize else None
        if source is None:
            source = initializer(names.fresh(f"float::{pair.stored}"), weights[pair.result])
            graph.register_initializer(source)
        before = []
        if tops and pair.value in tops:
            before = [edit.activation(source, tops[pair.value])]
            source = before[0].outputs[0]
        switch = edit.switch(back)
        gate = edit.gate(switch, result, source, pair.result)
        gate.outputs[0].type, gate.outputs[0].shape = result.type, result.shape
        for use in tuple(result.uses()):
            if use.node is not gate:
                use.node.replace_input_with(use.idx, gate.outputs[0])
        graph.insert_after(back, [*before, switch, gate])
        if result.is_graph_output():
            name, result.name = result.name, names.fresh(f"pair::{pair.result}")
            gate.outputs[0].name = name
            replace_output(graph, result, gate.outputs[0])
    return edit.finished()


class _Switching:
    """One edit of one model: each of given nodes gets an element of one further input, bool, that opens its gates."""

    def __init__(self, model: Model) -> None:
        self._whole = model.clone().ir
        self.graph, self.names = self._whole.graph, Names(self._whole.graph)
        self.nodes: list[str] = []
        self._choice = ir.Value(name=self.names.fresh(SWITCHES), type=ir.TensorType(ir.DataType.BOOL))

    def switch(self, node: ir.Node) -> ir.Node:
        """Return the gate of a node, on the next element of the input."""
        number = initializer(self.names.fresh("quantizer_number"), np.array(len(self.nodes), np.int64))
        self.graph.register_initializer(number)
        self.nodes.append(node.name or "")
        gather = ir.node("Gather", [self._choice, number], name=self.names.fresh("quantizer_switch"))
        gather.outputs[0].name = self.names.fresh("quantizer_switch")
        return gather

    def gate(self, switch: ir.Node, quantized: ir.Value | None, plain: ir.Value, name: str | None) -> ir.Node:
        """Return the node that selects one of two values by a switch."""
        made = ir.node("Where", [switch.outputs[0], quantized, plain], name=self.names.fresh("quantizer_gate"))
        made.outputs[0].name = self.names.fresh(f"operand::{name}")
        return made

    def activation(self, value: ir.Value, top: float) -> ir.Node:
        """Return a node that clips a value below 0 and above a number."""
        ends = [initializer(self.names.fresh("activation_end"), np.array(end, np.float32)) for end in (0.0, top)]
        for end in ends:
            self.graph.register_initializer(end)
        made = ir.node("Clip", [value, *ends], name=self.names.fresh("activation"))
        made.outputs[0].name = self.names.fresh(f"activation::{value.name}")
        return made

    def finished(self) -> QuantizerSwitches:
        """Return the model with the input, whose size is known now."""
        self._choice.shape = ir.Shape((len(self.nodes),))
        self.graph.inputs.append(self._choice)
        return QuantizerSwitches(Model.from_ir(self._whole), self._choice.name or "", tuple(self.nodes))


def source_of(value: ir.Value | None) -> ir.Value | None:
    """Return the value that a Q/DQ pair quantizes; None for a value from another node."""
    back = value.producer() if value is not None else None
    if back is None or back.op_type != "DequantizeLinear" or back.inputs[0] is None:
        return None
    there = back.inputs[0].producer()
    return there.inputs[0] if there is not None and there.op_type == "QuantizeLinear" else None

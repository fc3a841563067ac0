"""Pairs of QuantizeLinear and DequantizeLinear, seen as something that stands between a value and who reads it.

`quantized_only_for` lets nobody else read a quantized operand. `switch_quantizers` makes one model for every choice of
quantized nodes: each such operand gets a Where between what the pair hands on and what went into it, and one bool
input, an element per node, chooses. A search for the nodes that do not stand 8 bits then needs one session. So does
`switch_pairs` for the pairs themselves.
`with_stored_weights` does the first half of a weight's pair once and for all.
"""

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, prune_initializers, replace_output
from tensortriage.values.dtype import DType

SWITCHES = "quantized::"
_PAIR = ("QuantizeLinear", "DequantizeLinear")


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizerSwitches:
    """A model whose nodes read quantized operands or not as an input says.

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
    """Return a model in which every node can be told to read its operands unquantized.

    Args:
        model: A model with Q/DQ pairs, weights included (a weight stored in 8 bits has no float to go back to); it is
            not changed.

    Raises:
        ModelError: When no node of the main graph reads the result of a pair (``quantizers-none``).
    """
    edit = _Switching(model)
    for node in tuple(edit.graph):
        pairs = [(index, value, source) for index, value in enumerate(node.inputs) if (source := _source(value))]
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
    """Return a model in which every pair can be told to hand on what went into it.

    Args:
        model: A model with Q/DQ pairs; it is not changed.
        weights: Float originals of weights that are stored quantized, by the result of their DequantizeLinear; without
            one such a pair stays as it is.
        tops: Quantized values whose pair is an activation as well, with where that ends (infinity for a ReLU): what
            went into it is cut off there still when the pair is told to hand it on.

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
    """One edit of one model: each of some nodes gets an element of one further input, bool, that opens its gates."""

    def __init__(self, model: Model) -> None:
        self._whole = model.clone().ir
        self.graph, self.names = self._whole.graph, Names(self._whole.graph)
        self.nodes: list[str] = []
        self._choice = ir.Value(name=self.names.fresh(SWITCHES), type=ir.TensorType(ir.DataType.BOOL))

    def switch(self, node: ir.Node) -> ir.Node:
        """Return what takes the next element of the input, for a node."""
        number = initializer(self.names.fresh("quantizer_number"), np.array(len(self.nodes), np.int64))
        self.graph.register_initializer(number)
        self.nodes.append(node.name or "")
        taken = ir.node("Gather", [self._choice, number], name=self.names.fresh("quantizer_switch"))
        taken.outputs[0].name = self.names.fresh("quantizer_switch")
        return taken

    def gate(self, switch: ir.Node, quantized: ir.Value | None, plain: ir.Value, name: str | None) -> ir.Node:
        """Return what hands on one of two values as a switch says."""
        made = ir.node("Where", [switch.outputs[0], quantized, plain], name=self.names.fresh("quantizer_gate"))
        made.outputs[0].name = self.names.fresh(f"operand::{name}")
        return made

    def activation(self, value: ir.Value, top: float) -> ir.Node:
        """Return what cuts a value off below 0 and above a number."""
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


def quantized_only_for(model: Model, nodes: Collection[str]) -> Model:
    """Return the model with every other node of the main graph reading what goes into a pair.

    Quantizers of tensors, ONNX Runtime's among them, hand the quantized tensor to all who read it, a residual Add say.

    Args:
        model: The model; it is not changed.
        nodes: Names of the nodes that are to read quantized operands.
    """
    whole = model.clone().ir
    for node in tuple(whole.graph):
        if node.name in nodes or node.op_type in _PAIR:
            continue
        for index, value in enumerate(node.inputs):
            if source := _source(value):
                node.replace_input_with(index, source)
    for node in reversed(tuple(whole.graph)):
        if node.op_type in _PAIR and not any(_used(value) for value in node.outputs):
            whole.graph.remove(node, safe=True)
    return Model.from_ir(whole)


def quantized_nodes(model: Model) -> tuple[str, ...]:
    """Return the nodes of the main graph that read the result of a pair, in topological order."""
    return tuple(
        node.name or ""
        for node in model.ir.graph
        if node.op_type not in _PAIR and any(_source(value) is not None for value in node.inputs)
    )


def with_stored_weights(model: Model) -> Model:
    """Return the model with the results of QuantizeLinear in place of the float weights that go into them.

    Computed is what ONNX defines (rounding to nearest even, saturating), for scales per tensor or along an axis; others
    (``block_size``) stay.

    Args:
        model: The model; it is not changed.
    """
    whole = model.clone().ir
    names = Names(whole.graph)
    for node in tuple(whole.graph):
        operands = [value.const_value if value is not None else None for value in node.inputs]
        if (
            node.op_type != "QuantizeLinear"
            or not all(operands)
            or len(operands) < 3
            or "block_size" in node.attributes
        ):
            continue
        weight, scale, zero = (tensor.numpy() for tensor in operands if tensor is not None)
        given = node.attributes.get("axis")
        stored = initializer(
            names.fresh(f"stored::{node.inputs[0].name if node.inputs[0] else ''}"),
            stored_numbers(weight, scale, zero, axis=given.as_int() if given is not None else 1),
        )
        whole.graph.register_initializer(stored)
        node.outputs[0].replace_all_uses_with(stored)
        whole.graph.remove(node, safe=True)
    prune_initializers(whole.graph)
    return Model.from_ir(whole)


def stored_numbers(weight: np.ndarray, scale: np.ndarray, zero: np.ndarray, *, axis: int) -> np.ndarray:
    """Return a weight as numbers of its zero point's type, as QuantizeLinear defines it; ``axis`` is that of scales."""
    shape = [1] * weight.ndim
    if scale.size > 1:
        shape[axis] = -1
    scales, zeros = (part.astype(np.float64).reshape(shape) for part in (scale, zero))
    dtype = DType.from_numpy(zero.dtype)
    scaled = weight.astype(np.float64) / scales
    if dtype.is_float:
        top = float(dtype.finfo.max)
        return np.asarray(np.clip(scaled, -top, top).astype(np.float32).astype(zero.dtype))
    limits = np.iinfo(zero.dtype)
    return np.asarray(np.clip(np.rint(scaled) + zeros, limits.min, limits.max).astype(zero.dtype))


def _used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _source(value: ir.Value | None) -> ir.Value | None:
    """Return what a Q/DQ pair quantizes; None where a value does not come from one."""
    back = value.producer() if value is not None else None
    if back is None or back.op_type != "DequantizeLinear" or back.inputs[0] is None:
        return None
    there = back.inputs[0].producer()
    return there.inputs[0] if there is not None and there.op_type == "QuantizeLinear" else None

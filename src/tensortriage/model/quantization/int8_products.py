"""Products by int8 weights in a file, however it is written, and the same file with uint8 weights.

Kernels are chosen by the types of data and weights. 128 added to an int8 weight and to its zero point changes no
product, so that an engine must give the same results; one that does not has kernels for int8 weights that are not
exact: `tensortriage.compare.quantization.int16_sums` says which.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import MULTIPLIES, is_quantizer
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, prune_initializers

_OPERANDS: Mapping[str, tuple[tuple[int, int, int, int], ...]] = {
    "QLinearConv": ((0, 2, 3, 5),),
    "QLinearMatMul": ((0, 2, 3, 5),),
    "QGemm": ((0, 2, 3, 5),),
    "MatMulInteger": ((0, 2, 1, 3),),
    "MatMulIntegerToFloat": ((0, 4, 1, 5),),
    "DynamicQuantizeMatMul": ((0, -1, 1, 3),),
    "DynamicQuantizeLSTM": ((0, -1, 1, 9), (-1, -1, 2, 11)),
    "QAttention": ((0, 6, 1, 7),),
}
"""Operators on integers; of each product, where data, their zero point, the weight and its zero point are among the
inputs, -1 for what is no input.

ConvInteger is none of them: ONNX Runtime has its weights on the left, where its kernels are exact."""

_OFFSET = 128
"""Offset from an int8 number to the uint8 one."""


@frozen_dataclass
class Int8Product:
    """A product of 8-bit data by a constant int8 weight.

    Attributes:
        node: The node that multiplies.
        data: Name of its data: integers, but for operators that quantize them themselves; empty for a state inside.
        zero: Name of their zero point; empty for none.
        weight: Name of the weight in integers.
        reader: The node that the weight is an input of.
        at: Where it and its zero point are among the inputs of that.
    """

    node: Node
    data: str
    zero: str
    weight: str
    reader: Node
    at: tuple[int, int]

    @property
    def in_pairs(self) -> bool:
        """Whether it is an operator on real numbers between pairs of QuantizeLinear and DequantizeLinear."""
        return self.reader is not self.node


def int8_products(graph: Graph) -> tuple[Int8Product, ...]:
    """Return the products of a graph, in topological order."""
    found = (each for node in graph.nodes for each in (*_between_pairs(graph, node), *_on_integers(node)))
    return tuple(each for each in found if _is_int8(graph, each.weight))


def unsigned_weights(model: Model) -> Model | None:
    """Return the same computation with the int8 weights of its products in uint8; None for a model without any.

    Args:
        model: The model; it is not changed.
    """
    graph, clone = model.graph, model.clone()
    nodes, names = {node.name: node for node in clone.ir.graph}, Names(clone.ir.graph)
    changes = {(node.name, index): array for each in int8_products(graph) for node, index, array in _int8(graph, each)}
    for (name, index), array in changes.items():
        value = initializer(names.fresh(f"{name}::unsigned"), (array.astype(np.int16) + _OFFSET).astype(np.uint8))
        clone.ir.graph.register_initializer(value)
        nodes[name].resize_inputs(max(len(nodes[name].inputs), index + 1))
        nodes[name].replace_input_with(index, value)
    prune_initializers(clone.ir.graph)
    return Model.from_ir(clone.ir) if changes else None


def _int8(graph: Graph, product: Int8Product) -> Iterator[tuple[Node, int, np.ndarray]]:
    """Yield the nodes that read the int8 weight of a product or its zero point, which input that is, and the array."""
    weight_at, zero_at = product.at
    zero = _input(product.reader, zero_at)
    scale = product.reader.inputs[1] if product.in_pairs else ""
    none = np.zeros(graph.weight(scale).shape if scale in graph.constants else (), np.int8)
    numbers = graph.weight(zero) if zero in graph.constants else none
    yield product.reader, zero_at, numbers
    if product.weight in graph.constants:
        yield product.reader, weight_at, graph.weight(product.weight)
    elif maker := graph.producer(product.weight):
        yield maker, zero_at, numbers


def _between_pairs(graph: Graph, node: Node) -> Iterator[Int8Product]:
    if node.op_type not in MULTIPLIES or node.domain:
        return
    data, weight = (graph.producer(name) for name in node.inputs[:2])
    if data is None or weight is None or not all(is_quantizer(each, "DequantizeLinear") for each in (data, weight)):
        return
    yield Int8Product(node, data.inputs[0], _input(data, 2), weight.inputs[0], weight, (0, 2))


def _on_integers(node: Node) -> Iterator[Int8Product]:
    for data, zero, weight, weight_zero in _OPERANDS.get(node.op_type, ()):
        yield Int8Product(
            node, _input(node, data), _input(node, zero), _input(node, weight), node, (weight, weight_zero)
        )


def _is_int8(graph: Graph, name: str) -> bool:
    """Return whether a value is a weight in int8, as it is stored, or quantized from a constant as it is read."""
    maker = graph.producer(name)
    if maker is not None and is_quantizer(maker, "QuantizeLinear") and maker.inputs[0] in graph.constants:
        name = _input(maker, 2)
    return name in graph.constants and graph.weight(name).dtype == np.int8


def _input(node: Node, index: int) -> str:
    return node.inputs[index] if 0 <= index < len(node.inputs) else ""

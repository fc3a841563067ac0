"""A quantized file in which a Conv's results are added before they are rounded to 8 bits: as OpenVINO fuses them.

OpenVINO 2026.4.1 computes a Conv by int8 weights and the Add of its quantized result as one primitive, which writes
over the other operand and rounds once. Where that operand is the Conv's own data, for weights in uint8, and for a
MatMul or Gemm, all is computed as it is written; of two Convs that are added the first is fused.
"""

import itertools
from collections.abc import Iterator, Mapping

from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer, bypass, quantizers
from tensortriage.values.dtype import DType


def fused_sums(graph: Graph) -> tuple[str, ...]:
    """Return the DequantizeLinear nodes between a Conv and an Add that it is fused with, in topological order."""
    return tuple(_between(graph))


def unrounded_sums(model: Model) -> Model | None:
    """Return the model without the pairs between; None for one without any.

    Args:
        model: The model; it is not changed.
    """
    found = fused_sums(model.graph)
    return bypass(model, {}, only=found) if found else None


def _between(graph: Graph) -> Iterator[str]:
    made = {pair.result: pair for pair in quantizers(graph)}
    for node in graph.nodes:
        if node.op_type == "Add" and not node.domain:
            ways = (_fused(graph, made, node.inputs[at], node.inputs[1 - at]) for at in (0, 1))
            yield from (name for name in itertools.islice(filter(None, ways), 1))


def _fused(graph: Graph, made: Mapping[str, Quantizer], operand: str, other: str) -> str:
    """Return the DequantizeLinear of an operand that is a Conv's result; empty where it is none, or is not fused."""
    pair = made.get(operand)
    maker = graph.producer(pair.value) if pair is not None and pair.value else None
    if pair is None or maker is None or maker.op_type != "Conv" or maker.inputs[0] == other:
        return ""
    weight = made.get(maker.inputs[1])
    alone = all(len(graph.consumers(name)) == 1 for name in (pair.value, pair.stored, pair.result))
    return pair.dequantize if alone and weight is not None and weight.dtype is DType.INT8 else ""

"""A quantized file whose float weights are in int8 as well: what ONNX Runtime makes of it as it builds.

Its pass WeightBiasQuantization (core/optimizer/qdq_transformer/weight_bias_quantization.cc, 1.31.1) looks for a Conv,
ConvTranspose or Gemm between quantizers whose weight is still in float32, and puts that in int8: one scale and one zero
point for the whole tensor, by its range with 0 in it.
"""

import numpy as np

from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import is_quantizer
from tensortriage.model.transforms.mark_outputs import freeze

_OPS = frozenset({"Conv", "ConvTranspose", "Gemm"})
_PASSED = frozenset({"Relu", "Clip"})
"""Operators between one of these and the quantizer of its result."""
_STEPS, _LEAST = 255, -128


def float_weights(graph: Graph) -> tuple[str, ...]:
    """Return the float32 weights of ops between quantizers, in topological order."""
    return tuple(node.inputs[1] for node in graph.nodes if _is_between(graph, node))


def weights_in_int8(model: Model) -> Model | None:
    """Return the model with these weights rounded to int8; None for one without any.

    Args:
        model: The model; it is not changed.
    """
    found = {name: _rounded(model.graph.weight(name)) for name in float_weights(model.graph)}
    return freeze(model, found) if found else None


def _rounded(weight: np.ndarray) -> np.ndarray:
    least, most = min(float(weight.min(initial=0.0)), 0.0), max(float(weight.max(initial=0.0)), 0.0)
    step = np.float32((most - least) / _STEPS)
    if not step:
        return weight
    zero = np.clip(np.rint(_LEAST - least / step), _LEAST, _LEAST + _STEPS)
    steps = np.clip(np.rint(weight / step) + zero, _LEAST, _LEAST + _STEPS) - zero
    return np.asarray(steps * step, np.float32)


def _is_between(graph: Graph, node: Node) -> bool:
    if node.op_type not in _OPS or node.domain or node.inputs[1] not in graph.constants:
        return False
    data, weight = graph.producer(node.inputs[0]), graph.weight(node.inputs[1])
    if data is None or not is_quantizer(data, "DequantizeLinear") or weight.dtype != np.float32:
        return False
    scale = data.inputs[1]
    return scale in graph.constants and graph.weight(scale).size == 1 and _is_quantized(graph, node)


def _is_quantized(graph: Graph, node: Node) -> bool:
    """Return whether a QuantizeLinear alone reads the result, maybe behind a Relu or Clip."""
    while True:
        readers = graph.consumers(node.outputs[0])
        if len(readers) != 1:
            return False
        if is_quantizer(readers[0], "QuantizeLinear"):
            return True
        if readers[0].op_type not in _PASSED:
            return False
        node = readers[0]

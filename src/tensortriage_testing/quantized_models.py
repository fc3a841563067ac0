"""Quantize a small model by hand, so that a mistake can be planted into one scale that is otherwise known to be right.

Every MatMul, Gemm and Conv reads its first operand through a uint8 pair and its weight as int8 integers, calibrated by
the extremes of one run: the defaults of common quantizers.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensortriage.engines.sdk import Model, mark_outputs
from tensortriage.testing.sdk import OnnxRuntimeEngine, markable
from tensortriage_testing.models import save_model

_CHANNEL_AXES = {"MatMul": -1, "Gemm": 1, "Conv": 0}


def quantized(model: onnx.ModelProto, feed: Mapping[str, np.ndarray], *, per_channel: bool = True) -> onnx.ModelProto:
    """Return a model with QuantizeLinear and DequantizeLinear pairs.

    Names of nodes stay. The scale of value V is named ``V_scale``, its zero point ``V_zero_point``, the quantized one
    ``V_quantized``, the dequantized one ``V_dequantized``; nodes are called ``V_QuantizeLinear`` and
    ``V_DequantizeLinear``.

    Args:
        model: Operator set 13 or later; every node has a name.
        feed: One set of inputs, to calibrate on.
        per_channel: Whether weights have a scale per output channel.

    Example:
        >>> from tensortriage_testing import feed_for, mlp
        >>> model = mlp()
        >>> any(node.op_type == "QuantizeLinear" for node in quantized(model, feed_for(model)).graph.node)
        True
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    values = {**_recorded(model, feed), **feed}
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes: list[onnx.NodeProto] = []
    done: set[str] = set()
    for original in result.graph.node:
        node = onnx.NodeProto()
        node.CopyFrom(original)
        if node.op_type in _CHANNEL_AXES and node.input[1] in weights:
            axis = 0 if node.op_type == "Gemm" and _transposes(node) else _CHANNEL_AXES[node.op_type]
            weight = weights[node.input[1]]
            if node.input[1] not in done:
                nodes.append(_weight(result.graph, node.input[1], weight, axis % weight.ndim if per_channel else None))
            if node.input[0] not in done and node.input[0] in values:
                nodes += _activation(result.graph, node.input[0], values[node.input[0]])
            done.update(node.input[:2])
            node.input[1] = f"{node.input[1]}_dequantized"
            if node.input[0] in values:
                node.input[0] = f"{node.input[0]}_dequantized"
        nodes.append(node)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in result.graph.initializer if tensor.name in used]
    del result.graph.initializer[:]
    result.graph.initializer.extend(kept)
    return result


def _transposes(node: onnx.NodeProto) -> bool:
    return any(attribute.name == "transB" and attribute.i for attribute in node.attribute)


def _recorded(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return every value of a model on a feed."""
    with tempfile.TemporaryDirectory(prefix="triage-quantizing-") as name:
        loaded = Model.load(save_model(model, Path(name) / "model.onnx"))
        marked = mark_outputs(loaded, markable(loaded)).save(Path(name) / "marked.onnx")
        session = OnnxRuntimeEngine().compile(marked, {"optimization": "none"})
        try:
            return {key: np.array(array) for key, array in session.run(feed).items()}
        finally:
            session.close()


def _activation(graph: onnx.GraphProto, name: str, values: np.ndarray) -> list[onnx.NodeProto]:
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = np.float32((high - low) / 255.0 or 1.0)
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    _constants(graph, name, np.asarray(scale), np.asarray(zero))
    parameters = [f"{name}_scale", f"{name}_zero_point"]
    return [
        helper.make_node(
            "QuantizeLinear", [name, *parameters], [f"{name}_quantized"], name=f"{name}_QuantizeLinear"
        ),
        helper.make_node(
            "DequantizeLinear", [f"{name}_quantized", *parameters], [f"{name}_dequantized"],
            name=f"{name}_DequantizeLinear",
        ),
    ]  # fmt: skip


def _weight(graph: onnx.GraphProto, name: str, weight: np.ndarray, axis: int | None) -> onnx.NodeProto:
    others = tuple(along for along in range(weight.ndim) if along != axis)
    largest = np.abs(weight).max(axis=others)
    scale = np.asarray(np.where(largest > 0, largest, 1.0) / 127.0, np.float32)
    shaped = scale if axis is None else scale.reshape([-1 if along == axis else 1 for along in range(weight.ndim)])
    _constants(graph, name, scale, np.zeros(scale.shape, np.int8))
    integers = np.clip(np.rint(weight / shaped), -127, 127).astype(np.int8)
    graph.initializer.append(numpy_helper.from_array(integers, f"{name}_quantized"))
    return helper.make_node(
        "DequantizeLinear", [f"{name}_quantized", f"{name}_scale", f"{name}_zero_point"], [f"{name}_dequantized"],
        name=f"{name}_DequantizeLinear", axis=axis or 0,
    )  # fmt: skip


def _constants(graph: onnx.GraphProto, name: str, scale: np.ndarray, zero: np.ndarray) -> None:
    graph.initializer.append(numpy_helper.from_array(scale, f"{name}_scale"))
    graph.initializer.append(numpy_helper.from_array(zero, f"{name}_zero_point"))

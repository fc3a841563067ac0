"""Networks written node by node: builders of `tensortriage_testing`, and those of the GPU proof.

The latter are small, of opset 13 (TensorRT 8.5 knows no LayerNormalization), with weights that behave.
"""

import functools
import math
from collections.abc import Callable, Mapping

import numpy as np
import onnx

import tensortriage_testing as testing
from networks.made import Made
from tensortriage_testing import conv_net, encoder, feed_for, mlp, residual_dag
from tensortriage_testing.graph_writer import GraphWriter, floats

OPSET = 13
LARGE = 400.0
"""Gain of the two convolutions whose product float16 cannot hold: 400 * 400 = 160000, above 65504."""


def depthwise() -> onnx.ModelProto:
    """Return separable convolutions, as in MobileNet: depthwise 3x3, pointwise 1x1, Clip to 0..6."""
    graph = GraphWriter(2)
    x = _conv(graph, "image", "/stem", 3, 32, size=3)
    for index in range(4):
        name = f"/block.{index}"
        weight = graph.normal(f"{name}/depthwise.weight", (32, 1, 3, 3), math.sqrt(2 / 9))
        y = graph.op("Conv", x, weight, name=f"{name}/depthwise/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=32)
        y = graph.op("Clip", y, graph.scalar("low", 0), graph.scalar("high", 6), name=f"{name}/Clip")
        y = _conv(graph, y, f"{name}/pointwise", 32, 32, size=1)
        x = graph.op("Add", x, y, name=f"{name}/Add")
    graph.op("GlobalAveragePool", x, name="/gap/GlobalAveragePool")
    graph.publish("features")
    return graph.finish("depthwise", [floats("image", 2, 3, 32, 32)], [floats("features", 2, 32, 1, 1)])


def mask_net() -> onnx.ModelProto:
    """Return a mask estimator of source separation, without recurrence: dilated convolutions, Sigmoid, mask * input."""
    graph = GraphWriter(3)
    x = graph.op("Log", graph.op("Add", graph.op("Abs", "spectrum", name="/Abs"), graph.scalar("one", 1), name="/Add"),
                 name="/Log")  # fmt: skip
    fan_in = 1
    for index, dilation in enumerate((1, 2, 4)):
        name = f"/block.{index}"
        weight = graph.normal(f"{name}.weight", (24, fan_in, 3, 3), math.sqrt(2 / (9 * fan_in)))
        x = graph.op("Conv", x, weight, name=f"{name}/Conv", kernel_shape=[3, 3], dilations=[dilation] * 2,
                     pads=[dilation] * 4)  # fmt: skip
        x = graph.op("LeakyRelu", x, name=f"{name}/LeakyRelu", alpha=0.1)
        fan_in = 24
    mask = graph.op("Sigmoid", _conv(graph, x, "/mask", 24, 1, size=1), name="/mask/Sigmoid")
    loud = graph.op("Greater", mask, graph.scalar("threshold", 0.2), name="/mask/Greater")
    gated = graph.op("Where", loud, mask, graph.scalar("quiet", 0.05), name="/mask/Where")
    graph.op("Mul", gated, "spectrum", name="/Mul")
    graph.publish("separated")
    return graph.finish("mask_net", [floats("spectrum", 2, 1, 64, 48)], [floats("separated", 2, 1, 64, 48)])


def quantized() -> onnx.ModelProto:
    """Return three convolutions between QuantizeLinear and DequantizeLinear, scales fit for normal numbers."""
    graph = GraphWriter(4)
    x = "image"
    fan_in = 8
    zero = graph.weight("zero", np.int8(0))
    for index in range(3):
        name = f"/layer.{index}"
        scale = graph.scalar(f"{name}.scale", 0.04)
        x = graph.op("QuantizeLinear", x, scale, zero, name=f"{name}/QuantizeLinear")
        x = graph.op("DequantizeLinear", x, scale, zero, name=f"{name}/DequantizeLinear")
        deviation = math.sqrt(2 / (9 * fan_in))
        rounded = np.round(graph.rng.standard_normal((16, fan_in, 3, 3)) * 32)
        integers = graph.weight(f"{name}.weight", np.clip(rounded, -127, 127).astype(np.int8))
        weight = graph.op("DequantizeLinear", integers, graph.scalar(f"{name}.weight_scale", deviation / 32), zero,
                          name=f"{name}/weight/DequantizeLinear")  # fmt: skip
        x = graph.op("Conv", x, weight, name=f"{name}/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        x = graph.op("Relu", x, name=f"{name}/Relu")
        fan_in = 16
    graph.publish("y")
    return graph.finish("quantized", [floats("image", 2, 8, 16, 16)], [floats("y", 2, 16, 16, 16)])


def overflowing() -> onnx.ModelProto:
    """Return convolutions with two large gains in a row, undone by a third: fine in float32, not in float16."""
    graph = GraphWriter(5)
    x = "image"
    for index, gain in enumerate((1.0, 1.0, LARGE, LARGE, 1.0 / (LARGE * LARGE), 1.0)):
        name = f"/layer.{index}"
        weight = graph.normal(f"{name}.weight", (64, 64, 3, 3), gain * math.sqrt(2 / (9 * 64)))
        x = graph.op("Conv", x, weight, name=f"{name}/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        x = graph.op("Relu", x, name=f"{name}/Relu")
    graph.publish("y")
    return graph.finish("overflowing", [floats("image", 1, 64, 16, 16)], [floats("y", 1, 64, 16, 16)])


def _conv(graph: GraphWriter, x: str, name: str, channels_in: int, channels: int, *, size: int) -> str:
    weight = graph.normal(
        f"{name}.weight", (channels, channels_in, size, size), math.sqrt(2 / (size * size * channels_in))
    )
    return graph.op("Conv", x, weight, name=f"{name}/Conv", kernel_shape=[size, size], pads=[size // 2] * 4)


SMALL = functools.partial(encoder, layers=2, width=48, heads=4, tokens=16, vocabulary=100)
TESTING: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: mlp(width=48),
    "residual_dag": lambda: residual_dag(60),
    "conv_net": lambda: conv_net(blocks=2, channels=12),
    "encoder": SMALL,
    "encoder_ln": lambda: SMALL(decomposed_layernorm=False),
    "quantized": lambda: testing.quantized(conv_net(blocks=1, channels=12), feed_for(conv_net(blocks=1, channels=12))),
}
GPU: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "cnn": lambda: conv_net(blocks=3, channels=32, size=32),
    "cnn1": lambda: conv_net(blocks=1, channels=32, size=32),
    "transformer": lambda: encoder(layers=2, width=64, heads=4, tokens=32, batch=2),
    "depthwise": depthwise,
    "mask": mask_net,
    "quantized": quantized,
    "dynamic": lambda: mlp(batch="N"),
    "transformer4": lambda: encoder(layers=4, width=256, heads=4, tokens=64, batch=1),
    "overflowing": overflowing,
}


def made(group: str, name: str) -> Made:
    """Return one of the sets `testing` and `gpu`."""
    if group == "testing":
        model = TESTING[name]()
        return Made(model, feed_for(model))
    model = GPU[name]()
    model.opset_import[0].version = OPSET
    onnx.checker.check_model(model)
    return Made(model, feed_for(model, batch=4))

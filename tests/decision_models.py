"""Networks that end in a decision: a classifier, a ranking, a detector, a greedy decoder; small, with feeds."""

import numpy as np
import onnx
from onnx import helper

from tensortriage_testing.graph_writer import GraphWriter, floats, integers

WIDTH = 64


def classifier(rows: int = 400) -> onnx.ModelProto:
    """x -> two layers -> ArgMax over 50 classes."""
    g = GraphWriter(0)
    g.op("ArgMax", _head(g, "x", 50), name="/head/ArgMax", axis=1, keepdims=0)
    g.publish("label")
    return g.finish("classifier", [floats("x", rows, WIDTH)], [integers("label", rows)])


def ranking(rows: int = 16, *, ordered: bool = True) -> onnx.ModelProto:
    """x -> two layers -> the 20 best of 200, as values and ranks."""
    g = GraphWriter(0)
    inputs, outputs = [_head(g, "x", 200), g.indices("k", 20)], ["values", "ranks"]
    g._nodes.append(helper.make_node("TopK", inputs, outputs, name="/head/TopK", axis=-1, sorted=int(ordered)))
    return g.finish("ranking", [floats("x", rows, WIDTH)], [floats("values", rows, 20), integers("ranks", rows, 20)])


def detector(anchors: int = 200, classes: int = 4, *, shown: bool = True) -> onnx.ModelProto:
    """x -> two layers -> boxes and scores -> NonMaxSuppression -> boxes and scores picked, and perhaps the indices."""
    g = GraphWriter(0)
    x = _backbone(g, "x", "b", 2)
    logits = g.op("MatMul", x, g.normal("cls", (WIDTH, classes), 0.3), name="/cls/MatMul")
    scores = g.op("Transpose", g.op("Sigmoid", logits, name="/cls/Sigmoid"), name="/cls/Transpose", perm=[1, 0])
    zero = g.indices("zero", 0)
    stacked = g.op("Unsqueeze", scores, zero, name="/cls/Unsqueeze")
    centre = g.op("MatMul", x, g.normal("centre", (WIDTH, 2), 2.0), name="/box/Centre")
    size = g.op("Exp", g.op("MatMul", x, g.normal("size", (WIDTH, 2), 0.1), name="/box/Size"), name="/box/Exp")
    size = g.op("Mul", size, g.scalar("unit", 8.0), name="/box/Mul")
    boxes = g.op("Concat", centre, size, name="/box/Concat", axis=1)
    limits = (g.indices("most", 30), g.scalar("overlap", 0.45), g.scalar("least", 0.6))
    batch = g.op("Unsqueeze", boxes, zero, name="/box/Unsqueeze")
    picked = g.op("NonMaxSuppression", batch, stacked, *limits, name="/nms/NMS", center_point_box=1)
    if shown:
        picked = g.publish("selected")
    index = g.op("Gather", picked, g.indices("two", 2), name="/nms/Index", axis=1)
    g.op("Gather", boxes, g.op("Reshape", index, g.indices("flat", -1), name="/nms/Flat"), name="/nms/Boxes")
    g.publish("boxes")
    pairs = g.op("Slice", picked, g.indices("one", 1), g.indices("three", 3), g.indices("axis", 1), name="/nms/Pairs")
    g.op("GatherND", scores, pairs, name="/nms/Scores")
    g.publish("scores")
    outputs = [integers("selected", "n", 3)] if shown else []
    return g.finish(
        "detector", [floats("x", anchors, WIDTH)], [*outputs, floats("boxes", "n", 4), floats("scores", "n")]
    )


def decoder(rows: int = 64, *, steps: int = 4, vocabulary: int = 60) -> onnx.ModelProto:
    """x -> as many greedy tokens as steps, each embedded and fed to the next step."""
    g = GraphWriter(0)
    embedding, state, tokens = g.normal("embedding", (vocabulary, WIDTH), 1.0), "x", []
    for step in range(steps):
        hidden = _backbone(g, state, f"s{step}", 1)
        logits = g.op("MatMul", hidden, g.normal("lm", (WIDTH, vocabulary), 0.125), name=f"/s{step}/Logits")
        tokens.append(g.op("ArgMax", logits, name=f"/s{step}/ArgMax", axis=1, keepdims=1))
        embedded = g.op("Gather", embedding, tokens[-1], name=f"/s{step}/Embed")
        embedded = g.op("Squeeze", embedded, g.indices("one", 1), name=f"/s{step}/Squeeze")
        state = g.op("Add", hidden, embedded, name=f"/s{step}/Add")
    g.op("Concat", *tokens, name="/Tokens", axis=1)
    g.publish("tokens")
    return g.finish("decoder", [floats("x", rows, WIDTH)], [integers("tokens", rows, steps)])


def neighbours(seed: int, *, points: int = 40, nearest: int = 6, width: int = 32) -> onnx.ModelProto:
    """x -> distances of points -> the nearest of each -> the largest features among them -> a layer."""
    g = GraphWriter(seed)
    to, other = (g.op("Unsqueeze", "x", g.indices(f"axis{axis}", axis), name=f"/Unsqueeze_{axis}") for axis in (2, 1))
    away = g.op("Sub", to, other, name="/Sub")
    square = g.op("Mul", away, away, name="/Mul")
    inputs = [g.op("ReduceSum", square, g.indices("last", -1), name="/Sum", keepdims=0), g.indices("k", nearest)]
    g._nodes.append(helper.make_node("TopK", inputs, ["near", "picked"], name="/TopK", axis=-1, largest=0))
    x = g.op("Relu", g.op("MatMul", "x", g.normal("w0", (3, width), 1.0), name="/MatMul_0"), name="/Relu_0")
    every = g.op("Expand", g.op("Unsqueeze", x, "axis1", name="/All"), g.indices("all", 2, points, points, width),
                 name="/Expand_0")  # fmt: skip
    wide = g.op("Unsqueeze", "picked", g.indices("axis3", 3), name="/Wide")
    wide = g.op("Expand", wide, g.indices("wide", 2, points, nearest, width), name="/Expand_1")
    x = g.op("GatherElements", every, wide, name="/Gather", axis=2)
    x = g.op("Relu", g.op("MatMul", x, g.normal("w1", (width, width), width**-0.5), name="/MatMul_1"), name="/Relu_1")
    x = g.op("ReduceMax", x, name="/Max", axes=[2], keepdims=0)
    g.op("MatMul", x, g.normal("w2", (width, 8), width**-0.5), name="/MatMul_2")
    g.publish("y")
    return g.finish("neighbours", [floats("x", 2, points, 3)], [floats("y", 2, points, 8)])


def feed(rows: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Return normal numbers."""
    return {"x": np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)}


def _backbone(g: GraphWriter, x: str, name: str, depth: int) -> str:
    for layer in range(depth):
        weight = g.normal(f"{name}{layer}", (WIDTH, WIDTH), WIDTH**-0.5)
        x = g.op("Tanh", g.op("MatMul", x, weight, name=f"/{name}/MatMul_{layer}"), name=f"/{name}/Tanh_{layer}")
    return x


def _head(g: GraphWriter, x: str, size: int) -> str:
    weight = g.normal("head", (WIDTH, size), 0.125)
    return g.op("MatMul", _backbone(g, x, "b", 2), weight, name="/head/MatMul")

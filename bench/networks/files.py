"""Models that are there as files: those of examples/, and the light ones of the onnx package with drawn weights."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from networks.made import Made

EXAMPLES = Path(__file__).parents[2] / "examples"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def made(group: str, name: str) -> Made:
    """Return one of the sets `digits` and `light`."""
    if group == "light":
        model = dressed(onnx.load(LIGHT / f"{name}.onnx"))
        return Made(model, image_for(model))
    model = onnx.load(EXAMPLES / f"{name}.onnx")
    with np.load(EXAMPLES / "digits.npz") as data:
        return Made(model, {value.name: data[value.name][:1] for value in model.graph.input})


def dressed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give a model whose weights are constant fills drawn weights, and no Softmax at its end that would flatten them.

    Convolutions and matrices get normal numbers of variance 1 / fan-in, scales and variances are near 1, other vectors
    (biases, means) near 0.
    """
    rng = np.random.default_rng(0)
    shapes = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    scales = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[1::3]}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = shapes[node.input[0]]
        name = node.output[0]
        drawn = rng.standard_normal(shape) * (np.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1)
        if name in scales or "scale" in name:
            drawn = 1.0 + drawn
        model.graph.initializer.append(numpy_helper.from_array(drawn.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        last.op_type = "Identity"
        del last.attribute[:]
    model.ir_version = 8  # below 4 every initializer has to be an input as well
    return model


def image_for(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return normal numbers for the inputs of a model that are not weights."""
    weights = {w.name for w in model.graph.initializer}
    rng = np.random.default_rng(1)
    return {
        value.name: rng.standard_normal([d.dim_value or 1 for d in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
        if value.name not in weights
    }

"""Small ONNX files for the engine tests."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

F = onnx.TensorProto.FLOAT


def value(name, dtype=F, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path, nodes, inputs, outputs, weights=(), *, opset=21, functions=(), domains=()) -> Path:
    """Write a model; inputs and outputs are value infos, weights a mapping of name to array."""
    graph = helper.make_graph(
        list(nodes), "g", list(inputs), list(outputs), [numpy_helper.from_array(a, n) for n, a in dict(weights).items()]
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))
    onnx.save(model, path)
    return path


def parsed(path, text, *, opset=21) -> Path:
    """Write the model of a graph in ONNX's text format."""
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}'), path)
    return path


def conv_net(path) -> Path:
    """Two convolutions with a residual, and a linear layer: what optimizers like to fuse."""
    rng = np.random.default_rng(0)

    def weight(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def node(op_type, inputs, outputs, name, **attributes):
        return helper.make_node(op_type, inputs.split(), outputs.split(), name=name, **attributes)

    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c1 s b m v", "bn", "bn1"),
        node("Relu", "bn", "r1", "relu1"),
        node("MaxPool", "r1", "p1", "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 w2 b2", "c2", "conv2", pads=[1, 1, 1, 1]),
        node("Add", "c2 p1", "a", "add"),
        node("Relu", "a", "r2", "relu2"),
        node("GlobalAveragePool", "r2", "g", "gap"),
        node("Flatten", "g", "f", "flat"),
        node("MatMul", "f w3", "mm", "mm"),
        node("Add", "mm b3", "y", "addb"),
    ]
    weights = {
        "w1": weight(32, 16, 3, 3), "b1": weight(32), "s": weight(32), "b": weight(32), "m": weight(32),
        "v": np.abs(weight(32)) + 0.5, "w2": weight(32, 32, 3, 3) / 16, "b2": weight(32), "w3": weight(32, 10),
        "b3": weight(10),
    }  # fmt: skip
    return save(path, nodes, [value("x", shape=[1, 16, 8, 8])], [value("y", shape=[1, 10])], weights, opset=17)

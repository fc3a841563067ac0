"""Writes short patterns in which compilers move an activation: Conv, a pool, an activation that does not commute.

    python bench/atlas_patterns.py DIR
    python bench/atlas.py --networks DIR --target "openvino-2026.4.1=openvino:precision=fp32" --out patterns.jsonl

A maximum commutes with what only rises (Relu, Exp, Tanh, Sigmoid, Elu), not with what falls somewhere (Abs, HardSwish,
Gelu, x * Sigmoid(x), Mish, LeakyRelu of a negative slope), a mean with no function that bends. Weights are drawn.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

POOLS = ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
ACTIVATIONS = {
    "abs": ["Abs"], "hardswish": ["HardSwish"], "gelu": ["Gelu"], "swish": ["Sigmoid", "Mul"], "mish": ["Mish"],
    "falling_leakyrelu": ["LeakyRelu"], "neg": ["Neg"], "relu": ["Relu"], "exp": ["Exp"], "tanh": ["Tanh"],
    "elu": ["Elu"], "sigmoid": ["Sigmoid"], "softplus": ["Softplus"], "sin": ["Sin"],
}  # fmt: skip
CHANNELS, SIZE = 8, 12


def pattern(pool: str, activation: list[str], seed: int = 0) -> onnx.ModelProto:
    """Return Conv, a pool, and ops that make an activation; a Mul takes the pool's result as well."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 6
    window = {} if pool.startswith("Global") else {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "weights"], ["conv"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node(pool, ["conv"], ["pool"], "pool", **window),
    ]
    for op_type in activation:
        slope = {"alpha": -0.5} if op_type == "LeakyRelu" else {}
        inputs = [nodes[-1].output[0], *(["pool"] if op_type == "Mul" else [])]
        nodes.append(helper.make_node(op_type, inputs, [op_type.lower()], op_type.lower(), **slope))
    nodes[-1].output[0] = "y"
    size = 1 if pool.startswith("Global") else SIZE // 2
    shapes = {"x": [1, CHANNELS, SIZE, SIZE], "y": [1, CHANNELS, size, size]}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(
        nodes, f"{pool}_{activation[0]}", values[:1], values[1:], [onnx.numpy_helper.from_array(weights, "weights")]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    x = np.random.default_rng(1).standard_normal((1, CHANNELS, SIZE, SIZE)).astype(np.float32)
    for pool in POOLS:
        for name, activation in ACTIVATIONS.items():
            path = folder / f"conv_{pool.lower()}_{name}.onnx"
            onnx.save(onnx.shape_inference.infer_shapes(pattern(pool, activation), strict_mode=True), path)
            np.savez(path.with_suffix(".npz"), x=x)


if __name__ == "__main__":
    main()

"""A model that multiplies by a weight of 4 bits, as converters of language models write it."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def product(*, terms=64, columns=8, block=16, bits=TensorProto.UINT4, axis=0):
    """Return a model that multiplies by a weight of few bits, quantized in blocks."""
    rng = np.random.default_rng(3)
    scales = [terms // block, columns] if axis == 0 else [terms, columns // block]
    weight = helper.make_tensor("w", bits, [terms, columns], rng.integers(0, 16, terms * columns))
    scale = numpy_helper.from_array((rng.random(scales) * 0.02 + 0.01).astype(np.float32), "s")
    zero = helper.make_tensor("z", bits, scales, np.full(scales, 8).flatten())
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], "dequantize", axis=axis, block_size=block),
        helper.make_node("MatMul", ["x", "d"], ["y"], "product"),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size])]
        for name, size in (("x", terms), ("y", columns))
    )
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight, scale, zero])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

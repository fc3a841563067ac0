"""Models of ONNX Runtime's own operators, written as ONNX text, and what its CPU kernels give for them."""

import re

import numpy as np
import onnx
from onnx import parser

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.onnxruntime import OnnxRuntimeEngine

HEADER = '<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
SCALES = {"s": 0.001, "xs": 0.02, "ts": 0.03, "ys": 0.025, "ws": 0.01}


def written(text, opset):
    """Return the model of a text; ``{@x}`` stands for random numbers, as many as the type before it has."""
    random = np.random.default_rng(1)

    def numbers(found):
        count = int(np.prod([int(size) for size in found[2].split(",")]))
        values = random.integers(0, 256, count) if found[1] == "uint8" else random.uniform(-1, 1, count).round(4)
        return f"{found[1]}[{found[2]}] {found[3]} = {{{', '.join(map(str, values))}}}"

    body = re.sub(r"(float|uint8)\[([\d,]+)\] (\w+) = \{@\w\}", numbers, text)
    model = parser.parse_model(HEADER.format(opset=opset) + f" g {body}".replace("[?]", ""))
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def fed(model):
    random = np.random.default_rng(0)
    feed = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if not shape:
            given = SCALES.get(value.name, 120)
            feed[value.name] = np.array(given, dtype)
        elif dtype == np.float32:
            feed[value.name] = random.standard_normal(shape, np.float32)
        elif dtype in (np.uint8, np.uint16):
            feed[value.name] = random.integers(0, 256, shape).astype(dtype)
        else:
            feed[value.name] = random.integers(0, 2, shape).astype(dtype)
        if value.name == "mask":
            feed[value.name][:, 0] = 1
    return feed


def answers(path, feed, **options):
    truth = OnnxRuntimeEngine().compile(path, {"optimization": "none"}).run(feed)
    return truth, Float64Engine().compile(path, options).run(feed)


def same_as_the_kernel(text, opset, path, atol=2e-6):
    """See that the engine ``float64``, which has no kernels for these operators, computes what ONNX Runtime does."""
    model = written(text, opset)
    onnx.save(model, path)
    truth, own = answers(path, fed(model))
    for name, expected in truth.items():
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(own[name], expected, rtol=2e-5, atol=atol, err_msg=name)
        else:  # a number that lies between two steps may go to either
            assert np.abs(own[name].astype(int) - expected.astype(int)).max() <= (expected.dtype.itemsize < 4), name

"""Models as quantization-aware training exports them, and a script of an engine on a processor without VNNI."""

import numpy as np
from onnx import helper, numpy_helper

from tensortriage_testing import quantized

EYE = "{" + ", ".join(f"{number:g}" for number in np.eye(8).ravel()) + "}"
IDENTITIES = f"""
    g (float[16, 8] x, float[16, 8] big) => (float[16, 8] y) <float[8, 8] eye = {EYE}, float[8, 8] two = {EYE}> {{
        [first] h = MatMul(x, eye)
        [outlier] o = MatMul(big, eye)
        [low] c = Min(o, o)
        [sum] s = Add(h, c)
        [last] y = MatMul(s, two)
    }}"""
"""A chain of MatMuls with the identity, in which one operand may hold an outlier."""

SATURATING = "from tensortriage_testing import SaturatingEngine as Engine\n"
"""The script of an engine without VNNI."""


def passed(numbers, scale):
    """Return numbers as a symmetric int8 quantizer hands them on."""
    return np.clip(np.rint(numbers / scale), -128, 127) * scale


def learned(numbers, axis=None):
    """Return the scales that training with LSQ tends to: those of least squared error, found by trying."""
    others = tuple(along for along in range(numbers.ndim) if along != axis)
    largest = np.abs(numbers).max(axis=others, keepdims=True)
    shares = np.linspace(0.5, 1.0, 26)
    errors = [np.square(passed(numbers, share * largest / 127) - numbers).sum(axis=others) for share in shares]
    return (shares[np.argmin(errors, axis=0)].reshape(largest.shape) * largest / 127).astype(np.float32)


def trained(model, feed):
    """Return a model as quantization-aware training exports it: float weights, and pairs with learned scales around."""
    small = quantized(model, feed)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in small.graph.node:
        name = node.input[0].removesuffix("_quantized")
        if node.op_type == "DequantizeLinear" and name in weights:
            axis = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
            scale = learned(weights[name], axis)
            rename(small, f"{name}_scale", scale.reshape(-1))
            rename(small, f"{name}_zero_point", np.zeros(scale.size, np.int8))
            drop(small, f"{name}_quantized")
            small.graph.initializer.append(numpy_helper.from_array(weights[name], name))
            words = [name, f"{name}_scale", f"{name}_zero_point"]
            own = f"{name}_QuantizeLinear"
            nodes.append(helper.make_node("QuantizeLinear", words, [node.input[0]], name=own, axis=axis))
        nodes.append(node)
    del small.graph.node[:]
    small.graph.node.extend(nodes)
    return small


def rename(model, name, array):
    drop(model, name)
    model.graph.initializer.append(numpy_helper.from_array(array, name))


def drop(model, name):
    kept = [tensor for tensor in model.graph.initializer if tensor.name != name]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)


def scaled(model, name, factor):
    array = next(numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.name == name)
    rename(model, name, (array * np.float32(factor)).astype(np.float32))

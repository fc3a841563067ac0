"""Operands of a layer, as writers of operators read them."""

import numpy as np

from tensortriage_engines.openvino.intermediate import TYPES, Layer
from tensortriage_engines.openvino.network import OnnxGraph, Untranslatable, onnx_type


def operand_names(network: OnnxGraph, layer: Layer) -> list[str]:
    """Return the names of all operands."""
    return [network.value(layer, number) for number in range(len(layer.sources))]


def attribute_number(layer: Layer, key: str, default: float | None = None) -> float:
    """Return an attribute that is a number."""
    text = layer.data.get(key)
    if text is None and default is None:
        raise Untranslatable(layer, f"has no {key}")
    return float(text) if text is not None else float(default or 0.0)


def scalar_of(network: OnnxGraph, layer: Layer, number: int) -> float:
    """Return a constant operand of one number."""
    return float(network.constant(layer, number).reshape(-1)[0])


def rank_of(network: OnnxGraph, layer: Layer, number: int = 0) -> int:
    """Return the number of axes of an operand."""
    return len(network.shape(layer, number))


def real_constant(network: OnnxGraph, layer: Layer, what: str, value: float) -> str:
    """Write a number in the type of the first operand."""
    return network.fixed(f"{layer.name}/{what}", np.asarray(value, TYPES[network.dtype(layer)]))


def int64_operand(network: OnnxGraph, layer: Layer, number: int) -> str:
    """Return an operand in int64, as ONNX wants shapes."""
    name = network.value(layer, number)
    if network.dtype(layer, number) == "i64":
        return name
    return network.between(layer, "Cast", [name], f"operand_{number}", to=onnx_type("i64"))

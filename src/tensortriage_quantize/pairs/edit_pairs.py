"""Models with pairs placed by a quantizer, reduced to the pairs of given nodes, or with stored weights.

`quantized_only_for` lets nobody else read a quantized operand; `with_stored_weights` does the first half of a weight's
pair once and for all.
"""

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from tensortriage.api import Model
from tensortriage.precision.sdk import DType, Names, initializer, prune_initializers
from tensortriage_quantize.pairs.switched_pairs import source_of

_PAIR = ("QuantizeLinear", "DequantizeLinear")


def quantized_only_for(model: Model, nodes: Collection[str]) -> Model:
    """Return the model with every other node of the main graph reading the input of a pair.

    Quantizers of tensors, ONNX Runtime's among them, hand the quantized tensor to all who read it, a residual Add say.

    Args:
        model: The model; it is not changed.
        nodes: Names of the nodes that are to read quantized operands.
    """
    whole = model.clone().ir
    for node in tuple(whole.graph):
        if node.name in nodes or node.op_type in _PAIR:
            continue
        for index, value in enumerate(node.inputs):
            if source := source_of(value):
                node.replace_input_with(index, source)
    for node in reversed(tuple(whole.graph)):
        if node.op_type in _PAIR and not any(_used(value) for value in node.outputs):
            whole.graph.remove(node, safe=True)
    return Model.from_ir(whole)


def quantized_nodes(model: Model) -> tuple[str, ...]:
    """Return the nodes of the main graph that read the result of a pair, in topological order."""
    return tuple(
        node.name or ""
        for node in model.ir.graph
        if node.op_type not in _PAIR and any(source_of(value) is not None for value in node.inputs)
    )


def with_stored_weights(model: Model) -> Model:
    """Return the model with the results of QuantizeLinear in place of the float weights that go into them.

    Computed is what ONNX defines (rounding to nearest even, saturating), for scales per tensor or along an axis; others
    (``block_size``) stay.

    Args:
        model: The model; it is not changed.
    """
    whole = model.clone().ir
    names = Names(whole.graph)
    for node in tuple(whole.graph):
        operands = [value.const_value if value is not None else None for value in node.inputs]
        if (
            node.op_type != "QuantizeLinear"
            or not all(operands)
            or len(operands) < 3
            or "block_size" in node.attributes
        ):
            continue
        weight, scale, zero = (tensor.numpy() for tensor in operands if tensor is not None)
        given = node.attributes.get("axis")
        stored = initializer(
            names.fresh(f"stored::{node.inputs[0].name if node.inputs[0] else ''}"),
            stored_numbers(weight, scale, zero, axis=given.as_int() if given is not None else 1),
        )
        whole.graph.register_initializer(stored)
        node.outputs[0].replace_all_uses_with(stored)
        whole.graph.remove(node, safe=True)
    prune_initializers(whole.graph)
    return Model.from_ir(whole)


def stored_numbers(weight: np.ndarray, scale: np.ndarray, zero: np.ndarray, *, axis: int) -> np.ndarray:
    """Return a weight as numbers of its zero point's type, as QuantizeLinear defines it; ``axis`` is that of scales."""
    shape = [1] * weight.ndim
    if scale.size > 1:
        shape[axis] = -1
    scales, zeros = (part.astype(np.float64).reshape(shape) for part in (scale, zero))
    dtype = DType.from_numpy(zero.dtype)
    scaled = weight.astype(np.float64) / scales
    if dtype.is_float:
        top = float(dtype.finfo.max)
        return np.asarray(np.clip(scaled, -top, top).astype(np.float32).astype(zero.dtype))
    limits = np.iinfo(zero.dtype)
    return np.asarray(np.clip(np.rint(scaled) + zeros, limits.min, limits.max).astype(zero.dtype))


def _used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()

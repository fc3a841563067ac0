"""Properties of a model that widen the range of healthy results."""

import onnx_ir as ir

from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.shape_inference.value_specs import typing_specs, value_specs
from tensortriage.model.transforms.rewrite_helpers import is_standard

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_TO_INTEGERS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "Round")


def has_narrow_types(model: Model) -> bool:
    """Return whether a model declares values in float16 or bfloat16."""
    graph, types = model.ir.graph, infer_types(model.ir, typing_specs(model))
    made = (value for node in graph for value in node.outputs)
    kinds = (types.get(value) for value in (*graph.inputs, *graph.initializers.values(), *made))
    return any(isinstance(kind, ir.TensorType) and kind.dtype in _NARROW for kind in kinds)


def rounds_to_integers(model: Model) -> bool:
    """Return whether a model rounds values to integers as it computes: by Q/DQ pairs, quantized operators, or Round."""
    return any(is_standard(node, *_TO_INTEGERS) for node in all_nodes(model.ir))


def cuts_to_integers(model: Model) -> bool:
    """Return whether a model turns computed values into whole numbers, by a Cast as well."""
    if any(is_standard(node, *_TO_INTEGERS, "Floor", "Ceil") for node in all_nodes(model.ir)):
        return True
    casts = [node for node in model.graph.nodes if node.op_type == "Cast"]
    if not casts:
        return False
    specs = value_specs(model)
    dtypes = [(specs[node.inputs[0]].dtype, specs[node.outputs[0]].dtype) for node in casts if node.inputs[0] in specs]
    return any(before and before.is_float and after and after.is_integer for before, after in dtypes)

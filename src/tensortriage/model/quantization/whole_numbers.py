"""Properties of a model that widen the range of healthy results."""

import numpy as np
import onnx_ir as ir

from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.shape_inference.value_specs import typing_specs, value_specs
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, is_standard
from tensortriage.values.dtype import DType

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_TO_INTEGERS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "Round")

_DECIDES = ("Cast", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Round", "Sign")


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


def beside_ties(model: Model, share: float) -> Model | None:
    """Return a model whose float32 numbers, unless whole, are larger by a share where they become so, or a bool.

    Args:
        model: The model; it is not changed. Bodies of If, Loop and Scan stay.
        share: How much larger; below 0 for smaller.

    Returns:
        None where nothing becomes one.
    """
    clone, moved, specs = model.clone(), False, value_specs(model)
    names, graph = Names(clone.ir.graph), clone.ir.graph
    factor = initializer(names.fresh("beside_ties"), np.array(share, np.float32))

    def add(before: ir.Node, op_type: str, *inputs: ir.Value) -> ir.Value:
        name = names.fresh(f"beside_{op_type}")
        graph.insert_before(before, ir.node(op_type, inputs, outputs=[made := ir.Value(name=name)], name=name))
        return made

    for node in [each for each in graph if is_standard(each, *_DECIDES)]:
        value, made = node.inputs[0], specs.get(node.outputs[0].name or "")
        decided = node.op_type != "Cast" or (made is not None and made.dtype is not None and not made.dtype.is_float)
        known = specs.get(value.name or "") if value is not None and value.producer() is not None else None
        if value is not None and decided and known is not None and known.dtype is DType.FLOAT:
            broken = add(node, "Sub", add(node, "Ceil", value), add(node, "Floor", value))  # 1, of whole numbers 0
            more = add(node, "Mul", add(node, "Mul", value, factor), broken)
            node.replace_input_with(0, add(node, "Add", value, more))
            moved = True
    graph.register_initializer(factor)
    return Model.from_ir(clone.ir) if moved else None

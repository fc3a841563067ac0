"""Properties of a model that widen the range of healthy results."""

from tensortriage.model.ir.traversal import all_nodes
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.rewrite_helpers import is_standard
from tensortriage.values.dtype import DType

_TO_INTEGERS = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "Round")


def has_narrow_types(model: Model) -> bool:
    """Return whether a model declares values in float16 or bfloat16."""
    return any(spec.dtype in (DType.FLOAT16, DType.BFLOAT16) for spec in value_specs(model).values())


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

"""Whether a Constant node holds one constant, of the kind that its attribute's name says (ONNX, operator Constant)."""

import onnx

from tensortriage.errors import ModelError

_KINDS = {
    "value": onnx.AttributeProto.TENSOR,
    "sparse_value": onnx.AttributeProto.SPARSE_TENSOR,
    "value_float": onnx.AttributeProto.FLOAT,
    "value_floats": onnx.AttributeProto.FLOATS,
    "value_int": onnx.AttributeProto.INT,
    "value_ints": onnx.AttributeProto.INTS,
    "value_string": onnx.AttributeProto.STRING,
    "value_strings": onnx.AttributeProto.STRINGS,
}


def check_constant(node: onnx.NodeProto, where: str, *, in_function: bool) -> None:
    """Check a node of operator Constant.

    Args:
        node: It.
        where: Place, for messages.
        in_function: Whether its attribute may be one of the function around it.

    Raises:
        ModelError: ``constant-invalid``.
    """
    held = [attribute for attribute in node.attribute if attribute.name in _KINDS]
    if len(held) != 1:
        raise _invalid(f"{where} holds {len(held)} constants instead of one")
    (attribute,) = held
    if attribute.ref_attr_name:
        if not in_function:
            raise _invalid(f"{where} names an attribute of a function, but is in none")
    elif attribute.type != _KINDS[attribute.name]:
        kinds = onnx.AttributeProto.AttributeType
        wrong, right = kinds.Name(attribute.type), kinds.Name(_KINDS[attribute.name])
        raise _invalid(f"attribute {attribute.name} of {where} is a {wrong}, not a {right}")


def _invalid(message: str) -> ModelError:
    return ModelError(message, slug="constant-invalid", cure="the file is damaged: export the model again")

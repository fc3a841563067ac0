"""Whether the attributes of a model are of kinds that can be processed: constants, element types, references."""

import onnx

from tensortriage.errors import ModelError
from tensortriage.model.io.check_tensors import known_dtype
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.messages import CONSTANT_TYPES, DTYPE_ATTRIBUTES

_Attribute = onnx.AttributeProto
_CONSTANTS = {
    "value": _Attribute.TENSOR,
    "sparse_value": _Attribute.SPARSE_TENSOR,
    **{name: _Attribute.AttributeType.Value(name.removeprefix("value_").upper()) for name in CONSTANT_TYPES},
}
"""Attributes of a Constant, of which it has one (ONNX, operator Constant)."""
_TYPES = {**DTYPE_ATTRIBUTES, "LayerNormalization": "stash_type"}
"""Attributes that hold the number of an element type, by operator."""
_BODIES = frozenset({_Attribute.GRAPH, _Attribute.GRAPHS})


def check_attributes(node: onnx.NodeProto, where: str, *, in_function: bool) -> None:
    """Check the attributes of a node, but for the contents of tensors and graphs in them.

    Args:
        node: The node.
        where: Place, for messages.
        in_function: Whether its attributes may be those of the function around it.

    Raises:
        ModelError: ``constant-invalid``, ``attribute-invalid``, ``dtype-unsupported``, or ``function-not-inlined`` for
            a function whose caller hands it a graph.
    """
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            _check_reference(attribute, where, in_function=in_function)
    if node.domain not in ("", "ai.onnx"):
        return
    if node.op_type == "Constant":
        _check_constant(node, where)
    for attribute in node.attribute:
        if attribute.name == _TYPES.get(node.op_type) and not attribute.ref_attr_name:
            at = f"attribute {attribute.name} of {where}"
            _check_kind(attribute, _Attribute.INT, at, slug="attribute-invalid")
            if attribute.i:  # 0 means none
                known_dtype(attribute.i, at)


def _check_reference(attribute: onnx.AttributeProto, where: str, *, in_function: bool) -> None:
    at = f"attribute {quoted(attribute.name)} of {where}"
    if not in_function:
        raise _invalid(f"{at} names an attribute of a function, but is in none", slug="attribute-invalid")
    if attribute.type in _BODIES:
        raise ModelError(
            f"{at} takes a graph as an argument of a function, which is not supported",
            slug="function-not-inlined",
            cure="export without functions, or inline them: onnx.inliner.inline_local_functions",
        )


def _check_constant(node: onnx.NodeProto, where: str) -> None:
    held = [attribute for attribute in node.attribute if attribute.name in _CONSTANTS]
    if len(held) != 1:
        raise _invalid(f"{where} holds {len(held)} constants instead of one", slug="constant-invalid")
    (attribute,) = held
    if not attribute.ref_attr_name:
        at = f"attribute {attribute.name} of {where}"
        _check_kind(attribute, _CONSTANTS[attribute.name], at, slug="constant-invalid")


def _check_kind(attribute: onnx.AttributeProto, right: int, at: str, slug: str) -> None:
    if attribute.type != right:
        name = _Attribute.AttributeType.Name
        raise _invalid(f"{at} is a {name(attribute.type)}, not a {name(right)}", slug)


def _invalid(message: str, slug: str) -> ModelError:
    return ModelError(message, slug=slug, cure="the file is damaged: export the model again")

"""Values of Constant nodes in a parsed message."""

import onnx

from tensortriage.sdk import ConstantFacts, DType, stored_tensor

_KIND = onnx.AttributeProto
_TYPES = {
    _KIND.FLOAT: DType.FLOAT, _KIND.INT: DType.INT64, _KIND.STRING: DType.STRING,
    _KIND.FLOATS: DType.FLOAT, _KIND.INTS: DType.INT64, _KIND.STRINGS: DType.STRING,
}  # fmt: skip
"""Element types of the attributes ``value_float``, ``value_ints`` and so on (onnx/docs/Operators.md, Constant)."""


def constant_value(node: onnx.NodeProto) -> ConstantFacts | None:
    """Return the value of a Constant node, or None for another node (or a reference)."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for attribute in node.attribute:
        if attribute.type == _KIND.TENSOR:
            return stored_tensor(attribute.t, node.output[0])
        if attribute.type in _TYPES and attribute.name.startswith("value_") and not attribute.ref_attr_name:
            value = onnx.helper.get_attribute_value(attribute)
            shape = () if attribute.type in (_KIND.FLOAT, _KIND.INT, _KIND.STRING) else (len(value),)
            return ConstantFacts(node.output[0], _TYPES[attribute.type], shape)
    return None

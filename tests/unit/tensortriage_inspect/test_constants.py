"""Types and shapes are those that the messages were made with."""

import onnx
import pytest
from onnx import TensorProto, helper

from tensortriage.values.dtype import DType
from tensortriage_inspect.constants import constant_value


@pytest.mark.parametrize(
    ("attribute", "dtype", "shape"),
    [
        (helper.make_attribute("value_float", 1.5), DType.FLOAT, ()),
        (helper.make_attribute("value_ints", [1, 2, 3]), DType.INT64, (3,)),
        (helper.make_attribute("value_strings", ["a", "b"]), DType.STRING, (2,)),
        (helper.make_attribute("value", helper.make_tensor("t", 16, [2, 2], [0] * 4)), DType.BFLOAT16, (2, 2)),
    ],
)
def test_constants(attribute, dtype, shape):
    node = onnx.NodeProto(op_type="Constant", output=["c"], attribute=[attribute])
    assert (constant_value(node).dtype, constant_value(node).shape) == (dtype, shape)
    assert constant_value(onnx.NodeProto(op_type="Constant", domain="other", output=["c"])) is None


def test_four_bit_constants_are_counted_packed():
    node = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("t", TensorProto.INT4, [3], [1, 2, 3]))
    assert (constant_value(node).count, constant_value(node).nbytes) == (3, 2)

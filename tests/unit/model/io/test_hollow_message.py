import onnx

import models
from tensortriage.model.io.hollow_message import hollow_proto

MODEL = models.parse(
    "g (float[2, 3] x) => (float[2, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}> "
    "{ a = MatMul(x, w) y = Add(a, b) }"
)


def names(fields):
    return [field.name for field in fields]


def test_large_weights_become_inputs_of_their_type_and_small_ones_stay():
    proto = hollow_proto(MODEL.ir, above_bytes=12)
    assert (names(proto.graph.input), names(proto.graph.initializer)) == (["x", "w"], ["b"])
    assert [dim.dim_value for dim in proto.graph.input[1].type.tensor_type.shape.dim] == [3, 3]
    assert onnx.numpy_helper.to_array(proto.graph.initializer[0]).tolist() == [1, 2, 3]
    onnx.checker.check_model(proto)
    assert names(hollow_proto(MODEL.ir, above_bytes=11).graph.initializer) == []

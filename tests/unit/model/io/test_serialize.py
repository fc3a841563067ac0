"""Messages without the numbers of large weights: what is hollow, what stays, and what asking for the rest says."""

import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.io import serialize
from tensortriage.model.io.serialize import hollow_proto, to_bytes, to_proto

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


def test_the_model_itself_keeps_its_numbers():
    hollow = to_proto(MODEL.ir, hollow=["w"])
    assert hollow.graph.initializer[0].raw_data == b""
    assert MODEL.graph.weight("w").sum() == 45
    whole = to_proto(MODEL.ir)
    assert onnx.numpy_helper.to_array(whole.graph.initializer[0]).sum() == 45


def test_training_information_and_functions_survive():
    clone = MODEL.clone().ir
    info = onnx.TrainingInfoProto()
    info.algorithm.name = "step"
    clone.graph.meta[serialize.TRAINING] = (info,)
    assert [each.algorithm.name for each in to_proto(clone).training_info] == ["step"]


def test_a_message_is_the_same_bytes_every_time_and_one_too_large_is_refused():
    proto = to_proto(MODEL.ir)
    assert to_bytes(proto) == to_bytes(onnx.ModelProto.FromString(to_bytes(proto)))

    class TooLarge:
        def SerializeToString(self, **_):  # noqa: N802 - protobuf's name
            raise ValueError("exceeds 2 GiB")

    with pytest.raises(ModelError) as raised:
        to_bytes(TooLarge())
    assert raised.value.slug == "model-too-large"

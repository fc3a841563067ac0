"""Models as messages: with and without the numbers of weights."""

import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.io import serialize
from tensortriage.model.io.serialize import to_bytes, to_proto

MODEL = models.parse(
    "g (float[2, 3] x) => (float[2, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}> "
    "{ a = MatMul(x, w) y = Add(a, b) }"
)


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

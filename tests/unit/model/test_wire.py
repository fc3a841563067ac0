import io

import numpy as np
import onnx
import pytest

import models
from tensortriage.model.wire import WireError, input_messages, lift_weights, varint, write_model


@pytest.mark.parametrize(("number", "encoded"), [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02")])
def test_varints_are_as_in_the_protobuf_guide(number, encoded):
    # 300 is the example of https://protobuf.dev/programming-guides/encoding/#varints
    assert varint(number).hex() == encoded


def message_with_weights():
    message = models.proto("g (float[4] x) => (float[4] y) { a = Add(x, w)  y = Mul(a, v) }")
    message.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 2, 3, 4]), "w"))
    message.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([5]), "v"))
    return message


def test_large_weights_are_lifted_out_and_the_rest_stays():
    message = message_with_weights()
    data = message.SerializeToString()
    lifted = lift_weights(data, threshold=16)
    assert list(lifted.places) == [0]
    offset, length = lifted.places[0]
    assert np.frombuffer(data, np.float32, length // 4, offset).tolist() == [1, 2, 3, 4]
    skeleton = onnx.ModelProto.FromString(lifted.skeleton)
    assert not skeleton.graph.initializer[0].HasField("raw_data")
    skeleton.graph.initializer[0].raw_data = data[offset : offset + length]
    assert skeleton == message


@pytest.mark.parametrize("cut", [1, 5, 40, -1])
def test_truncated_bytes_are_no_protobuf(cut):
    with pytest.raises(WireError):
        lift_weights(message_with_weights().SerializeToString()[:cut], threshold=16)


def test_text_is_no_protobuf():
    with pytest.raises(WireError, match="byte 0"):
        lift_weights(b"name: x", threshold=16)


def test_a_number_without_end_is_no_protobuf():
    with pytest.raises(WireError, match="longer than 10 bytes"):
        lift_weights(b"\xff" * 20, threshold=16)


class Bytes:
    def __init__(self, data):
        self.nbytes = len(data)
        self.tofile = lambda file: file.write(data)


def test_a_streamed_model_is_what_protobuf_would_write():
    message = message_with_weights()
    wanted = message.SerializeToString()
    first, second = message.graph.initializer
    payload = Bytes(first.raw_data)
    first.ClearField("raw_data")
    parts = [(first.SerializeToString(), payload), (second.SerializeToString(), None)]
    message.graph.ClearField("initializer")
    graph = message.graph.SerializeToString()
    message.ClearField("graph")
    file = io.BytesIO()
    write_model(file, rest=message.SerializeToString(), graph=graph, initializers=parts)
    assert onnx.ModelProto.FromString(file.getvalue()) == onnx.ModelProto.FromString(wanted)


def test_inputs_are_read_without_the_rest_of_the_file(tmp_path):
    message = message_with_weights()
    message.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [4]))  # has a weight
    message.graph.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.INT64, ["N"]))
    path = models.write(tmp_path / "m.onnx", message)
    declared = {value.name: value for value in message.graph.input}
    found = {name: onnx.ValueInfoProto.FromString(data) for name, data in input_messages(path).items()}
    assert found == {name: declared[name] for name in ("x", "k")}

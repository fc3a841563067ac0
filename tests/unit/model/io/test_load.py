"""What is not an ONNX model, and says so."""

import os
import random
import tracemalloc

import numpy as np
import onnx
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.model.wire import length_delimited


def refusal(path):
    with pytest.raises(ModelError) as caught:
        Model.load(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.cure
    return caught.value


def test_a_missing_file(tmp_path):
    assert refusal(tmp_path / "none.onnx").slug == "model-missing"


def test_a_directory(tmp_path):
    assert "directory" in refusal(tmp_path).message


def test_an_empty_file(tmp_path):
    (tmp_path / "m.onnx").touch()
    assert "empty" in refusal(tmp_path / "m.onnx").message


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "m.onnx")
    assert refusal(tmp_path / "m.onnx").slug == "model-unreadable"


def test_links_in_a_circle(tmp_path):
    (tmp_path / "m.onnx").symlink_to("m.onnx")
    assert refusal(tmp_path / "m.onnx").slug == "model-unreadable"


def test_a_path_that_no_system_has():
    assert refusal("/tmp/\0").slug == "model-unreadable"


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"just some text, no model\n" * 10, "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
        (b"PK\x03\x04" + bytes(60), "zip"),
        (bytes(4) + b"ORTM" + bytes(60), "ONNX Runtime's own format"),
        (b"<?xml version='1.0'?><net/>", "OpenVINO"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\x40" + bytes(7) + b'{"w":{"dtype":"F32"}}', "safetensors"),
        (b"ftrt" + bytes(60), "TensorRT engine"),
        (bytes(64), "not an ONNX model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_kinds_of_files(tmp_path, contents, said):
    (tmp_path / "m.onnx").write_bytes(contents)
    error = refusal(tmp_path / "m.onnx")
    assert error.slug == "model-unreadable"
    assert said in error.message


def test_random_bytes(tmp_path):
    for seed in range(20):
        (tmp_path / "m.onnx").write_bytes(random.Random(seed).randbytes(1000))
        assert refusal(tmp_path / "m.onnx").slug == "model-unreadable"


def test_every_truncation_is_refused(tmp_path):
    contents = models.mlp().save(tmp_path / "whole.onnx").read_bytes()
    slugs = set()
    for end in range(1, len(contents)):
        (tmp_path / "m.onnx").write_bytes(contents[:end])
        with pytest.raises(ModelError) as caught:
            Model.load(tmp_path / "m.onnx")
        slugs.add(caught.value.slug)
    assert slugs == {"model-unreadable"}


def test_a_tensor_in_place_of_a_model(tmp_path):
    (tmp_path / "m.onnx").write_bytes(onnx.numpy_helper.from_array(np.zeros(3), "t").SerializeToString())
    assert refusal(tmp_path / "m.onnx").slug == "model-unreadable"


def test_a_graph_nested_without_end(tmp_path):
    graph = b""
    for _ in range(10_000):  # graph.node.attribute.g, fields 1, 5, 6 of onnx.proto
        graph = length_delimited(1, length_delimited(5, length_delimited(6, graph)))
    (tmp_path / "m.onnx").write_bytes(length_delimited(7, graph))
    assert refusal(tmp_path / "m.onnx").slug == "model-unreadable"


def test_what_onnx_ir_cannot_read_is_one_line(tmp_path):
    message = models.proto("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    message.graph.node[0].attribute.add(name="odd", type=onnx.AttributeProto.STRINGS, strings=[b"\xff\xfe"])
    with pytest.raises(ModelError) as caught:
        Model.load(models.write(tmp_path / "m.onnx", message))
    assert caught.value.slug == "model-invalid"
    assert "\n" not in caught.value.message


def test_large_embedded_weights_stay_in_the_file(tmp_path):
    weights = np.arange(9 << 20, dtype=np.float32).reshape(4, -1)
    message = models.proto("g (float[1, 4] x) => (float[1, N] y) <float[1] b = {1}> { p = MatMul(x, w) y = Add(p, b) }")
    message.graph.initializer.insert(0, onnx.numpy_helper.from_array(weights, "w"))
    message.graph.initializer[0].doc_string = "the weights"
    path = models.write(tmp_path / "m.onnx", message)
    del message
    tracemalloc.start()
    model = Model.load(path)
    assert model.parameter_count == weights.size + 1
    model.save(tmp_path / "copy.onnx")
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()
    np.testing.assert_array_equal(model.graph.weight("w"), weights)
    copy = onnx.load(tmp_path / "copy.onnx")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(copy.graph.initializer[0]), weights)
    assert [tensor.name for tensor in copy.graph.initializer] == ["w", "b"]


def test_nothing_is_printed_about_odd_models(tmp_path, capfd):
    message = models.proto("g (float[1] x) => (float[1] y) { y = Neg(x) }")
    message.graph.node[0].attribute.add(name="odd", type=onnx.AttributeProto.STRING, s=b"\xff\xfe")
    Model.load(models.write(tmp_path / "m.onnx", message)).save(tmp_path / "copy.onnx")
    assert capfd.readouterr() == ("", "")

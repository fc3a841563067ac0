"""Model files beyond what protobuf parses, and weights beyond the memory that is allowed; the files are sparse."""

import pytest

import models
from running_cli import triage

pytestmark = pytest.mark.lengthy

GIB = 1 << 30
ROWS = 1024
GRAPH = "g (float[1, 1024] x) => (float[1, 1] y) { h = MatMul(x, W) y = ReduceMean(h) }"


def varint(value):
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number, length):
    """Return what stands in front of a field with a length (protobuf's wire type 2)."""
    return varint(number << 3 | 2) + varint(length)


@pytest.fixture
def with_weights_inside(tmp_path):
    """Return a model whose only file has 2.2 GiB, almost all of them a hole: ``raw_data`` of zeros, the last field."""
    model, size = models.proto(GRAPH), 2200 << 20
    tensor = model.graph.initializer.add(name="W", data_type=1, dims=[ROWS, size // ROWS // 4])
    weights = tensor.SerializeToString() + field(9, size)  # TensorProto.raw_data
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString() + field(5, len(weights) + size)  # GraphProto.initializer
    model.ClearField("graph")
    with open(tmp_path / "m.onnx", "wb") as file:
        file.write(model.SerializeToString() + field(7, len(graph) + len(weights) + size) + graph + weights)
        file.truncate(file.tell() + size)
    return tmp_path


def with_weights_beside(folder, size):
    """Write a model with external data of a size, all of them a hole."""
    model = models.proto(GRAPH)
    tensor = model.graph.initializer.add(name="W", data_type=1, dims=[ROWS, size // ROWS // 4], data_location=1)
    for key, value in (("location", "w.bin"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with open(folder / "w.bin", "wb") as file:
        file.truncate(size)


def refused(folder, message, *words):
    done = triage(*words, "--memory-limit", "300M", cwd=folder)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_a_file_beyond_two_gigabytes(with_weights_inside):
    assert (with_weights_inside / "m.onnx").stat().st_size > 2 * GIB
    done = triage("inspect", "model", "m.onnx", cwd=with_weights_inside)
    assert done.returncode == 0, done.stderr
    assert "2.31 GB" in done.stdout
    needed = "error[out-of-memory]: the command needed more than 300 MB"
    refused(with_weights_inside, needed, "check", "lint", "m.onnx")


def test_weights_beyond_four_gigabytes_are_not_read_without_need(tmp_path):
    with_weights_beside(tmp_path, 5 * GIB)
    done = triage("inspect", "model", "m.onnx", cwd=tmp_path)
    assert "5.37 GB" in done.stdout, done.stderr


def test_weights_beyond_the_memory_that_is_allowed(tmp_path):
    with_weights_beside(tmp_path, GIB)
    too_large = "error[block-too-large]: 'MatMul_0' and the nodes that cannot be cut from it have 1.1 GB of weights"
    refused(tmp_path, too_large, "run", "m.onnx", "--target", "onnxruntime")

"""``triage inspect sparsity``: the exit code is the answer."""

import json

import numpy as np
from onnx import numpy_helper

import models
from running_cli import EXAMPLES, triage


def write(path, weight):
    message = models.proto("g (float[2, 4] x) => (float[2, n] y) { y = MatMul(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    models.write(path, message)


def test_sparse(tmp_path):
    write(tmp_path / "m.onnx", np.array([[1], [0], [2], [0]], np.float32))
    done = triage("inspect", "sparsity", "m.onnx", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2:4  w  [4, 1]  axis 0  0 % of 1 group dense\n1 of 1 weights are 2:4 sparse\n"


def test_dense(tmp_path):
    done = triage("inspect", "sparsity", EXAMPLES / "digits_cnn.onnx", "--json", cwd=tmp_path)
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["format"] == "tensortriage.sparsity/1"
    assert document["is_sparse"] is False
    assert all(weight["dense_groups"] for weight in document["weights"])


def test_nothing_to_check(tmp_path):
    models.write(tmp_path / "m.onnx", "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    done = triage("inspect", "sparsity", "m.onnx", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[no-sparse-candidates]" in done.stderr

"""Which weights are 2:4 sparse, counted by hand."""

import numpy as np
import pytest
from onnx import numpy_helper

import models
from tensortriage.errors import ModelError
from tensortriage.model.inspect.sparsity_report import check_sparsity

SPARSE = np.array([[1, 0], [0, 0], [2, 3], [0, 4]], np.float32)  # two of four in each column at most


def model(weight):
    message = models.proto("g (float[2, 4] x) => (float[2, n] y) { [mm] y = MatMul(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return models.of_message(message)


def test_a_sparse_weight():
    report = check_sparsity(model(SPARSE))
    (weight,) = report.weights
    assert (weight.weight, weight.node, weight.axis, weight.groups, weight.dense_groups) == ("w", "mm", 0, 2, 0)
    assert report.is_sparse


def test_one_dense_group():
    weight = SPARSE.copy()
    weight[1, 1] = 1e-30  # small is not zero
    report = check_sparsity(model(weight))
    assert report.weights[0].dense_groups == 1
    assert not report.is_sparse


def test_nothing_to_check_is_an_error():
    with pytest.raises(ModelError) as caught:
        check_sparsity(models.chain(2))
    assert caught.value.slug == "no-sparse-candidates"

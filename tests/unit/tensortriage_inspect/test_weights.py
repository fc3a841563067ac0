"""Statistics of weights, by hand."""

import numpy as np
from onnx import numpy_helper

import models
from tensortriage.model.inspect.pieces import blocks
from tensortriage_inspect.weights import weight_facts


def facts(text):
    return {row.name: row for row in weight_facts(models.parse(text))}


def test_numbers():
    (row,) = facts("g (float[4] x) => (float[4] y) <float[4] w = {0, -2, 4, 6}> { y = Add(x, w) }").values()
    assert (row.minimum, row.maximum, row.mean, row.zeros, row.nonfinite) == (-2, 6, 2, 1, 0)
    assert (row.dtype, row.shape, row.nbytes) == ("float32", (4,), 16)


def test_what_is_not_finite_does_not_count():
    message = models.proto("g (float[3] x) => (float[3] y) { y = Add(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(np.array([np.inf, 3, np.nan], np.float32), "w"))
    (row,) = weight_facts(models.of_message(message))
    assert (row.minimum, row.maximum, row.mean, row.nonfinite) == (3, 3, 3, 2)


def test_strings_have_no_statistics():
    text = 'g (string[1] x) => (bool[1] y) { w = Constant <value_strings = ["a"]> () y = Equal(x, w) }'
    (row,) = facts(text).values()
    assert (row.minimum, row.dtype, row.values) == (None, "string", "['a']")


def test_large_arrays_come_in_pieces():
    array = np.arange(2_500_000)
    assert sum(int(piece.sum()) for piece in blocks(array)) == int(array.sum())
    assert max(piece.size for piece in blocks(array)) < array.size

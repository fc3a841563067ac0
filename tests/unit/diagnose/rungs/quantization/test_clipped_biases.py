"""Biases stored in int32 that lie at its ends: which channels, and nothing where they do not."""

import numpy as np
import pytest
from onnx import numpy_helper

from models import proto
from tensortriage.diagnose.rungs.quantization.clipped_biases import at_the_ends
from tensortriage.model.model import Model
from tensortriage_testing import save_model

FILE = """g (float[1, 3] x) => (float[1, 8] y) {
    [bias] b = DequantizeLinear <axis = 0> (stored, scale)
    [last] y = Gemm(x, w, b)
}"""


def file(path, stored):
    message = proto(FILE)
    arrays = {"stored": stored, "scale": np.full(8, 1e-13, np.float32), "w": np.ones((3, 8), np.float32)}
    message.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return Model.load(save_model(message, path / "file.onnx")).graph


@pytest.mark.parametrize("end", [-(2**31), 2**31 - 1])  # x86 converts what int32 cannot hold to its least number
def test_those_at_either_end(tmp_path, end):
    stored = np.arange(8, dtype=np.int32)
    stored[[2, 5]] = end
    told = at_the_ends(file(tmp_path, stored), "b")
    assert told.startswith("has 2 of 8 biases of 'b' cut off at the end of int32 (channels 2, 5): ")


def test_others_are_sound(tmp_path):
    graph = file(tmp_path, np.array([2**31 - 2, *range(7)], np.int32))
    assert at_the_ends(graph, "b") == ""
    assert at_the_ends(graph, "w") == ""
    integers = np.full(8, 127, np.int8)
    assert at_the_ends(file(tmp_path, integers), "b") == ""

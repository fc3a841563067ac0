"""Of a file and its original only nodes that differ may mean different things."""

import numpy as np
import onnx
import pytest

from tensortriage.api import Model
from tensortriage.model.sdk import Correspondence
from tensortriage_meanings.differing import differing
from tensortriage_testing import save_model

TEXT = """<ir_version: 8, opset_import: ["": {opset}]> g (float[4, 8] x) => (float[4, 8] y)
    <float[8, 8] w, float[8, 8] v>
    {{ [a] a = MatMul(x, w) [b] b = Softmax<axis = {axis}>(a) [c] c = MatMul(b, v) [d] y = Tanh(c) }}"""


def model(folder, name, *, opset=12, axis=1, factor=1.0):
    """Return a network of two products; its second weight is multiplied."""
    proto = onnx.parser.parse_model(TEXT.format(opset=opset, axis=axis))
    rng = np.random.default_rng(0)
    for weight, times in (("w", 1.0), ("v", factor)):
        numbers = rng.standard_normal((8, 8)).astype(np.float32) * np.float32(times)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(numbers, weight))
    return Model.load(save_model(proto, folder / name))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"factor": 1.3}, {"c"}),
        ({"axis": 0}, {"b"}),
        ({"opset": 13}, {"b"}),  # a Softmax flattens before opset 13
        ({"factor": 1.0 + 1e-7}, set()),  # rounding is no other number
        ({}, set()),
    ],
)
def test_an_equal_node_means_the_same_in_both(tmp_path, change, names):
    original, file = model(tmp_path, "original.onnx"), model(tmp_path, "file.onnx", **change)
    matched = Correspondence.of(original, file)
    assert differing(matched, original.graph) == differing(matched, file.graph) == names

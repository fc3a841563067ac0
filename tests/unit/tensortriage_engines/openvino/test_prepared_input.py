"""What a file does to an image before its first layer, read out of its graph; by formulas."""

import numpy as np
import onnx_ir
import pytest
from onnx import numpy_helper, parser

from tensortriage.model.model import Model
from tensortriage_engines.openvino.prepared_input import preparation

WEIGHT = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(np.float32)
MEANS, DEVIATIONS = np.array([0.5, 0.4, 0.3], np.float32), np.array([0.2, 0.25, 0.5], np.float32)


def model(steps, weight=WEIGHT, **constants):
    """Return a graph of steps from x to y, and a convolution behind."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,8,6,6] out) {{
        {steps}
        out = Conv(y, w) }}"""
    proto = parser.parse_model(text)
    for name, array in {"w": weight, **constants}.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return Model.from_ir(onnx_ir.from_proto(proto))


def direct():
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,8,8] x) => (float[1,8,6,6] out) { out = Conv(x, w) }'
    proto = parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(WEIGHT, "w"))
    return Model.from_ir(onnx_ir.from_proto(proto))


def told(file):
    found = preparation(file.graph, direct().graph, "x")
    return None if found is None else found.words


def test_means_and_deviations():
    shape = (1, 3, 1, 1)
    file = model("a = Sub(x, m)\n y = Div(a, s)", m=MEANS.reshape(shape), s=DEVIATIONS.reshape(shape))
    assert told(file) == "minus (0.5, 0.4, 0.3), divided by (0.2, 0.25, 0.5)"


def test_a_factor_in_the_weights():
    assert told(model("y = Identity(x)", weight=WEIGHT / 255)) == "divided by 255"


@pytest.mark.parametrize("inside", [True, False], ids=["in the weights", "before them"])
def test_channels_reversed(inside):
    if inside:
        file = model("y = Identity(x)", weight=np.ascontiguousarray(WEIGHT[:, ::-1]))
    else:
        file = model("y = Gather<axis = 1>(x, order)", order=np.array([2, 1, 0]))
    assert told(file) == "with its channels in the order 2, 1, 0"


def test_it_is_what_the_file_computes():
    file = model(
        "a = Sub(x, m)\n y = Gather<axis = 1>(a, order)", m=MEANS.reshape(1, 3, 1, 1), order=np.array([2, 0, 1])
    )
    x = np.random.default_rng(1).random((1, 3, 8, 8)).astype(np.float32)
    found = preparation(file.graph, direct().graph, "x")
    assert found.of(x) == pytest.approx((x - MEANS.reshape(1, 3, 1, 1))[:, [2, 0, 1]])


def test_nothing_and_what_is_no_preparation():
    assert told(model("y = Identity(x)")) == ""
    assert told(model("y = Relu(x)")) is None
    assert told(model("y = Identity(x)", weight=np.roll(WEIGHT, 1))) is None

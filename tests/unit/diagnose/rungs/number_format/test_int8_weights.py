"""ONNX Runtime puts float weights between quantizers in int8: predicted by a row, and no fault of a fusion."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from diagnosing import ask

pytestmark = pytest.mark.slow

NET = """<ir_version: 9, opset_import: ["": 17]> g (float[1,3,10,10] x) => (float[1,4,20,20] y)
<float s = {0.03}, uint8 o = {128}, float t = {0.02}, uint8 p = {0}> {
    q = QuantizeLinear(x, s, o)
    d = DequantizeLinear(q, s, o)
    l = ConvTranspose<kernel_shape=[2,2], strides=[2,2]>(d, w)
    r = Relu(l)
    e = QuantizeLinear(r, t, p)
    f = DequantizeLinear(e, t, p)
    y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(f, v)
}"""


def test_float_weights_in_int8_are_no_fault_of_a_fusion(tmp_path):
    model, rng = onnx.parser.parse_model(NET), np.random.default_rng(0)
    for name, shape in {"w": (3, 6, 2, 2), "v": (4, 6, 3, 3)}.items():
        array = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for node in model.graph.node:
        node.name = f"{node.output[0]}_op"
    feed = {"x": rng.standard_normal((1, 3, 10, 10)).astype(np.float32)}
    verdict, _ = ask(tmp_path, model, feed, "onnxruntime", random_too=False)
    assert (verdict.verdict, verdict.allowed_by) == ("rounding", ("int8-weights",)), verdict.summary
    assert "disabled_optimizers=['WeightBiasQuantization']" in verdict.summary
    (tmp_path / "wrong").mkdir()
    wrong, _ = ask(tmp_path / "wrong", model, feed, "fault:kind=scale,node=l_op,amount=1.02", random_too=False)
    assert wrong.verdict == "local-fault", wrong.summary

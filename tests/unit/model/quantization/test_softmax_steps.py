"""A Softmax between quantizers in whole steps: ONNX Runtime, which rounds it so, is what it is held to."""

import numpy as np
import pytest

import models
import running
from tensortriage.model.quantization.softmax_steps import coarse_softmaxes, softmax_in_whole_steps

NET = """g (float[9,7] x) => (float[9,7] y)
<float t = {0.1}, @dtype o = {10}, float s = {@scale}, @dtype z = {@zero}> {
    q = QuantizeLinear(x, t, o)
    d = DequantizeLinear(q, t, o)
    p = Softmax<axis=-1>(d)
    [rounded] e = QuantizeLinear(p, s, z)
    y = DequantizeLinear(e, s, z)
}"""
FEED = {"x": np.random.default_rng(0).normal(0, 2, (9, 7)).astype(np.float32)}


def net(scale, dtype="uint8", zero=0):
    text = NET.replace("@scale", f"{np.float32(scale):.12g}").replace("@zero", str(zero))
    return models.parse(text.replace("@dtype", dtype))


@pytest.mark.parametrize(
    ("scale", "dtype", "zero"), [(1 / 255, "uint8", 0), (0.9 / 255, "uint8", 0), (1 / 255, "int8", -128)]
)
def test_onnx_runtime_computes_the_rewritten_file(scale, dtype, zero):
    model = net(scale, dtype, zero)
    plain, built = (running.run(model, FEED, optimization=level)["y"] for level in ("DISABLE_ALL", "ENABLE_ALL"))
    assert list(coarse_softmaxes(model.graph)) == ["rounded"]
    np.testing.assert_array_equal(running.run(softmax_in_whole_steps(model), FEED)["y"], built)
    assert (plain != built).any()


def test_a_scale_whose_reciprocal_is_whole_stays():
    model = net(1 / 256)
    assert softmax_in_whole_steps(model) is None
    plain, built = (running.run(model, FEED, optimization=level)["y"] for level in ("DISABLE_ALL", "ENABLE_ALL"))
    np.testing.assert_array_equal(plain, built)


def test_a_softmax_of_floats_stays(monkeypatch):
    monkeypatch.setattr(f"{__name__}.NET", NET.replace("(d)", "(x)"))
    assert coarse_softmaxes(net(1 / 255).graph) == {}

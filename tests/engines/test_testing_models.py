"""The generated models are accepted by the engines people use, and those agree on the answer."""

import numpy as np
import onnxruntime
import pytest

from tensortriage_testing.models import conv_net, encoder, feed_for, mlp, save_model

openvino = pytest.importorskip("openvino")

BUILDERS = {
    "encoder": lambda: encoder(layers=2),
    "encoder, fused": lambda: encoder(layers=2, decomposed_layernorm=False),
    "conv_net": conv_net,
    "mlp": mlp,
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_onnxruntime_and_openvino_agree(build, tmp_path):
    model = build()
    feed = feed_for(model)
    path = save_model(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = {o.name: v for o, v in zip(session.get_outputs(), session.run(None, feed), strict=True)}
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled(feed)
    for name, value in expected.items():
        assert np.isfinite(value).all()
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-3 * np.abs(value).max())

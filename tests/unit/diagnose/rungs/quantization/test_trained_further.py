"""A quantized file that was trained: its weights are not the original's, and its scales may be wrong as well."""

import numpy as np
import pytest
from onnx import numpy_helper

from diagnosing import ask
from quantization_aware import scaled, trained
from tensortriage_testing import feed_for, mlp, save_model

pytestmark = pytest.mark.slow


def trained_further(feed):
    """Return a float model, and one that was trained from it with learned quantizers: its weights moved by 5 %."""
    model, rng = mlp(), np.random.default_rng(0)
    moved = mlp()
    for tensor in moved.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 2:
            noise = 0.05 * array.std() * rng.standard_normal(array.shape)
            tensor.CopyFrom(numpy_helper.from_array((array + noise).astype(np.float32), tensor.name))
    return model, trained(moved, feed)


def test_a_scale_that_training_left_wrong_is_named_though_weights_were_trained_too(tmp_path):
    feed = feed_for(mlp())
    model, small = trained_further(feed)
    scaled(small, "/layer.1/Relu_output_0_scale", 0.1)
    path, plain = save_model(small, tmp_path / "qat.onnx"), "onnxruntime:optimization=none"
    verdict, _ = ask(tmp_path, save_model(model, tmp_path / "float.onnx"), feed, plain, target_model=path)
    named = "/layer.1/Relu_output_0_QuantizeLinear"
    assert (verdict.verdict, [culprit.node for culprit in verdict.culprits]) == ("quantization", [named])
    assert "too small, by a factor of 10" in verdict.summary
    assert "whose weights are not the reference's" in verdict.summary
    assert verdict.next[0].startswith("triage inspect quantizers")


def test_a_sound_model_that_was_trained_further_is_another_model(tmp_path):
    feed = feed_for(mlp())
    model, small = trained_further(feed)
    path, plain = save_model(small, tmp_path / "qat.onnx"), "onnxruntime:optimization=none"
    verdict, _ = ask(tmp_path, save_model(model, tmp_path / "float.onnx"), feed, plain, target_model=path)
    assert verdict.verdict == "model-changed"
    assert {culprit.op_type for culprit in verdict.culprits} == {"Gemm"}  # not the quantizers before them
    assert "'/layer.0.weight'" in verdict.culprits[0].reason

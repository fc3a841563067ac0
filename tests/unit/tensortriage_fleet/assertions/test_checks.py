"""Assertions about models."""

from pathlib import Path

import numpy as np
import pytest

from tensortriage_fleet.assertions import assert_close, assert_same, assert_sound

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CNN, BROKEN = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits_cnn_broken.onnx"
FEED = {"image": np.load(EXAMPLES / "digits.npz")["image"][:4]}


def test_a_sound_model_passes_and_its_verdict_comes_back():
    assert assert_sound(CNN, "onnxruntime", inputs=FEED).verdict == "match"


def test_a_failure_says_verdict_culprit_remedy_and_report():
    with pytest.raises(AssertionError) as caught:
        assert_sound(CNN, "onnxruntime", inputs=FEED, target_model=BROKEN)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"{CNN} on onnxruntime: model-changed, ")
    assert any(line.startswith("  culprit: Conv '/block2/conv1/Conv'") for line in rest)
    report = Path(rest[-1].removeprefix("  report: "))
    assert report.is_file()
    assert "test_a_failure_says" in str(report)


def test_outputs_are_held_against_the_noise_floor_of_their_model():
    import onnxruntime

    session = onnxruntime.InferenceSession(CNN, providers=["CPUExecutionProvider"])
    right = {"logits": session.run(None, FEED)[0]}
    wrong = {"logits": right["logits"] * np.float32(1.001)}
    assert_close(right, right, model=CNN, inputs=FEED)
    with pytest.raises(AssertionError, match=r"'logits' on given\[0\]: \d.* times its limit .*, Gemm '/fc/Gemm'"):
        assert_close(wrong, right, model=CNN, inputs=FEED)
    assert_close(wrong, right, tolerance=0.1)


def test_outputs_that_are_not_the_models_are_told():
    wrong = {"logits": np.zeros((4, 10), np.float32)}
    with pytest.raises(AssertionError, match="and the model disagree: 'logits'"):
        assert_close(wrong, wrong, model=CNN, inputs=FEED)


def test_engines_agree_or_not():
    assert_same(CNN, ["onnxruntime:optimization=none", "onnxruntime", "float64"], inputs=FEED)
    with pytest.raises(AssertionError, match=r"1 of 1 tensor beyond the limit.*\n  'logits' on given\[0\]"):
        assert_same(CNN, ["onnxruntime", "emulate:precision=bf16"], inputs=FEED, tolerances=1e-6)

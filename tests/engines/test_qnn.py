"""QNN's HTP emulator behind ONNX Runtime, where its environment was made (``triage engines install qnn``)."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from diagnosing import ask
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import BuildFailed
from tensortriage.testing import check_engine_conformance
from tensortriage.workflows.engines.environments import environments

MADE = [environment for environment in environments() if environment.engine == "qnn"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install qnn")
ENGINE = OnnxRuntimeEngine()
OPTIONS = {"ep": "qnn", "worker": MADE[0].python} if MADE else {}
MODEL = Path(__file__).parents[2] / "examples" / "digits_cnn.onnx"
IMAGES = np.load(MODEL.with_name("digits.npz"))["image"]


def test_it_computes_in_fp16_and_tells_where():
    session = ENGINE.compile(MODEL, {**OPTIONS, "precision": "fp16"})
    expected = ENGINE.compile(MODEL, {"optimization": "none"})
    try:
        for rows in (2, 1):  # another batch is another build
            right = expected.run({"image": IMAGES[:rows]})["logits"]
            found = session.run({"image": IMAGES[:rows]})["logits"]
            assert 0 < np.abs(found - right).max() < 2**-8 * np.abs(right).max()
        plan = session.plan()
    finally:
        expected.close()
        session.close()
    assert plan.device == "QNNExecutionProvider"
    assert {region.device for region in plan.regions} == {plan.device}
    assert {region.precision for region in plan.regions} == {"float16"}


def test_a_model_that_it_does_not_take_is_no_model_that_it_runs(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (double[3] x) => (double[3] y) { y = Add(x, x) }"""
    onnx.save(parser.parse_model(text), tmp_path / "double.onnx")
    with pytest.raises(BuildFailed) as caught:
        ENGINE.compile(tmp_path / "double.onnx", OPTIONS)
    assert caught.value.slug == "provider-unused"


def test_int8_needs_quantizers():
    with pytest.raises(BuildFailed) as caught:
        ENGINE.compile(MODEL, {**OPTIONS, "precision": "int8"})
    assert caught.value.slug == "quantizers-missing"


def test_it_conforms_but_for_two_faults_of_its_own():
    """QNN 2.7.0 divides by zero on empty tensors, and casts uint8 to float as if it were quantized."""
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(ENGINE, OPTIONS)
    failed = [line.strip().partition(":")[0] for line in str(caught.value).splitlines()[1:]]
    assert failed == ["model zero-size", "model stored-uint8"]


@pytest.mark.slow
def test_its_gelu_is_named_where_rounding_explains_the_outputs(tmp_path):
    """Eight rows are off by 1.4 times what fp16 costs, which so few logits may be; the GELU as one is off by 6e-3."""
    feed = {"image": IMAGES[:8]}
    verdict, _ = ask(
        tmp_path, MODEL.with_name("digits_vit.onnx"), feed, f"onnxruntime:ep=qnn,precision=fp16,worker={MADE[0].python}"
    )
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert "Erf" in {culprit.op_type for culprit in verdict.culprits}

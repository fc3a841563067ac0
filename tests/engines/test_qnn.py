"""QNN's HTP emulator behind ONNX Runtime, where its environment was made (``triage engines install qnn``)."""

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from diagnosing import ask
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import BuildFailed
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments

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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Models that QNN compiled before: Add with one row for all, then LayerNormalization, of scale 1 or 2."""
    folder = tmp_path_factory.mktemp("compiled")
    text = """
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2, 24, 64] x, float[1, 24, 64] p) => (float[2, 24, 64] y)
        <float[64] scale = {{{}}}, float[64] bias = {{{}}}> {{
            s = Add(x, p)
            y = LayerNormalization <axis = -1> (s, scale, bias)
        }}
    """
    rng = np.random.default_rng(0)
    feed = {"x": rng.standard_normal((2, 24, 64), np.float32), "p": rng.standard_normal((1, 24, 64), np.float32)}
    for name, scale in (("shared", "1"), ("doubled", "2")):
        onnx.save(parser.parse_model(text.format(",".join([scale] * 64), ",".join("0" * 64))), folder / f"{name}.onnx")
        written = {"config.ep.context_enable": "1", "config.ep.context_embed_mode": "1"}
        written["config.ep.context_file_path"] = str(folder / f"{name}.qnn.onnx")
        ENGINE.compile(folder / f"{name}.onnx", {**OPTIONS, **written}).close()
    return folder, feed


def test_what_it_compiled_before_runs_and_tells_no_plan(compiled):
    folder, feed = compiled
    sessions = [
        ENGINE.compile(folder / "doubled.onnx", {**OPTIONS, **more})
        for more in ({}, {"file": str(folder / "doubled.qnn.onnx")})
    ]
    built, given = (session.run(feed)["y"] for session in sessions)
    plan = sessions[1].plan()
    for session in sessions:
        session.close()
    np.testing.assert_array_equal(given, built)
    assert plan is None


def test_what_it_compiled_of_another_model_is_refused(compiled):
    folder, _ = compiled
    with (
        closing(ENGINE.compile(MODEL, {**OPTIONS, "file": str(folder / "shared.qnn.onnx")})) as session,
        pytest.raises(BuildFailed, match="the file has the inputs"),
    ):
        session.run({"image": IMAGES[:1]})


@pytest.mark.slow
def test_a_fault_of_its_making_is_named_through_what_it_compiles_now(compiled, tmp_path):
    """QNN 2.7.0 reads one row of p for the second of x where Add and LayerNormalization are one."""
    folder, feed = compiled
    spec = f"onnxruntime:ep=qnn,worker={MADE[0].python},file={folder / 'shared.qnn.onnx'}"
    verdict, _ = ask(tmp_path, folder / "shared.onnx", feed, spec)
    assert verdict.verdict == "fusion-fault"
    assert {culprit.op_type for culprit in verdict.culprits} == {"Add", "LayerNormalization"}


@pytest.mark.slow
def test_a_compiled_file_of_other_weights_is_a_changed_model(compiled, tmp_path):
    folder, feed = compiled
    spec = f"onnxruntime:ep=qnn,worker={MADE[0].python},file={folder / 'doubled.qnn.onnx'}"
    verdict, _ = ask(tmp_path, folder / "shared.onnx", feed, spec)
    assert verdict.verdict == "model-changed"
    assert "differs from what" in verdict.summary

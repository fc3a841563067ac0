"""IREE and TVM, where their environments were made (``triage engines install iree``, ``... tvm``)."""

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments

MADE = {environment.engine: environment for environment in environments()}
MODEL = Path(__file__).parents[2] / "examples" / "digits_cnn.onnx"
IMAGES = np.load(MODEL.with_name("digits.npz"))["image"]


@pytest.fixture(params=["iree", "tvm"])
def target(request):
    if request.param not in MADE:
        pytest.skip(f"no environment: triage engines install {request.param}")
    return create(EngineSpec(request.param)), {"worker": MADE[request.param].python}


def test_it_conforms(target):
    report = check_engine_conformance(*target)
    assert len(report.passed) + len(report.refused) >= 30


def test_it_computes_what_onnx_runtime_does(target):
    engine, options = target
    with (
        closing(engine.compile(MODEL, options)) as session,
        closing(OnnxRuntimeEngine().compile(MODEL, {"optimization": "none"})) as right,
    ):
        found, expected = (each.run({"image": IMAGES[:3]})["logits"] for each in (session, right))
    np.testing.assert_allclose(found, expected, atol=1e-4)  # both in float32; the largest value is about 6


def test_a_refusal_is_told_in_the_words_of_the_compiler(target, tmp_path):
    engine, options = target
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match="Unheard"):
        engine.compile(tmp_path / "m.onnx", options)

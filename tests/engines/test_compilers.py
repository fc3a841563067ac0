"""IREE and TVM, where their environments were made (``triage engines install iree``, ``... tvm``)."""

import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from diagnosing import ask
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import BuildFailed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.testing import check_engine_conformance
from tensortriage.workflows.engines.environments import environments

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


@pytest.mark.slow
def test_a_weight_edited_in_what_iree_imported_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the edited text shows the fault."""
    if "iree" not in MADE:
        pytest.skip("no environment: triage engines install iree")
    with_input_shapes(Model.load(MODEL), {"image": (2, 1, 8, 8)}).save(tmp_path / "fixed.onnx")
    importer = Path(MADE["iree"].python).with_name("iree-import-onnx")
    file = tmp_path / "model.mlir"
    words = [str(importer), str(tmp_path / "fixed.onnx"), "-o", str(file), "--opset-version", "17"]
    subprocess.run(words, check=True, capture_output=True)
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    text, right = file.read_text(), array.tobytes().hex().upper()
    assert right in text
    file.write_text(text.replace(right, (array * np.float32(1.1)).tobytes().hex().upper()))
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:2]}, f"iree:worker={MADE['iree'].python},file={file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")

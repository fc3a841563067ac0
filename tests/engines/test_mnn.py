"""MNN behind its own converter, where its environment was made (``triage engines install mnn``)."""

from contextlib import closing

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from converted_engines import EXAMPLES, IMAGES, MODEL, check_inner_values
from diagnosing import ask, step
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.errors import BuildFailed
from tensortriage.testing import check_engine_conformance
from tensortriage.workflows.engines.environments import environments
from tensortriage_engines.mnn.engine import MnnEngine

MADE = [environment for environment in environments() if environment.engine == "mnn"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install mnn")
ENGINE = MnnEngine()
OPTIONS = {"worker": MADE[0].python} if MADE else {}


def test_it_conforms():
    report = check_engine_conformance(ENGINE, OPTIONS)
    assert len(report.passed) + len(report.refused) >= 30


def test_inner_values_are_those_of_the_model(tmp_path):
    nodes, planned = check_inner_values(ENGINE, OPTIONS, tmp_path, fewest=15)
    assert planned == nodes


def test_large_convolutions_are_computed_by_winograd_in_large_tiles(tmp_path):
    text = "g (float[1,64,56,56] x) => (float[1,64,56,56] y) { y = Conv<pads = [1,1,1,1]>(x, w) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    random = np.random.default_rng(0)
    weight = random.standard_normal((64, 64, 3, 3), np.float32) / 24
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    feed = {"x": random.standard_normal((1, 64, 56, 56), np.float32)}

    def made(engine, options):
        with closing(engine.compile(tmp_path / "m.onnx", options)) as session:
            return session.run(feed)["y"]

    exact = made(Float64Engine(), {})
    off = {tile: rms(made(Float64Engine(), {"rounding": "results", "winograd": tile}) - exact) for tile in "46"}
    found = rms(made(ENGINE, OPTIONS) - exact)
    assert 10 * off["4"] < found < 1.4 * off["6"]  # 1.8e-6, 1.6e-4 and 1.8e-4 with MNN 3.6.1


def rms(error):
    return float(np.sqrt(np.mean(np.square(error))))


def test_a_model_is_converted_once_per_case(tmp_path):
    engine = MnnEngine()
    engine.keep_in(tmp_path, engines=True)
    with closing(engine.compile(MODEL, OPTIONS)) as session:
        first = session.run({"image": IMAGES[:3]})["logits"]
        assert session.info["conversion_seconds"] > 0
    assert len(list(tmp_path.iterdir())) == 1
    with closing(engine.compile(MODEL, {**OPTIONS, "threads": "2"})) as session:  # the runtime's business
        np.testing.assert_allclose(session.run({"image": IMAGES[:3]})["logits"], first, atol=1e-5)
        assert "conversion_seconds" not in session.info
    with closing(engine.compile(MODEL, {**OPTIONS, "gelu": "exact"})) as session:
        assert session.info["conversion_seconds"] > 0


def test_a_refusal_is_told_in_the_words_of_the_converter(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match=r"mnnconvert failed: .*Unheard"):
        ENGINE.compile(tmp_path / "m.onnx", OPTIONS)


def test_an_approximated_gelu_is_rounding_and_told_so(tmp_path):
    verdict, _ = ask(tmp_path, EXAMPLES / "digits_vit.onnx", {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python}")
    assert verdict.verdict == "rounding"
    assert "Div + Erf + Add + Mul + Mul as one: approximated function" in verdict.summary
    answer = step(verdict, "at which configuration does the target break?").answer
    assert answer == "right with precision=fp32,gelu=exact, wrong with as given"


def test_a_weight_edited_in_the_converted_file_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the file itself shows the fault."""
    engine = MnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    engine.compile(MODEL, OPTIONS).close()
    content = next((tmp_path / "kept").iterdir()).read_bytes()
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    assert array.tobytes() in content
    file = tmp_path / "edited.mnn"
    file.write_bytes(content.replace(array.tobytes(), (array * np.float32(1.1)).tobytes()))
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, f"mnn:worker={MADE[0].python},file={file}")
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")

"""ncnn behind pnnx, where its environment was made (``triage engines install ncnn``)."""

import json
from contextlib import closing

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from converted_engines import IMAGES, MODEL, check_inner_values
from diagnosing import ask
from tensortriage.errors import BuildFailed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments
from tensortriage_engines.ncnn.engine import NcnnEngine

MADE = [environment for environment in environments() if environment.engine == "ncnn"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install ncnn")
ENGINE = NcnnEngine()
OPTIONS = {"worker": MADE[0].python} if MADE else {}


def test_what_it_cannot_do_is_refused_with_a_reason():
    """It computes floats with one to four axes; and it does crash, in its own words, on the Split of one input."""
    with pytest.raises(AssertionError) as caught:
        check_engine_conformance(ENGINE, OPTIONS)
    failed = [line.strip().partition(":")[0] for line in str(caught.value).splitlines()[1:]]
    known = {"model integers", "model booleans", "model scalars", "model many-outputs", "model dynamic-shapes"}
    assert set(failed) <= known | {"model zero-size"}


def test_inner_values_are_those_of_the_model(tmp_path):
    _, planned = check_inner_values(ENGINE, OPTIONS, tmp_path, fewest=15)
    assert {"/block1/conv2/Conv", "/fc/Gemm"} <= planned


@pytest.mark.parametrize(("precision", "bound"), [("fp16", 2e-3), ("bf16", 2e-2)])
def test_narrow_formats_round_and_no_more(precision, bound):
    """One unit in the last place of fp16 is 9.8e-4, of bf16 7.8e-3, relative to the largest output."""
    with (
        closing(ENGINE.compile(MODEL, OPTIONS)) as wide,
        closing(ENGINE.compile(MODEL, {**OPTIONS, "precision": precision})) as narrow,
    ):
        expected, found = (session.run({"image": IMAGES[:4]})["logits"] for session in (wide, narrow))
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-6 < error < bound


def test_a_refusal_is_told_in_the_words_of_the_converter(tmp_path):
    text = '<ir_version: 8, opset_import: ["": 17, "mine": 1]> g (float[2] x) => (float[2] y) { y = mine.Unheard(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(BuildFailed, match=r"pnnx failed: .*Unheard"):
        ENGINE.compile(tmp_path / "m.onnx", OPTIONS)


def test_a_weight_edited_in_the_converted_file_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the network itself shows the fault."""
    engine = NcnnEngine()
    engine.keep_in(tmp_path / "kept", engines=True)
    fixed = with_input_shapes(Model.load(MODEL), {"image": (4, 1, 8, 8)}).save(tmp_path / "fixed.onnx")
    engine.compile(fixed, OPTIONS).close()
    packed = next((tmp_path / "kept").iterdir()).read_bytes()
    end = 8 + int.from_bytes(packed[:8], "little")
    weight = next(w for w in onnx.load(MODEL).graph.initializer if w.name == "block2.conv2.weight")
    array = numpy_helper.to_array(weight)
    assert array.tobytes() in packed
    (tmp_path / "edited.param").write_text(json.loads(packed[8:end])["param"])
    edited = packed[end:].replace(array.tobytes(), (array * np.float32(1.1)).tobytes())
    (tmp_path / "edited.bin").write_bytes(edited)
    target = f"ncnn:worker={MADE[0].python},file={tmp_path / 'edited.param'}"
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, target)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv2/Conv")


def test_weights_that_are_inputs_as_well_are_not_taken_for_what_is_fed(tmp_path):
    """Models of IR version 3 declare every weight as an input; pnnx would ask to be fed them."""
    text = """
        <ir_version: 3, opset_import: ["": 9]>
        g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) <float[3, 3] w = {1, 0, 0, 0, 2, 0, 0, 0, 3}> {
            y = MatMul(x, w)
        }
    """
    onnx.save(parser.parse_model(text), tmp_path / "old.onnx")
    with closing(ENGINE.compile(tmp_path / "old.onnx", OPTIONS)) as session:
        found = session.run({"x": np.ones((2, 3), np.float32)})["y"]
    np.testing.assert_array_equal(found, [[1, 2, 3]] * 2)

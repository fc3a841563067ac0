"""The commands as functions of what people have at hand."""

import importlib
import inspect
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import tensortriage
from tensortriage.api import EngineSpec, TriageError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CNN, BROKEN = EXAMPLES / "digits_cnn.onnx", EXAMPLES / "digits_cnn_broken.onnx"
FEED = {"image": np.load(EXAMPLES / "digits.npz")["image"][:4]}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_run_takes_a_model_in_memory_arrays_and_an_engine_by_name():
    result = tensortriage.run(onnx.load(CNN), "onnxruntime", inputs=FEED)
    assert result.passed
    assert repr(result) == "<CompareResult passed: 0 of 1 tensor beyond the limit, on onnxruntime>"
    (row,) = result.records
    assert (row["value"], row["op_type"], row["within"]) == ("logits", "Gemm", True)
    assert json.loads(json.dumps(result.to_dict()))["format"] == "tensortriage.run/1"
    assert "<td><code class=" in result._repr_html_()


def test_diagnose_is_a_package_that_can_be_called():
    given = {"inputs": FEED, "case": "mine", "target_model": BROKEN}
    verdict = tensortriage.diagnose(str(CNN), EngineSpec.parse("onnxruntime"), **given)
    assert verdict.verdict == "model-changed"
    assert repr(verdict).startswith("<Verdict model-changed, 100 %: ")
    assert len(repr(verdict)) < 400
    assert verdict.records[0]["op_type"] == "Conv"
    assert "<b>" in verdict._repr_html_()
    assert Path("mine", "report.html").is_file()
    assert importlib.import_module("tensortriage.diagnose.climb").climb
    assert "target" in inspect.signature(tensortriage.diagnose).parameters


def test_a_card_holds_no_markup_of_the_model(tmp_path):
    model = onnx.load(CNN)
    model.graph.node[-1].output[0] = model.graph.output[0].name = "<script>x</script>"
    result = tensortriage.run(model, "onnxruntime", inputs=FEED)
    assert "<script>" not in result._repr_html_()
    assert "&lt;script&gt;" in result._repr_html_()


def test_outputs_that_are_there_are_compared():
    right = {"logits": np.linspace(1, 2, 8, dtype=np.float32)}
    wrong = {"logits": right["logits"] * np.float32(1.01)}
    assert not tensortriage.compare(right, wrong).passed
    assert tensortriage.compare(right, wrong, tolerance=0.1).passed
    assert not tensortriage.compare(right, wrong, tolerance={"logits": 1e-4}).passed
    assert tensortriage.compare([right, right], [right, right]).passed


def test_a_model_says_how_far_outputs_may_be_off():
    result = tensortriage.run(CNN, "onnxruntime", inputs=FEED)
    import onnxruntime

    session = onnxruntime.InferenceSession(CNN, providers=["CPUExecutionProvider"])
    found = {"logits": session.run(None, FEED)[0]}
    assert tensortriage.compare(found, found, model=CNN, inputs=FEED).passed == result.passed
    off = {"logits": found["logits"] * np.float32(1.001)}
    assert not tensortriage.compare(found, off, model=CNN, inputs=FEED).passed


def test_reduce_and_find_precision_write_what_they_find():
    plan = tensortriage.find_precision(CNN, "emulate:precision=bf16", inputs=[FEED], output="mixed.onnx")
    assert repr(plan).startswith("<PrecisionPlan ")
    assert Path("mixed.onnx").is_file()
    with pytest.raises(TriageError, match=r"does not fail.*; "):
        tensortriage.reduce(CNN, "onnxruntime", "small.onnx", inputs=FEED)


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"model": 3}, "give the path of an ONNX file"),
        ({"target": 3}, "name an engine, e.g. 'onnxruntime'"),
        ({"inputs": 3}, "give inputs as a dict"),
        ({"case": 3}, "give a path"),
        ({"imputs": FEED}, "did you mean 'inputs'?"),
        ({"builds": "two"}, "give a whole number"),
        ({"tolerance": "small"}, "give a number, a dict"),
        ({"metric": 3}, "give a function of outputs and feed"),
        ({"reference": None}, "name an engine"),
        ({"limits": 60}, "give an object of Limits"),
        ({"sweep": "batch=1"}, "give a dict"),
        ({"fresh": "yes"}, "give True or False"),
        ({"network": 3}, "give text"),
    ],
)
def test_a_wrong_argument_is_a_type_error_before_anything_runs(given, cure):
    with pytest.raises(TypeError) as caught:
        tensortriage.diagnose(**{"model": CNN, "target": "onnxruntime", **given})
    assert cure in str(caught.value)
    assert not list(Path().iterdir())


def test_an_error_says_its_cure():
    with pytest.raises(TriageError) as caught:
        tensortriage.run("none.onnx", "onnxruntime")
    assert caught.value.cure
    assert str(caught.value) == f"{caught.value.message}; {caught.value.cure}"


def test_names_are_listed():
    assert {"compare", "diagnose", "find_precision", "reduce", "run", "api"} <= set(dir(tensortriage))
    assert "DiagnoseRequest" in dir(tensortriage.api)
    with pytest.raises(AttributeError, match="no attribute 'diagnos'"):
        tensortriage.diagnos  # noqa: B018

"""Whatever is given for an argument of the functions: what it cannot be ends in a sentence with a cure.

Every argument of the five functions gets values of every other type, and so do the parts that requests are made of.
"""

from pathlib import Path

import numpy as np
import pytest

import tensortriage
from tensortriage import api
from tensortriage.errors import TriageError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CNN = str(EXAMPLES / "digits_cnn.onnx")
FEED = {"image": np.zeros((1, 1, 8, 8), np.float32)}
OUTPUTS = {"logits": np.zeros((1, 10), np.float32)}
RIGHT = {
    "diagnose": {"model": CNN, "target": "onnxruntime", "inputs": FEED, "progress": False},
    "run": {"model": CNN, "targets": "onnxruntime", "reference": "onnxruntime:optimization=none", "inputs": FEED},
    "compare": {"reference": OUTPUTS, "target": OUTPUTS, "model": CNN, "inputs": FEED, "tolerance": 0.1},
    "reduce": {"model": CNN, "target": "onnxruntime", "output": "small.onnx", "inputs": FEED},
    "find_precision": {"model": CNN, "target": "emulate:precision=fp16", "output": "mixed.onnx", "inputs": FEED},
}
VALUES = {
    "int": 3, "float": 1.5, "None": None, "object": object(), "list": [], "dict": {}, "bytes": b"x", "set": {1},
    "array": np.zeros(3), "True": True, "function": len, "class": dict, "list of int": [3],
    "dict of text": {"image": "x"}, "list of text": ["a", "b"], "list of list": [[FEED]], "no text": "",
    "text": "nonsense", "NUL": "a\0b", "complex": 1j, "spec": api.EngineSpec("onnxruntime"), "path": Path("nowhere"),
}  # fmt: skip
MEANT = {
    "target": {"spec"}, "targets": {"spec"}, "reference": {"None", "spec"}, "inputs": {"None"},
    "progress": {"None", "True"},
    "tolerance": {"int", "float", "None", "dict"},
    "output": {"None", "text", "path"},
    "model": {"None"},
}  # fmt: skip
"""What an argument may be."""


@pytest.mark.parametrize(("name", "argument"), [(name, each) for name, given in RIGHT.items() for each in given])
def test_a_value_of_another_type_ends_in_a_cure(name, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    allowed = MEANT.get(argument, set()) if (name, argument) not in NEEDED else set()
    for kind in VALUES.keys() - allowed:
        with pytest.raises((TypeError, TriageError)) as caught:
            getattr(tensortriage, name)(**{**RIGHT[name], argument: VALUES[kind]})
        said = str(caught.value)
        if isinstance(caught.value, TriageError):
            assert caught.value.cure, (kind, said)
            assert said.endswith(caught.value.cure), (kind, said)
        else:
            assert any(word in said for word in ("give ", "name ")), (kind, said)
            assert "attribute" not in said, (kind, said)


NEEDED = {(name, "model") for name in RIGHT if name != "compare"} | {
    ("compare", "reference"),
    ("compare", "target"),
    ("reduce", "output"),
}
"""Where None, or what another function takes there, is no value."""


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: api.DiagnoseRequest(model=3, target="onnxruntime"), "give the path of an ONNX file"),
        (lambda: api.DiagnoseRequest(model=CNN, target=["onnxruntime"]), "name an engine"),
        (lambda: api.CompareRequest(model=CNN, reference=3), "name an engine"),
        (lambda: api.CompareRequest(model=CNN, targets=[3]), "name an engine"),
        (lambda: api.FeedRequest(paths=3), "give text, or a list of texts"),
        (lambda: api.FeedRequest(paths={"image": "x.npz"}), "give text, or a list of texts"),
        (lambda: tensortriage.diagnose(CNN, "onnxruntim"), "did you mean 'onnxruntime'?"),
        (lambda: tensortriage.diagnose("nowhere.onnx", "onnxruntime"), "check the path"),
        (lambda: tensortriage.diagnose(CNN, "onnxruntime", inputs={"imag": FEED["image"]}), "image"),
        (lambda: tensortriage.diagnose(CNN, "onnxruntime", inputs="nowhere.npz"), "check the path"),
        (lambda: tensortriage.diagnose(CNN, "onnxruntime", targets="onnxruntime"), "did you mean 'target'?"),
    ],
)
def test_wrong_calls_of_newcomers_end_in_a_cure(call, cure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, TriageError)) as caught:
        call()
    assert cure in str(caught.value)


def test_what_people_have_is_taken(tmp_path):
    """Text for a path, text for an engine and a spec alike, a path alone for several, arrays by name."""
    assert api.FeedRequest(paths="x.npz").paths == ("x.npz",)
    spec = api.EngineSpec("onnxruntime")
    assert api.CompareRequest(model=CNN, reference="onnxruntime", targets=[spec, "openvino"]).reference == spec
    assert api.DiagnoseRequest(model=CNN, target=spec).target == "onnxruntime"
    with pytest.raises(TriageError, match="case directory"):
        api.Report.load(str(tmp_path / "none"))

"""Which models, data and targets a command is about."""

from pathlib import Path

import pytest

from tensortriage.sdk import UsageError
from tensortriage_fleet.baseline.baseline_file import Baseline, BaselineFolder, SavedTarget, SavedVerdict
from tensortriage_fleet.baseline.measured import BaselineData, BaselineEngine, BaselineModel
from tensortriage_fleet.baseline.request import BaselineRequest
from tensortriage_fleet.baseline.subjects import subjects


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "models/a.onnx",
        "models/a.npz",
        "models/b.onnx",
        "zoo/c/model.onnx",
        "zoo/c/test_data_set_0/input_0.pb",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def about(*paths, saving=True, **fields):
    request = BaselineRequest(paths=tuple(map(Path, paths)), **fields)
    return subjects(request, BaselineFolder(request.folder), saving=saving)


def keep(model, *targets, path=None):
    engine = BaselineEngine("", "fp32", "cpu", "CPU")
    saved = SavedTarget(engine, {}, SavedVerdict("match", 0, ""), {})
    facts = BaselineModel(model if path is None else path, "aa", {})
    kept = Baseline(facts, BaselineData(("own.npz",), {}), {}, dict.fromkeys(targets, saved))
    BaselineFolder(Path(".triage-baseline")).write(model, kept)


def test_a_folder_is_its_models_with_the_data_beside_them(root):
    found = about(".", targets=["onnxruntime"])
    assert [(each.model, each.inputs) for each in found] == [
        ("models/a.onnx", ("models/a.npz",)),
        ("models/b.onnx", ()),
        ("zoo/c/model.onnx", ("zoo/c/test_data_set_0",)),
    ]
    assert all(each.is_new for each in found)


def test_a_check_without_words_is_about_all_that_is_kept(root):
    keep("models/a.onnx", "onnxruntime", "openvino")
    keep("tests/one", "onnxruntime", path="")  # known to a test alone
    found = about(saving=False)
    assert [(each.model, each.target, each.inputs) for each in found] == [
        ("models/a.onnx", "onnxruntime", ("own.npz",)),
        ("models/a.onnx", "openvino", ("own.npz",)),
    ]


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("onnxruntime:worker=/py", "onnxruntime"),
        ("onnxruntime:threads=2", "onnxruntime"),
        ("openvino:precision=fp16,threads=1", "openvino:precision=fp16"),
        ("openvino:precision=bf16", "openvino"),
        ("float64", "float64"),
    ],
)
def test_a_target_is_held_against_the_baseline_of_its_engine(root, target, key):
    keep("models/a.onnx", "onnxruntime", "openvino", "openvino:precision=fp16")
    (found,) = about("models/a.onnx", targets=[target], saving=False)
    assert found.key == key
    assert found.is_new is (target == "float64")


def test_files_of_engines_and_data_are_named_from_the_root(root, monkeypatch):
    (root / "models" / "engine.py").touch()
    monkeypatch.chdir(root / "models")
    (found,) = about("a.onnx", targets=["script:engine.py"], inputs=["a.npz"], folder=Path("../.triage-baseline"))
    assert (found.model, found.target, found.inputs) == ("models/a.onnx", "script:models/engine.py", ("models/a.npz",))


def test_what_cannot_be_is_said_with_a_cure(root, tmp_path_factory):
    with pytest.raises(UsageError, match="no baseline in"):
        about()
    with pytest.raises(UsageError, match="no --targets"):
        about("models")
    outside = tmp_path_factory.mktemp("outside") / "m.onnx"
    outside.touch()
    with pytest.raises(UsageError, match="outside of") as caught:
        about(outside, targets=["onnxruntime"])
    assert "--baseline" in caught.value.cure

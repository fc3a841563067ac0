"""A program that preprocesses wrongly, and two files of inputs, as users ask about them.

What is right is what the program's text, and numpy here, do to the picture.
"""

import json
import shutil

import numpy as np
import pytest

import models
from running_cli import EXAMPLES, triage

APP = """import numpy as np, onnxruntime
class Session:
    def __init__(self, path): self.session = onnxruntime.InferenceSession(path)
    def run(self, feed):
        image = np.ascontiguousarray(feed["image"][..., ::-1] / 255, np.float32)
        return {"logits": self.session.run(["logits"], {"image": image})[0]}
class App:
    def compile(self, model_path, options): return Session("digits_cnn.onnx")
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("digits_cnn.onnx", "digits.npz"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.mark.lengthy
def test_a_program_that_shows_outputs_alone_is_told_what_it_does_to_its_input(folder):
    words = ["digits_cnn.onnx", "--inputs", "digits.npz", "--target", "script:app.py:App", "--json"]
    done = triage("diagnose", *words, cwd=folder)
    assert done.returncode == 1
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == "comparison-unsound"
    (told,) = [step["evidence"]["transforms"] for step in verdict["steps"] if "transforms" in step["evidence"]]
    assert {each["kind"] for each in told} == {"flipped-horizontally", "scale"}
    assert [each["parameters"]["scale"] for each in told if each["kind"] == "scale"] == [[0.0039216]]


def test_two_files_are_compared_and_a_model_tells_the_cost(folder):
    image = np.load(folder / "digits.npz")["image"]
    np.savez(folder / "app.npz", image=image * np.float32(255))
    done = triage("check", "feed", "digits.npz", "app.npz", "--model", "digits_cnn.onnx", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("'image' is multiplied by 255")
    assert "cure: image = image / 255\n" in done.stdout
    assert "at output 'logits'" in done.stdout


def test_saved_outputs_that_fail_lead_to_the_question_of_which_inputs_they_are(folder):
    wrong = triage(
        "run", "digits_cnn.onnx", "--onnxrt", "--inputs", "digits.npz", "--save-outputs", "o.json", cwd=folder
    )
    assert wrong.returncode == 0
    image = np.load(folder / "digits.npz")["image"]
    np.savez(folder / "other.npz", image=np.ascontiguousarray(image[..., ::-1]))
    done = triage("run", "digits_cnn.onnx", "--onnxrt", "--inputs", "other.npz", "--load-outputs", "o.json", cwd=folder)
    assert done.returncode == 1
    command = "triage check feed other.npz o.json --model digits_cnn.onnx"
    assert f"next: {command}" in done.stdout
    asked = triage(*command.split()[1:], cwd=folder)
    assert asked.returncode == 1
    assert asked.stdout.startswith("the outputs are those of another input: 'image' is flipped from left to right")


IN_PLACE = """import numpy as np, onnxruntime
class App:
    def compile(self, model_path, options):
        self.session = onnxruntime.InferenceSession(str(model_path))
        return self
    def run(self, feed):
        names = [each.name for each in self.session.get_outputs()]
        out = dict(zip(names, self.session.run(names, feed)))
        np.square(out["a"], out=out["a"])
        out["b"] = out["a"]
        return out
"""
SQUARES = """g (float[3,8] x) => (float[3,8] a, float[3,8] b) { [one] a = Sin(x) [two] b = Mul(a, a) }"""


CHANGED = """import numpy as np, onnxruntime
class App:
    def compile(self, model_path, options):
        self.session = onnxruntime.InferenceSession(str(model_path))
        return self
    def run(self, feed):
        names = [each.name for each in self.session.get_outputs()]
        out = dict(zip(names, self.session.run(names, feed)))
        return {name: np.round(array, 2) if name == "b" else array for name, array in out.items()}
"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        (
            IN_PLACE,
            "comparison-unsound",
            (
                "output 'a' holds the numbers of 'b', whose memory it shares",
                "return copies, e.g. 'a': array.copy()",
            ),
        ),
        (
            CHANGED,
            "comparison-unsound",
            ("changes what its network computes: 'b' is the model's rounded to 2 decimals",),
        ),
        (
            CHANGED.replace("np.round(array, 2)", "array[:, ::-1].copy()"),
            "layout",
            ("changes what its network computes: 'b' is the model's", "revers", "axis 1"),
        ),
    ],
    ids=["overwritten", "rounded", "reversed"],
)
def test_changes_of_outputs_by_a_program_are_told_by_run_and_diagnose(tmp_path, program, kind, words):
    models.write(tmp_path / "m.onnx", SQUARES)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    (tmp_path / "app.py").write_text(program)
    given = ["m.onnx", "--inputs", "x.npz", "--target", "script:app.py"]
    ran, diagnosed = triage("run", *given, cwd=tmp_path), triage("diagnose", *given, "--json", cwd=tmp_path)
    assert (ran.returncode, diagnosed.returncode) == (1, 1)
    verdict = json.loads(diagnosed.stdout)["verdict"]
    assert verdict["verdict"] == kind
    for text in (ran.stdout, verdict["summary"]):
        assert all(each in text for each in words), text


@pytest.mark.lengthy
def test_a_program_is_told_from_an_op_by_outputs_that_are_constants_whatever_it_does_to_them(tmp_path):
    models.write(tmp_path / "m.onnx", SQUARES)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    (tmp_path / "app.py").write_text(CHANGED.replace("np.round(array, 2)", "np.sin(array * array * 3)"))
    given = ["m.onnx", "--inputs", "x.npz", "--target", "script:app.py"]
    verdict = json.loads(triage("diagnose", *given, "--json", cwd=tmp_path).stdout)["verdict"]
    assert verdict["verdict"] == "comparison-unsound"
    assert "'b' is changed in no known way" in verdict["summary"]


@pytest.mark.lengthy
def test_what_a_reference_does_to_outputs_is_told_before_an_op_is_blamed_and_compared_with_the_target(tmp_path):
    models.write(tmp_path / "m.onnx", SQUARES)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    for name, by in (("one", 3), ("two", 6)):
        (tmp_path / f"{name}.py").write_text(CHANGED.replace("np.round(array, 2)", f"array * np.float32({by})"))
    given = ["m.onnx", "--inputs", "x.npz", "--reference", "script:one.py", "--target", "script:two.py"]
    verdict = json.loads(triage("diagnose", *given, "--json", cwd=tmp_path).stdout)["verdict"]
    assert (verdict["verdict"], verdict["culprits"]) == ("comparison-unsound", [])
    assert (
        "the reference script:one.py changes what its network computes: 'b' is the model's multiplied by 3"
        in (verdict["summary"])
    )
    assert "'b' is the reference's multiplied by 2 in the target" in verdict["summary"]


@pytest.mark.lengthy
def test_an_op_at_fault_is_no_change_of_the_program(tmp_path):
    models.write(tmp_path / "m.onnx", SQUARES)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32))
    (tmp_path / "planted.py").write_text("from tensortriage_testing import FaultyEngine as Engine\n")
    target = "script:planted.py,kind=scale,node=two,amount=100"
    done = triage("diagnose", "m.onnx", "--inputs", "x.npz", "--target", target, "--json", cwd=tmp_path)
    verdict = json.loads(done.stdout)["verdict"]
    assert (verdict["verdict"], verdict["culprits"][0]["node"]) == ("local-fault", "two")

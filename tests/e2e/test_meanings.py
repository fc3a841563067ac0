"""Somebody who understands an operator otherwise, through the command line: a program, and a file."""

import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from models import proto

NET = """g (float[4,8] x, int64[4] at) => (float[4,8] y)
<int64 by = {4}, float[3,8] table = {TABLE}> {
  [div] step = Div(at, by)
  [one] one = Constant<value_int=2>()
  [row] row = Add(step, one)
  [take] bias = Gather(table, row)
  [sum] s = Add(x, bias)
  [end] y = Tanh(s)
}""".replace("TABLE", ", ".join(f"{each:.3f}" for each in np.random.default_rng(1).standard_normal(24)))
FLOOR = """[wide] wide = Cast<to=1>(at)
  [wideby] wideby = Cast<to=1>(by)
  [quotient] quotient = Div(wide, wideby)
  [low] low = Floor(quotient)
  [div] step = Cast<to=7>(low)"""
APP = """
import onnxruntime


class App:
    def compile(self, model_path, options):
        self.network = onnxruntime.InferenceSession("other.onnx")
        return self

    def run(self, feed):
        return {"y": self.network.run(None, feed)[0]}
"""


@pytest.mark.subprocess
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        pytest.param(["--target", "script:app.py:App"], "model-changed", id="target"),
        pytest.param(
            ["--reference", "script:app.py:App", "--target", "onnxruntime"], "comparison-unsound",
            id="reference", marks=pytest.mark.lengthy,
        ),
    ],
)  # fmt: skip
def test_a_program_that_divides_otherwise_is_told_so(tmp_path, given, kind):
    onnx.save(proto(NET), tmp_path / "model.onnx")
    onnx.save(proto(NET.replace("[div] step = Div(at, by)", FLOOR)), tmp_path / "other.onnx")
    (tmp_path / "app.py").write_text(APP)
    feed = {"x": np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32), "at": np.array([-7, -1, 0, 3])}
    np.savez(tmp_path / "inputs.npz", **feed)
    command = [sys.executable, "-m", "tensortriage", "diagnose", "model.onnx", "--inputs", "inputs.npz", "--json"]
    done = subprocess.run([*command, *given], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == kind
    assert "Div 'div' as if quotients of negative whole numbers were rounded down (floor)" in verdict["summary"]
    assert verdict["culprits"][0]["node"] == "div"


@pytest.mark.subprocess
@pytest.mark.slow
def test_saved_outputs_of_such_a_program_are_told_so_by_run(tmp_path):
    proto_of_other = proto(NET.replace("[div] step = Div(at, by)", FLOOR))
    onnx.save(proto(NET), tmp_path / "model.onnx")
    feed = {"x": np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32), "at": np.array([-7, -1, 0, 3])}
    np.savez(tmp_path / "inputs.npz", **feed)
    session = onnxruntime.InferenceSession(proto_of_other.SerializeToString())
    np.savez(tmp_path / "theirs.npz", y=session.run(None, feed)[0])
    given = ["model.onnx", "--inputs", "inputs.npz", "--load-outputs", "theirs.npz", "--reference", "onnxruntime"]
    command = [sys.executable, "-m", "tensortriage", "run", *given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "the outputs are those of these inputs" in done.stdout
    assert "computes Div 'div' as if quotients of negative whole numbers were rounded down (floor)" in done.stdout

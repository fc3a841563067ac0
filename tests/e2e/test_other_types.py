"""Outputs of another type than the model declares, or in reverse order, are told of by `run` and `diagnose` alike."""

import numpy as np
import pytest

from running_cli import triage, verdict_in

pytestmark = pytest.mark.slow

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[8,10] x) => (float[8,10] y, int64[8,1] i) { [r] y = Relu(x) [a] i = ArgMax<axis = 1>(y) }"""
ENGINE = """
import numpy as np
import onnxruntime

class Session:
    def __init__(self, path): self.session = onnxruntime.InferenceSession(path)
    def run(self, feed):
        y, i = self.session.run(["y", "i"], feed)
        return {"y": CHANGED, "i": i.astype(np.INTEGER)}

class Engine:
    def compile(self, model, options): return Session(str(model))
"""


def told(tmp_path, changed, integer="int32"):
    import models

    models.write(tmp_path / "net.onnx", TEXT)
    (tmp_path / "engine.py").write_text(ENGINE.replace("CHANGED", changed).replace("INTEGER", integer))
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((8, 10)).astype(np.float32))
    words = ["net.onnx", "--target", "script:engine.py", "--inputs", "x.npz"]
    ran, diagnosed = triage("run", *words, cwd=tmp_path), triage("diagnose", *words, "--no-repro", cwd=tmp_path)
    return (ran.returncode, ran.stdout), (diagnosed.returncode, verdict_in(tmp_path / "triage-case")["summary"])


@pytest.mark.parametrize("integer", ["int32", "float32"])
def test_equal_numbers_of_another_type_match_and_the_type_is_told(tmp_path, integer):
    for code, text in told(tmp_path, "y.astype(np.float64)", integer):
        assert code == 0, text
        assert "'y' is float64, which the model declares as float32" in text
        assert f"'i' is {integer}, which the model declares as int64" in text


def test_both_have_the_same_words_for_an_order(tmp_path):
    for code, text in told(tmp_path, "y[:, ::-1].copy()"):
        assert code == 1, text
        assert "'y' is the model's in other places (axis 1 is in reverse order)" in text

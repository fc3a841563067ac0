"""A reference whose results change from run to run, at random or by the runs before."""

import numpy as np
import pytest

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.diagnose.rungs.premises.second_opinion import QUESTION
from tensortriage_testing import feed_for, mlp, save_model

KEEPING = """
from pathlib import Path
import numpy as np
import onnxruntime

class Session:
    def __init__(self, path):
        self.session, self.calls = onnxruntime.InferenceSession(str(path)), 0
    def run(self, feed):
        self.calls += 1
        outputs = [each.name for each in self.session.get_outputs()]
        return {name: array * np.float32(1 + RULE) for name, array in zip(outputs, self.session.run(None, feed))}

class Engine:
    def compile(self, path, options):
        return Session(Path(__file__).with_name("mlp.onnx"))
"""


@pytest.mark.parametrize("rule", ["0.1 * self.calls", "0.3 * (self.calls == 1)"])
def test_a_reference_that_goes_on_from_its_last_run_is_told(tmp_path, rule):
    """By how many runs came before, or in the first run of a session alone."""
    (tmp_path / "own.py").write_text(KEEPING.replace("RULE", rule))
    save_model(proto := mlp(seed=3), tmp_path / "mlp.onnx")
    reference = f"script:{tmp_path / 'own.py'}:Engine"
    verdict, _ = ask(tmp_path, proto, feed_for(proto), "onnxruntime:optimization=none", reference=reference)
    assert (verdict.verdict, verdict.culprits) == ("comparison-unsound", ())
    assert "keeps state between runs, and a model in ONNX keeps none" in verdict.summary
    assert "make that state an input and an output of the model" in verdict.summary


RACING = """
import itertools

import numpy as np
import onnxruntime

COUNT = itertools.count()


class Engine:
    def compile(self, model, options):
        session = onnxruntime.InferenceSession(str(model))
        names = [output.name for output in session.get_outputs()]
        return Session(lambda feed: dict(zip(names, map(raced, session.run(names, feed)))))


class Session:
    def __init__(self, run):
        self.run = run


def raced(array):
    return (array * (1 + 0.2 * (next(COUNT) % 3 != 2))).astype(array.dtype)
"""
"""Two results of three are a fifth too large, the first among them: 1 / 1.2 of it is 17 % less."""


@pytest.mark.parametrize(
    ("target", "kind"), [("onnxruntime", "match"), ("fault:node=two,kind=scale,amount=1.1", "local-fault")]
)
def test_float64_takes_the_place_of_a_reference_that_contradicts_itself(tmp_path, target, kind):
    text = "g (float[4,8] x) => (float[4,8] y) { [one] a = Tanh(x)\n [two] y = Sigmoid(a) }"
    feed = {"x": np.random.default_rng(5).standard_normal((4, 8)).astype(np.float32)}
    verdict, _ = ask(tmp_path, text, feed, target, reference=f"script:{engine_file(RACING)}")
    assert verdict.verdict == kind, verdict.summary
    assert "float64 is the reference: script:" in verdict.summary
    assert "gives other results from run to run, output 'y' by 17 %" in verdict.summary
    assert "float64 takes its place" in step(verdict, QUESTION).answer

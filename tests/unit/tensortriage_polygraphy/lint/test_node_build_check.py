"""Every node that an engine refuses is found, not only the first. Which ones follows from the ONNX text."""

import numpy as np
import pytest

import models
from machine import CRASH, CRASHING, needs_openvino_crash
from running_cli import EXAMPLES
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.runs.outcome import OutcomeKind
from tensortriage_polygraphy.lint.node_build_check import _SLUG_OF, SLUGS, check_nodes

TWO_BRANCHES = """
<ir_version: 10, opset_import: ["": 18, "custom": 1]>
g (float[2] x) => (float[2] y, float[2] z) {
    [a] a = Relu(x)
    [bad] b = custom.Mystery (a)
    [behind] y = Exp(b)
    [other] c = Neg(x)
    [worse] d = custom.Riddle (c)
    [last] z = Tanh(c)
}
"""
PICKY = """
import os, time
class Picky:
    def compile(self, path, options):
        import onnx
        ops = {node.op_type for node in onnx.load(path).graph.node}
        if "Exp" in ops:
            BAD
        return Session(path)
class Session:
    def __init__(self, path):
        import onnxruntime
        self.session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    def run(self, feed):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feed)))
"""


def checked(model, target="onnxruntime", *, feed=None, limits=None):
    feed = feed or next(random_feeds(model))
    with Lab(limits=limits) as lab:
        return check_nodes(model, EngineSpec.parse(target), feed, lab)


def test_a_model_that_runs():
    found = checked(models.chain(5))
    assert (found.passing, found.findings) == (tuple(f"op_{i}" for i in range(5)), ())


def test_faults_on_two_branches_are_both_found():
    found = checked(models.parse(TWO_BRANCHES))
    assert [(f.slug, f.node, f.op_type) for f in found.findings] == [
        ("engine-refuses", "bad", "Mystery"),
        ("engine-refuses", "worse", "Riddle"),
    ]
    assert found.passing == ("a", "other", "last")
    assert (found.failing, found.skipped) == (("bad", "worse"), ("behind",))
    assert all(f.severity.fails and f.source == "onnxruntime" for f in found.findings)


def test_a_node_that_only_fails_when_it_runs():
    model = models.parse("g (float[4] x, int64[1] i) => (float[n] y) { [r] a = Relu(x)  [cut] y = Reshape(a, i) }")
    feed = Feed("f", {"x": np.zeros(4, np.float32), "i": np.array([3])}, Origin.REAL)
    found = checked(model, feed=feed)
    assert [(f.slug, f.node) for f in found.findings] == [("engine-fails", "cut")]
    assert found.passing == ("r",)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("bad", "slug"), [("os.abort()", "engine-crashes"), ("time.sleep(60)", "engine-hangs"), ("1 / 0", "engine-refuses")]
)
def test_a_crash_or_a_hang_is_an_answer(tmp_path, bad, slug):
    (tmp_path / "picky.py").write_text(PICKY.replace("BAD", bad))
    model = models.parse("g (float[2] x) => (float[2] y) { [a] a = Relu(x)  [e] b = Exp(a)  [n] y = Neg(b) }")
    limits = Limits(build_seconds=8 if "sleep" in bad else 60, run_seconds=60)
    found = checked(model, f"script:{tmp_path / 'picky.py'}:Picky", limits=limits)
    assert [(f.slug, f.node) for f in found.findings] == [(slug, "e")]
    assert (found.passing, found.skipped) == (("a",), ("n",))


def test_when_only_the_combination_fails():
    needs_openvino_crash()
    model = Model.load(CRASH)
    with np.load(EXAMPLES / "openvino_crash.npz") as arrays:
        found = checked(model, CRASHING, feed=Feed("f", dict(arrays), Origin.REAL))
    (finding,) = found.findings
    assert (finding.slug, finding.node) == ("engine-crashes", "")
    assert "every node runs by itself" in finding.why
    assert "debug reduce" in finding.cure
    assert len(found.passing) == 30


def test_every_failure_has_a_name():
    assert {*_SLUG_OF} == {*OutcomeKind} - {OutcomeKind.OK}
    assert {*_SLUG_OF.values()} | {"engine-not-asked"} == {*SLUGS}
    assert _SLUG_OF[OutcomeKind.OUT_OF_MEMORY] == "engine-out-of-memory"


def test_sequences_stay_inside():
    model = models.parse(
        """
        g (float[2] x) => (float[4] y) {
            [a] a = Relu(x)  [m] s = SequenceConstruct(a, x)  [j] j = ConcatFromSequence <axis = 0> (s)
            [b] y = custom.Mystery (j) }""".replace(
            "g (", '<ir_version: 10, opset_import: ["": 18, "custom": 1]> g (', 1
        )
    )
    found = checked(model)
    assert (found.passing, found.failing) == (("a", "m", "j"), ("b",))

"""What is said of a fault: the op, what is understood otherwise, with whom ONNX sides, and what to do."""

import dataclasses

import numpy as np
import pytest

from investigations import compared, investigate, last_step  # noqa: F401 - fixtures
from models import proto
from registered_engines import register
from tensortriage.diagnose.state.confidence import REFERENCE_OUTSIDE, UNDECIDED
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage_meanings.rung import meant_otherwise
from wrongly_fed import fed

RNG = np.random.default_rng(3)
NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] x) => (float[2,4] y)
<float[6,6] w = {W}, float[6,4] v = {V}> {
  [in] a = MatMul(x, w)
  [act] r = LeakyRelu<alpha=ALPHA>(a)
  [out] y = MatMul(r, v)
}"""
for name, size in (("W", 36), ("V", 24)):
    NET = NET.replace(f"{{{name}}}", "{" + ", ".join(f"{each:.4f}" for each in RNG.standard_normal(size)) + "}")
OWN, OTHER = NET.replace("ALPHA", "0.01"), NET.replace("ALPHA", "0.2")
X = {"x": RNG.standard_normal((2, 6)).astype(np.float32)}


@pytest.fixture
def other(tmp_path):
    """Path of the network as the other side has it."""
    import onnx

    onnx.save(proto(OTHER), tmp_path / "other.onnx")
    return tmp_path / "other.onnx"


@pytest.fixture
def asked(investigate, compared, monkeypatch, tmp_path, other):  # noqa: F811
    register(monkeypatch, tmp_path, fed="wrongly_fed:WronglyFed")

    def ask(kind, **question):
        inv = investigate(proto(OWN), X)
        spec = dataclasses.replace(fed("none", other))
        inv = inv.about(dataclasses.replace(inv.question, **dict.fromkeys(question, spec)))
        confidence = UNDECIDED if kind is VerdictKind.INCONCLUSIVE else REFERENCE_OUTSIDE
        evidence = compared(inv).with_(concluded=Conclusion(kind, confidence, "so far"))
        return inv, meant_otherwise(inv, evidence).verdict

    return ask


def test_a_target_that_shows_outputs_alone_is_told_what_it_means_otherwise(asked, last_step):  # noqa: F811
    inv, verdict = asked(VerdictKind.INCONCLUSIVE, target=True)
    assert verdict.kind is VerdictKind.MODEL_CHANGED
    assert (
        "computes LeakyRelu 'act' as if alpha were 0.2, not 0.01: with that change, the model gives its numbers"
        in verdict.summary
    )
    assert "ONNX's specification agrees with the reference" in verdict.summary
    assert verdict.summary.endswith("set alpha=0.2 at 'act'")
    assert [each.node for each in verdict.culprits] == ["act"]
    assert last_step(inv).evidence["nodes"] == ["act"]


def test_a_reference_that_shows_outputs_alone_says_what_the_file_has_to(asked):
    _, verdict = asked(VerdictKind.COMPARISON_UNSOUND, reference=True)
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    assert "the file has to change: set alpha=0.2 at 'act'" in verdict.summary


def test_a_fault_of_another_kind_is_not_asked_about(asked, last_step):  # noqa: F811
    inv, verdict = asked(VerdictKind.NONDETERMINISTIC_RUN, target=True)
    assert verdict is None
    assert not inv.record.steps or last_step(inv).question != "does either side interpret an operator differently?"

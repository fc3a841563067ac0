"""What is said of a fault: the op, what is understood otherwise, with whom ONNX sides, and what to do."""

import dataclasses

import numpy as np
import onnx
import pytest

from investigations import compared, investigate, last_step  # noqa: F401 - fixtures
from models import of_message, proto
from registered_engines import register
from tensortriage.diagnose.state.confidence import FED_OTHERWISE, OBSERVED, REFERENCE_OUTSIDE, UNDECIDED
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
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


def test_another_network_is_what_is_left_of_a_program_that_nothing_explains(asked, other):
    onnx.save(proto(NET.replace("LeakyRelu<alpha=ALPHA>", "Sigmoid")), other)
    _, verdict = asked(VerdictKind.INCONCLUSIVE, target=True)
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "compare its file with --target-model" in verdict.summary


def test_a_scale_of_the_input_that_is_an_epsilon_as_well_is_not_sure(investigate, compared, monkeypatch, tmp_path):  # noqa: F811
    """A LayerNormalization of x / 10 with 1e-5 is, in every number, that of x with 1e-3."""
    register(monkeypatch, tmp_path, fed="wrongly_fed:WronglyFed")
    text = OWN.replace("LeakyRelu<alpha=0.01>(a)", "LayerNormalization<epsilon=EPSILON>(a, g)")
    text = text.replace("float[6,4] v", "float[6] g = {1,2,1,2,1,2}, float[6,4] v")
    onnx.save(proto(text.replace("EPSILON", "0.001")), tmp_path / "other.onnx")
    inv = investigate(proto(text.replace("EPSILON", "0.00001")), {"x": X["x"] / 30})
    inv = inv.about(dataclasses.replace(inv.question, target=fed("none", tmp_path / "other.onnx")))
    found = Conclusion(VerdictKind.COMPARISON_UNSOUND, FED_OTHERWISE, "fed x / 10")
    verdict = meant_otherwise(inv, compared(inv).with_(concluded=found)).verdict
    assert verdict.summary.startswith("fed x / 10. The same outputs come of another meaning: ")
    assert "as if epsilon were 0.001, not 1e-05" in verdict.summary
    assert verdict.confidence.real < 0.6


PADDED = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,2,6,6] x) => (float[1,2,6,6] y) <int64[8] around = {0,0,1,1,0,0,1,1}> {
  [act] r = Relu(x)
  [pad] p = Pad(r, around)
  [pool] m = AveragePool<kernel_shape=[3,3]>(p)
  [out] y = Tanh(m)
}"""
MERGED = PADDED.replace("[pad] p = Pad(r, around)", "").replace("3]>(p)", "3], pads=[1,1,1,1]COUNT>(r)")


@pytest.mark.parametrize(("count", "change"), [("", "removed"), (", count_include_pad=1", "removed"), ("", "weight")])
def test_an_op_of_a_file_that_stands_for_two_of_the_original_is_tried_on_the_file(
    investigate, compared, count, change  # noqa: F811
):  # fmt: skip
    """ONNX's Pad of zeros counts in the mean behind it; pads of an AveragePool do only with count_include_pad."""
    inv = investigate(proto(PADDED), {"x": RNG.standard_normal((1, 2, 6, 6)).astype(np.float32)})
    file = of_message(proto(MERGED.replace("COUNT", count)))
    evidence = compared(inv)
    first = Culprit("pad", "Pad", "p", reason="is missing", change=change)
    found = Conclusion(VerdictKind.MODEL_CHANGED, OBSERVED, "so far", culprits=[first])
    inv = inv.about(dataclasses.replace(inv.question, target_model=file))
    answer = meant_otherwise(inv, evidence.with_(concluded=found))
    if count or change == "weight":
        assert answer is None or answer.verdict is None
        return
    summary = answer.verdict.summary
    assert "the original computes AveragePool 'pool' as if count_include_pad were 1, not 0" in summary
    assert summary.endswith("the file gives its numbers. To make the file match, set count_include_pad=1 at 'pool'")
    assert [each.node for each in answer.verdict.culprits] == ["pool", "pad"]

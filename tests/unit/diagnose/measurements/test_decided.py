"""Decisions of the target: which are valid, what depends on them, and what is done where no output shows them."""

import numpy as np
import pytest

from tensortriage.compare.judgement.ranked import RankedComparison
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.diagnose.measurements.decided import Decided, follow, judge_decision, picks_of
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.setting import Floors
from tensortriage.model.inspect.decisions import Decision, DecisionKind

SHOWN = """g (float[2, 3] x) => (int64[2] label) {
    [scale] s = Tanh(x)
    [pick] label = ArgMax <axis: int = 1, keepdims: int = 0> (s)
}"""
HIDDEN = """g (float[1, 3] x) => (float[1, 1] y) {
    [scale] s = Tanh(x)
    [pick] label = ArgMax <axis: int = 1, keepdims: int = 1> (s)
    [take] y = GatherElements <axis: int = 1> (x, label)
}"""
ONLY_OUTPUTS = """
import numpy as np


class Net:
    def compile(self, model_path, options):
        return self

    def run(self, feed):
        return {{"label": np.array({label})}}
"""
TIED = np.float32([[0.1, 0.2, 0.2000001], [0.9, 0.3, 0.1]])


def followed(inv, outputs, *, asks=False):
    feed = inv.question.feeds[0]
    golden = inv.golden.outputs(feed)
    golden = {name: np.asarray(golden[name]) for name in outputs}
    ask = (inv.question.target, inv.model) if asks else None
    return follow(inv, feed, golden=golden, outputs=outputs, ask=ask)


@pytest.mark.parametrize(
    ("label", "mismatches", "ties"), [([2, 0], 0, 0), ([1, 0], 0, 1), ([0, 0], 1, 0), ([1, 1], 1, 1)]
)
def test_an_index_is_valid_where_its_score_may_be_the_best(investigate, label, mismatches, ties):
    found = followed(investigate(SHOWN, {"x": TIED}), {"label": np.array(label)})
    judged = found.fp32["label"]
    assert (judged.mismatches, judged.ties, judged.count) == (mismatches, ties, 2)
    assert found.behind == {"label": ("label",)}
    assert found.valid("label") is found.valid("label", rounded=True) is (mismatches == 0)
    assert found.worst("label") == ("label", found.target["label"])


@pytest.mark.parametrize(("label", "tie"), [([1, 0], True), ([0, 0], False)])
def test_a_reference_of_outputs_alone_may_pick_another_of_equals(investigate, tmp_path, label, tie):
    """Its scores are the model's; where its pick is none of the best, it may be no such model, and nothing follows."""
    path = tmp_path / "net.py"
    path.write_text(ONLY_OUTPUTS.format(label=label))
    inv = investigate(SHOWN, {"x": TIED}, reference=EngineSpec.parse(f"script:{path}:Net"), target="onnxruntime")
    found = followed(inv, {"label": np.array([2, 0])})
    assert (found is not None) is tie
    assert not tie or (found.valid("label") and found.fp32["label"].ties == 1)


def test_a_narrow_format_makes_ties_of_more(investigate):
    scores, other = np.float32([[0.5, 0.5001, 0.1]] * 2), {"label": np.array([0, 0])}
    found = followed(investigate(SHOWN, {"x": scores}, target="emulate:precision=fp16"), other)
    assert not found.valid("label")
    assert found.valid("label", rounded=True)  # fp16 has steps of 2^-12 there


def test_outputs_without_a_decision_are_not_followed(investigate):
    inv = investigate("g (float[2] x) => (float[2] y) { [work] y = Exp(x) }", {"x": np.float32([1, 2])})
    assert followed(inv, {"y": np.float32([1, 2])}) is None


def test_whole_numbers_are_compared_as_such(investigate):
    inv = investigate("g (int64[3] x) => (int64[1] y) { [pick] y = ArgMax(x) }", {"x": np.array([1, 3, 2])})
    assert followed(inv, {"y": np.array([1])}) is None


def test_a_decision_that_no_output_shows_is_asked_for(investigate):
    inv = investigate(HIDDEN, {"x": TIED[:1]}, target="faulty:kind=scale,node=scale,amount=1.0")
    outputs = {"y": TIED[:1, 2:]}
    assert followed(inv, outputs) is None  # nobody can be asked
    found = followed(inv, outputs, asks=True)
    assert found.behind == {"y": ("label",)}
    assert (found.fp32["label"].differing, error_of(found.metrics["y"])) == (0, 0.0)


def test_an_engine_that_does_not_answer_leaves_outputs_as_they_are(investigate):
    inv = investigate(HIDDEN, {"x": TIED[:1]}, target="faulty:kind=build-failure,node=scale")
    assert followed(inv, {"y": TIED[:1, 2:]}, asks=True) is None


def test_where_asking_moves_the_outputs_healthy_picks_are_tried(investigate):
    """The target picked the other of two ties; asked with marked values it picks as the reference does."""
    inv = investigate(HIDDEN, {"x": np.float32([[0.1, 0.2, 0.2]])})
    feed, outputs = inv.question.feeds[0], {"y": np.float32([[0.7]])}
    golden = {"y": np.asarray(inv.golden.outputs(feed)["y"])}
    asked = (inv.question.target, inv.model)
    picks = picks_of(inv, feed, ["y"], golden=golden, outputs=outputs, ask=asked)
    assert picks.unsure == ("label",)
    assert picks_of(inv, feed, ["y"], golden=golden, outputs=golden, ask=asked).unsure == ()
    found = follow(inv, feed, golden=golden, outputs=outputs, ask=asked)
    assert error_of(found.metrics["y"]) == pytest.approx(2.5, rel=1e-6)  # (0.7 - 0.2) / 0.2: no valid pick makes it


def test_what_follows_from_another_pick_is_compared_with_what_it_should_be(investigate):
    text = """g (float[1, 3] x) => (int64[1, 1] label, float[1, 1] y) <float[1, 3] w = {10, 20, 30}> {
        [pick] label = ArgMax <axis: int = 1, keepdims: int = 1> (x)
        [take] y = GatherElements <axis: int = 1> (w, label)
    }"""
    inv = investigate(text, {"x": TIED[:1]})
    other = {"label": np.array([[1]]), "y": np.float32([[20]])}
    found = followed(inv, other)
    assert error_of(found.metrics["y"]) == 0.0  # the reference has 30, and makes 20 of that pick
    assert found.behind["y"] == ("label",)
    wrong = followed(inv, {**other, "y": np.float32([[30]])})
    assert error_of(wrong.metrics["y"]) == pytest.approx(0.5)


def test_the_worst_decision_is_told_with_all_of_its_unit():
    judged = {
        "first": RankedComparison("indices", 10, 1, 0),
        "second": RankedComparison("indices", 10, 3, 2),
        "ranks": RankedComparison("ranks", 10, 2, 0),
    }
    found = Decided(judged, judged, {"y": tuple(judged)}, {}, Floors({}, {}, {}, ""))
    name, worst = found.worst("y")
    assert (name, worst.unit, worst.count, worst.mismatches, worst.ties) == ("second", "indices", 20, 4, 2)


@pytest.mark.parametrize(("ordered", "mismatches"), [(True, 2), (False, 0)])
def test_ranks_in_another_order_are_wrong_only_where_an_order_is_promised(ordered, mismatches):
    decision = Decision(DecisionKind.TOP_K, "node", "i", "s", axis=0, largest=True, ordered=ordered)
    scores, radii = {"s": np.float32([1, 5, 3])}, {"s": np.zeros(3)}
    found = judge_decision(decision, np.array([1, 2]), np.array([2, 1]), scores, radii)
    assert found.mismatches == mismatches

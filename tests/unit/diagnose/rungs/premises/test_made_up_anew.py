"""Data that we made up are never to blame: sizes that run are found, NaN and noise lead to others, or to a question."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.premises.comparable_outputs import compare_outputs, reference_is_sound
from tensortriage.diagnose.rungs.premises.made_up_anew import noisy_output, says_more_than_noise
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.candidates import candidates
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds

PADDED = """g (float[1, n] x) => (float[1, m] y) <int64[4] pads = {0, 0, 0, 32}> {
    y = Pad <mode: string = "reflect"> (x, pads)
}"""
UNRUN = PADDED.replace("32", "99999")
ROOT = "g (float[1, 8] x) => (float[1, 8] y) { [work] a = Neg(x) y = Sqrt(a) }"
ALWAYS = """g (float[1, 8] x) => (float[1, 8] y) { a = Sub(x, x) b = Div(a, a) y = Add(b, x) }"""


@pytest.fixture
def made_up(investigate):
    def asked(text, feed, **more):
        inv = investigate(text, feed, **more)
        random = tuple(Feed("random[0]", each.tensors, Origin.RANDOM) for each in inv.question.feeds)
        others = partial(candidates, inv.model, {})
        return inv.about(dataclasses.replace(inv.question, feeds=random, others=others))

    return asked


def test_a_size_that_runs_is_found_and_told(made_up, last_step):
    inv = made_up(PADDED, {"x": np.ones((1, 8), np.float32)})
    answer = reference_is_sound(inv, Evidence())
    assert answer.verdict is None
    (feed,) = answer.question.feeds
    assert feed.tensors["x"].shape[1] > 32
    assert last_step(inv).evidence["shapes"] == (f"x:[1,{feed.tensors['x'].shape[1]}]",)
    assert answer.question.input_paths == (feed.name,)
    (again,) = feeds(FeedRequest(paths=answer.question.input_paths), inv.model)  # as a command that is given has it
    np.testing.assert_array_equal(again.tensors["x"], feed.tensors["x"])


def test_where_no_size_runs_the_user_is_asked(made_up):
    inv = made_up(UNRUN, {"x": np.ones((1, 8), np.float32)})
    with pytest.raises(DataError, match=r"data are needed for x \[1, n\]") as caught:
        reference_is_sound(inv, Evidence())
    assert (caught.value.slug, caught.value.exit_code) == ("made-up-data-fail", 2)


def test_a_reference_that_fails_on_sound_data_is_to_blame(made_up):
    inv = made_up(
        ROOT, {"x": -np.ones((1, 8), np.float32)}, reference=EngineSpec.parse("faulty:kind=build-failure,node=work")
    )
    assert reference_is_sound(inv, Evidence()).verdict.kind is VerdictKind.COMPARISON_UNSOUND


def test_nan_leads_to_other_numbers_and_then_to_inconclusive(made_up):
    inv = made_up(ROOT, {"x": np.ones((1, 8), np.float32)})
    answer = reference_is_sound(inv, Evidence())
    if answer.verdict is None:  # zeros alone have no NaN there, and are constant
        assert np.all(answer.question.feeds[0].tensors["x"] <= 0)
    verdict = reference_is_sound(made_up(ALWAYS, {"x": np.ones((1, 8), np.float32)}), Evidence()).verdict
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "give real data" in verdict.summary


def test_noise_is_no_match(made_up):
    inv = made_up("g (float[1, 8] x) => (float[1, 8] y) { y = Neg(x) }", {"x": np.ones((1, 8), np.float32)})
    evidence = Evidence().with_(**compare_outputs(inv, Evidence()).findings)
    assert says_more_than_noise(inv, evidence).verdict is None
    (result,) = evidence.results
    for floor in (0.4, float("nan"), float("inf")):
        floors = dataclasses.replace(result.floors, fp32={"y": floor})
        noisy = dataclasses.replace(result, floors=floors)
        assert noisy_output(inv, floors) == "y"
        answer = says_more_than_noise(inv, evidence.with_(results=(noisy,)))
        assert answer.verdict is None
        assert answer.question.feeds[0].name == "random[0.1]"  # others are no noise
        given = tuple(dataclasses.replace(each, origin=Origin.REAL) for each in inv.question.feeds)
        real = inv.about(dataclasses.replace(inv.question, feeds=given, others=None))
        with_given = dataclasses.replace(noisy, feed=given[0])
        assert says_more_than_noise(real, evidence.with_(results=(with_given,))).verdict is None


QUIET = "g (float[1, 64] x) => (float[1, 64] y) <float t = {19.0}> { INSIDE d = Sub(a, t) y = Sigmoid(d) }"


@pytest.mark.parametrize(("op", "says_more"), [("a = Identity(x)", True), ("a = Tanh(x)", False)])
def test_an_error_within_noise_that_is_larger_than_the_signal_is_no_fault(made_up, op, says_more):
    """ONNX Runtime's Sigmoid of less than -17 is 0, that of other engines 1e-13: healthy, and noise."""
    inv = made_up(QUIET.replace("INSIDE", op), {"x": np.full((1, 64), -0.5, np.float32)})
    inv = inv.about(dataclasses.replace(inv.question, target=EngineSpec("float64")))
    evidence = Evidence().with_(**compare_outputs(inv, Evidence()).findings)
    (result,) = evidence.results
    assert result.errors["y"] >= 1.0
    assert result.passes
    answer = says_more_than_noise(inv, evidence)
    assert (answer.question is not None) is says_more
    if says_more:
        (again,) = feeds(FeedRequest(paths=answer.question.input_paths), inv.model)
        np.testing.assert_array_equal(again.tensors["x"], answer.question.feeds[0].tensors["x"])
    else:
        assert "healthy engines differ by more than all of output 'y'" in answer.verdict.summary
        seeded = inv.about(dataclasses.replace(inv.question, others=None))
        assert says_more_than_noise(seeded, evidence).verdict.kind is VerdictKind.INCONCLUSIVE

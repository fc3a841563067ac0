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
    assert last_step(inv).evidence["shapes"] == answer.question.input_paths == (f"x:[1,{feed.tensors['x'].shape[1]}]",)


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
        real = inv.about(dataclasses.replace(inv.question, others=None))
        assert says_more_than_noise(real, evidence.with_(results=(noisy,))).verdict is None

"""Is the target fed what it is given? Engines that change their input, show it or show outputs alone, or do not.

What is right follows from `wrongly_fed.CHANGES`; the network is a convolution of three channels whose weights differ,
so that no two changes have the same result.
"""

import dataclasses

import numpy as np
import pytest

from investigations import compared, investigate, last_step  # noqa: F401 - fixtures
from models import proto
from registered_engines import register
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.values.dtype import Precision
from tensortriage_feeds.rungs import another_input, as_given, fed_otherwise, fed_tensors
from wrongly_fed import fed

RNG = np.random.default_rng(3)
NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] image) => (float[1,5] y)
<float[5,3,3,3] w = {WEIGHTS}> {
  [conv] c = Conv<pads=[1,1,1,1]>(image, w)
  [act] r = Tanh(c)
  [pool] p = GlobalMaxPool(r)
  [flat] y = Flatten(p)
}""".replace("WEIGHTS", ", ".join(f"{number:.3f}" for number in RNG.standard_normal(135) / 3))
IMAGE = {"image": (0.2 + 0.6 * RNG.random((1, 3, 8, 8)) + 0.1 * np.arange(3).reshape(1, 3, 1, 1)).astype(np.float32)}


@pytest.fixture
def asked(investigate, compared, monkeypatch, tmp_path):  # noqa: F811
    register(monkeypatch, tmp_path, fed="wrongly_fed:WronglyFed")

    def ask(change, *, alone=False, feeds=1):
        inv = investigate(proto(NET), *[{"image": IMAGE["image"] * (1 + n / 7)} for n in range(feeds)])
        whole = inv.model.path if alone else ""
        inv = inv.about(dataclasses.replace(inv.question, target=fed(change, whole)))
        return inv, compared(inv)

    return ask


def test_what_is_fed_is_seen_and_told_with_what_undoes_it(asked, last_step):  # noqa: F811
    inv, evidence = asked("bgr")
    verdict = fed_otherwise(inv, evidence).verdict
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    assert "is fed another input: 'image' has its channels reversed" in verdict.summary
    assert verdict.summary.endswith("cure: image = image[:, ::-1]")
    step = last_step(inv)
    assert [each["kind"] for each in step.evidence["transforms"]] == ["channels-reversed"]
    assert step.evidence["after"] <= 1e-6 < 0.01 < step.evidence["before"]


def test_means_that_are_none_of_the_usual_are_fitted(asked, last_step):  # noqa: F811
    inv, evidence = asked("own-means")
    assert fed_otherwise(inv, evidence).verdict is not None
    (told,) = last_step(inv).evidence["transforms"]
    assert told["kind"] == "normalization"
    np.testing.assert_allclose(told["parameters"]["mean"], [0.1, -0.2, 0.3], atol=1e-4)
    np.testing.assert_allclose(told["parameters"]["deviation"], 0.8, rtol=1e-4)


def test_an_input_that_is_changed_in_no_known_way_still_explains_the_outputs(asked):
    inv, evidence = asked("waves")
    verdict = fed_otherwise(inv, evidence).verdict
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    assert "in no known way" in verdict.summary


def test_a_target_that_is_fed_right_is_not_accused(investigate, compared, last_step):  # noqa: F811
    inv = investigate(proto(NET), IMAGE, target="faulty:kind=scale,node=conv,amount=1.3")
    assert fed_otherwise(inv, compared(inv)).verdict is None
    assert last_step(inv).answer == "yes: to the last bit"


def test_an_engine_of_ours_is_not_asked(investigate, compared):  # noqa: F811
    inv = investigate(proto(NET), IMAGE)
    evidence = compared(inv)
    before = len(inv.record.steps)
    assert fed_otherwise(inv, evidence).verdict is None
    assert another_input(inv, evidence).verdict is None
    assert len(inv.record.steps) == before


@pytest.mark.parametrize(
    ("change", "kinds"), [("bgr", ["channels-reversed"]), ("bgr-bytes", ["channels-reversed", "scale"])]
)
def test_where_outputs_alone_are_seen_the_change_is_found_by_trying(asked, last_step, change, kinds):  # noqa: F811
    inv, evidence = asked(change, alone=True, feeds=2)
    assert fed_tensors(inv, evidence.feed) is None
    assert fed_otherwise(inv, evidence).verdict is None
    verdict = another_input(inv, evidence).verdict
    assert verdict.kind is VerdictKind.COMPARISON_UNSOUND
    told = last_step(inv).evidence["transforms"]
    assert [each["kind"] for each in told] == kinds
    if kinds[-1] == "scale":
        assert told[-1]["parameters"]["scale"] == [255.0]
    asked_before = inv.lab.tally.checks
    assert another_input(inv, evidence).verdict == verdict
    assert inv.lab.tally.checks == asked_before


def test_what_no_change_explains_is_told_as_such_and_remembered(asked, last_step, monkeypatch):  # noqa: F811
    monkeypatch.setattr("tensortriage_feeds.search.SECONDS", 0.05)
    inv, evidence = asked("waves", alone=True)
    assert another_input(inv, evidence).verdict is None
    answer = last_step(inv).answer
    assert answer.startswith("no: none of ")
    asked_before = inv.lab.tally.checks
    assert another_input(inv, evidence).verdict is None
    assert inv.lab.tally.checks == asked_before
    assert last_step(inv).answer == answer


def test_an_output_that_says_little_accuses_nobody(investigate, compared, monkeypatch, tmp_path):  # noqa: F811
    """Of one class, many inputs agree: that is chance."""
    register(monkeypatch, tmp_path, fed="wrongly_fed:WronglyFed")
    text = NET.replace("float[1,5] y", "int64[1] label").replace(
        "[flat] y = Flatten(p)", "[flat] y = Flatten(p)\n  [max] label = ArgMax<axis=1, keepdims=0>(y)"
    )
    inv = investigate(proto(text), IMAGE)
    inv = inv.about(dataclasses.replace(inv.question, target=fed("bgr", inv.model.path)))
    assert another_input(inv, compared(inv)).verdict is None


def test_a_spec_of_the_engine_is_one_of_anothers():
    assert str(fed("bgr")) == str(EngineSpec("fed", {"change": "bgr"}))


@pytest.mark.parametrize(("precision", "dtype"), [(Precision.FP16, np.float16), (Precision.FP32, np.float32)])
def test_an_engine_that_rounds_what_it_is_given_is_fed_that(precision, dtype):
    given = RNG.standard_normal((4, 64)).astype(np.float32)
    assert as_given(given, given.astype(dtype), precision)
    assert not as_given(given, (given * 1.02).astype(dtype), precision)
    assert not as_given(given, given[:, ::-1], precision)
    assert not as_given(np.array([1, 2]), np.array([1, 3]), precision)

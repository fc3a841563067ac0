"""How often a target is built again, and what is said of builds that agree, differ, or fail."""

import pytest

from diagnosing import CHAIN_FEED, softmax_chain
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.local_errors.wired_ops import Wired
from tensortriage.diagnose.rungs.variation import intermittent as module
from tensortriage.diagnose.rungs.variation.contradicted import AGAIN, contradicted
from tensortriage.diagnose.rungs.variation.intermittent import BUILDS_IN_DOUBT, QUESTION, build_to_build
from tensortriage.diagnose.rungs.variation.rebuilds import Build, first_build
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.search.statistics.repeats import MISSED

PLAIN = "onnxruntime:optimization=none"
FAULT = "faulty:kind=scale,node=softmax,amount=1.05"


@pytest.fixture
def asked(investigate, compared):
    def ask(target=PLAIN, **question):
        inv = investigate(softmax_chain(), CHAIN_FEED, target=target, **question)
        return inv, compared(inv)

    return ask


@pytest.fixture
def varying(asked, tmp_path):
    """Return a function that asks about an engine of two tactics, one of which is wrong for the softmax."""

    def ask(first=0, **question):
        draws = tmp_path / "draws"
        draws.write_text(str(first))  # the seed of the first build, counted up by every one
        return asked(f"varying:kind=scale,node=softmax,amount=1.05,tactics=2,draws={draws}", **question)

    return ask


def test_builds_like_the_first_exclude_a_fault_in_every_second():
    assert 0.5 ** (BUILDS_IN_DOUBT - 1) <= MISSED < 0.5 ** (BUILDS_IN_DOUBT - 2)


def test_an_engine_whose_builds_are_equal_is_not_built_again_while_it_is_right(asked):
    answer = build_to_build(*asked())
    assert (answer.verdict, answer.findings) == (None, {})


def test_as_many_builds_are_made_as_were_asked_for(asked, last_step):
    inv, evidence = asked(builds=2)
    answer = build_to_build(inv, evidence)
    assert (answer.verdict, answer.findings["builds_compared"], answer.findings["builds_choose"]) == (None, 3, ())
    assert last_step(inv).answer == "yes: the outputs of 3 builds are bit-equal"
    assert last_step(inv).evidence["failing"] == 0


@pytest.mark.parametrize(("seconds", "builds"), [(5.0, BUILDS_IN_DOUBT), (0.0, 2)])
def test_an_engine_that_is_wrong_is_built_again_as_long_as_that_is_cheap(
    asked, last_step, monkeypatch, seconds, builds
):
    monkeypatch.setattr(module, "CHEAP_SECONDS", seconds)
    monkeypatch.setattr(module, "TIME_SHARE", 0.0)
    inv, evidence = asked(FAULT)
    answer = build_to_build(inv, evidence)
    assert answer.verdict is None
    assert last_step(inv).evidence["failing"] == last_step(inv).evidence["builds"] == builds
    build_to_build(inv, evidence)
    assert last_step(inv).evidence["builds"] == builds  # what was decided is remembered


def test_an_engine_that_says_its_builds_are_the_same_and_is_wrong_is_built_once_more(asked, last_step, monkeypatch):
    monkeypatch.setattr(module, "builds_vary", lambda inv: False)
    inv, evidence = asked(FAULT)
    build_to_build(inv, evidence)
    assert last_step(inv).evidence["builds"] == 2


@pytest.mark.parametrize(
    ("moved", "ran", "problem", "equal"),
    [
        (0.0, (), "", True),
        (1e-7, (), "", False),
        (None, (), "it failed", False),
        (0.0, (("softmax", "another kernel"),), "", False),
    ],
)
def test_builds_are_equal_whose_bits_and_plans_are(asked, moved, ran, problem, equal):
    inv, evidence = asked(FAULT)
    plan = first_build(inv, evidence).features
    assert module._all_equal(inv, evidence, [Build(None, moved, (*plan, *ran), problem=problem)]) is equal


def test_builds_that_differ_by_chance_are_compared(asked, last_step):
    inv, evidence = asked("faulty:kind=nondeterministic,node=softmax", builds=1)
    build_to_build(inv, evidence)
    assert last_step(inv).answer.startswith("no: 2 builds differ by")
    assert last_step(inv).answer.endswith("and all fail")
    inv, evidence = asked("faulty:kind=nondeterministic,node=softmax,amount=1e-7", builds=1)
    build_to_build(inv, evidence)
    assert last_step(inv).answer.startswith("nearly: 2 builds differ by")


def test_builds_of_which_some_fail_are_the_verdict_with_what_they_run(varying, last_step):
    inv, evidence = varying(builds=5)
    answer = build_to_build(inv, evidence)
    assert answer.verdict.kind is VerdictKind.INTERMITTENT
    assert answer.verdict.culprits[0].node == "softmax"
    step = next(each for each in inv.record.steps if each.question == QUESTION)
    assert 0 < step.evidence["failing"] < step.evidence["builds"] == 6
    assert step.evidence["different_plans"] > 1
    assert step.evidence["differing_regions"]
    assert answer.verdict.next[-1].startswith("triage debug build ")
    assert answer.findings["builds_compared"] == 6


def test_a_target_that_does_not_run_any_more_is_not_understood(asked, investigate, last_step):
    _, evidence = asked()
    refusing = investigate(softmax_chain(), CHAIN_FEED, target="faulty:kind=build-failure,node=tanh", builds=1)
    answer = build_to_build(refusing, evidence)
    assert (answer.verdict, answer.findings) == (None, {})
    assert last_step(refusing).answer.startswith("unknown: ")


def test_an_op_that_is_right_alone_contradicts_the_failure(asked, last_step):
    inv, evidence = asked(f"{FAULT},fused_with=tanh")
    local = local_errors(inv, evidence.feed)
    answer = contradicted(inv, evidence.with_(local=local))
    assert answer.findings["builds_compared"] == 4  # four failures and three passes: 0.8 % at any rate
    assert last_step(inv).answer == "yes: in all of 4; asked because every op is right alone, in all of 3 builds"
    assert (
        contradicted(inv, evidence.with_(local=local, builds_compared=BUILDS_IN_DOUBT)).findings["builds_compared"] == 8
    )
    assert last_step(inv).answer.endswith("in all of 2 builds")


def test_outputs_that_are_right_once_every_tensor_is_marked_contradict_it_too(asked):
    inv, evidence = asked(FAULT)
    golden = inv.golden.outputs(evidence.feed)["y"]
    right = {"y": measure(golden, golden)}
    answer = contradicted(inv, evidence.with_(in_context=right))
    assert answer.verdict.kind is VerdictKind.INTERMITTENT  # marked again, they are wrong
    words = "with every tensor marked the outputs are right in 1 of 2 builds"
    step = next(each for each in inv.record.steps if each.question == AGAIN)
    assert step.answer == f"unknown: in all of 4, but {words}"
    assert words in answer.verdict.summary


def test_builds_in_doubt_of_which_some_fail_are_the_verdict(varying):
    inv, evidence = next(each for each in map(varying, range(10)) if not each[1].worst_feed.passes)
    golden = inv.golden.outputs(evidence.feed)["y"]
    answer = contradicted(inv, evidence.with_(in_context={"y": measure(golden, golden)}))
    assert answer.verdict.kind is VerdictKind.INTERMITTENT
    assert answer.findings["builds_compared"] == 4


def test_without_a_contradiction_nothing_is_built(asked):
    inv, evidence = asked(FAULT)
    before, golden = inv.lab.tally.builds, inv.golden.outputs(evidence.feed)["y"]
    right = {"y": measure(golden, golden)}
    piece = Wired(("tanh", "softmax"), {"s": 0.05}, 1e6)
    other, of_other = asked(f"{FAULT},fused_with=tanh")
    fused = local_errors(other, of_other.feed)
    for known in (
        evidence,
        evidence.with_(in_context={"y": measure(golden, golden * 2)}),  # wrong when marked, too
        evidence.with_(in_context={"s": right["y"]}),  # nothing is known of the outputs
        evidence.with_(local=local_errors(inv, evidence.feed)),  # an op is wrong alone
        evidence.with_(local=fused, wrong_together=(piece,)),  # that is why every op is right alone
        evidence.with_(in_context=right, local=fused),  # asked about before
    ):
        assert contradicted(inv, known).verdict is None
    given, _ = asked(FAULT, builds=1)  # the user says how many
    assert contradicted(given, evidence.with_(in_context=right)).verdict is None
    assert given.lab.tally.builds <= before + 1


@pytest.mark.parametrize(("amount", "kind"), [(1.0, VerdictKind.INTERMITTENT), (0.01, None)])
def test_builds_that_all_fail_with_other_numbers_are_the_verdict_where_most_of_the_signal_differs(asked, amount, kind):
    inv, evidence = asked(f"faulty:kind=nondeterministic,node=softmax,amount={amount}", builds=3)
    answer = build_to_build(inv, evidence)
    found = answer.verdict.kind if answer.verdict else None
    assert (found, answer.findings.get("builds_fail", False)) == (kind, kind is not None)
    if answer.verdict:
        assert answer.verdict.summary.startswith("every build of the same model gives other numbers: 4 builds differ")

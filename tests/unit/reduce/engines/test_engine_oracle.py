"""Does a piece fail as the whole does? The faults are planted; the model is made of multiples, so errors are known."""

import dataclasses
import math

import numpy as np
import pytest

import running
from models import parse
from registered_engines import register
from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.reduce.engines.engine_oracle import EngineOracle
from tensortriage.reduce.engines.sample import GoldenSample, golden_pieces
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.pieces.piece_search import Search
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.search.problem import CandidateOutcome
from tensortriage.search.statistics.repeats import Repeats
from tensortriage.values.store import MemoryStore

SAME, OTHER, PASS, UNRESOLVED = CandidateOutcome
TEXT = """g (float[2] x) => (float[2] y, float[2] z) <float two = {2.0}> {
    [a] p = Neg(x)
    [b] q = Mul(p, two)
    [c] y = Add(p, q)
    [d] z = Abs(q)
}"""
DOUBLED = "kind=scale,node=b,amount=2"
"""q is -4x, y -5x instead of -3x, z 4x instead of 2x: relative errors of 1, 2/3 and 1."""
FLOATS = {"small": {"x": np.float32([1, 3])}, "large": {"x": np.float32([100, 300])}}
WHOLE = ("a", "b", "c", "d")


@pytest.fixture
def oracle_of(tmp_path, monkeypatch):
    """Return what makes an oracle about a fault."""
    register(monkeypatch, tmp_path, faulty="tensortriage_testing:FaultyEngine")
    with Case(tmp_path / "case") as case, Lab(case) as lab:

        def make(fault, text=TEXT, feeds=FLOATS, limit=1e-3, hidden=(), **given):
            model = parse(text)
            samples = []
            for name, tensors in feeds.items():
                golden, _ = running.record(model, tensors)
                kept = {n: a for n, a in golden.items() if n in markable(model) and n not in hidden}
                samples.append(GoldenSample(Feed(name, tensors, Origin.REAL), MemoryStore(kept)))
            return EngineOracle(
                pieces=golden_pieces(model, tuple(samples)),
                samples=tuple(samples),
                reference=PLAIN,
                target=EngineSpec.parse(f"faulty:{fault}"),
                judge=OutputJudge(None, lambda: dict.fromkeys("yz", limit), narrow=True),
                lab=lab,
                identity=repr((fault, text, given)),
                **given,
            )

        yield make


def expecting(oracle):
    """Let an oracle look for the failure of the whole."""
    oracle.expected = oracle.failure(oracle.pieces.items)
    return oracle


def test_the_failure_of_the_whole_is_told_by_output_and_feed(oracle_of):
    oracle = oracle_of(DOUBLED)
    found = oracle.failure(WHOLE)
    errors = pytest.approx({"y": 2 / 3, "z": 1.0})
    assert (found.kind, found.output, found.influence) == (FailureKind.WRONG, "z", 1.0)
    assert found.influences == {"small": errors, "large": errors}


def test_pieces_with_the_fault_fail_alike_and_the_others_pass(oracle_of):
    oracle = oracle_of(DOUBLED)
    search = Search(
        pieces=oracle.pieces, oracle=oracle, identity=lambda: "this", cache=oracle.lab.case.checks,
        repeats=Repeats(premise=2),
    )  # fmt: skip
    assert search.run().kept == ("b",)
    assert oracle.expected.influence == 1.0
    outcomes = {piece: oracle(piece, 0).outcome for piece in (("b",), ("a",), ("c", "d"), ("a", "b"), ("b", "d"))}
    assert [piece for piece, outcome in outcomes.items() if outcome is PASS] == [("a",), ("c", "d")]
    failure = oracle.failure(("b",))
    assert (failure.value, failure.error, failure.output) == ("q", 1.0, "y")  # 2/3 is as much of y's


def test_a_whole_within_its_limit_passes_and_tells_how_near_it_was(oracle_of):
    oracle = oracle_of(DOUBLED, limit=1.5)
    verdict = oracle(WHOLE, 0)
    assert verdict.outcome is PASS
    assert oracle.closest == (1.0, "z")
    assert "'z'" in verdict.detail
    assert oracle_of("kind=scale,node=b,amount=1")(WHOLE, 0).detail == verdict.detail.replace("100 % at", "0 at")


def test_only_an_output_above_its_limit_fails(oracle_of):
    oracle = oracle_of(DOUBLED, limit=0.8)
    assert oracle.failure(WHOLE).influences["small"] == {"z": 1.0}


def test_another_kind_of_failure_than_wanted_is_another_one(oracle_of):
    assert oracle_of(DOUBLED, wanted=FailureKind.SHAPE)(WHOLE, 0).outcome is OTHER
    assert oracle_of(DOUBLED, wanted=FailureKind.WRONG)(WHOLE, 0).outcome is SAME


def test_an_error_less_than_a_tenth_as_large_is_not_the_same(oracle_of):
    oracle = oracle_of(DOUBLED)
    for whole, outcome in ((9.0, SAME), (11.0, PASS)):
        influences = {name: {"z": whole} for name in FLOATS}
        oracle.expected = Failure(FailureKind.WRONG, influence=whole, influences=influences)
        assert oracle(("b",), 0).outcome is outcome


def test_what_other_nodes_carry_on_is_looked_at_inside_the_piece(oracle_of):
    """The end of b and c is y; that the whole fails at z shows in q, which d reads outside."""
    oracle = oracle_of(DOUBLED)
    oracle.expected = Failure(FailureKind.WRONG, influence=1.0, influences={name: {"z": 1.0} for name in FLOATS})
    assert oracle(("b", "c"), 0).outcome is SAME
    assert oracle(("c",), 0).outcome is PASS


def test_numbers_that_are_not_finite_fail_wherever_they_show(oracle_of):
    oracle = expecting(oracle_of("kind=nan,node=b"))
    assert oracle.expected.kind is FailureKind.NON_FINITE
    found = oracle.failure(("b",))
    assert (found.kind, found.value, found.error, found.output) == (FailureKind.NON_FINITE, "q", math.inf, "")
    assert oracle(("b",), 0).outcome is SAME


@pytest.mark.parametrize("node", ["b", "d"])
def test_another_shape_fails_inside_and_at_the_outputs(oracle_of, node):
    oracle = oracle_of(f"kind=shape,node={node}")
    if node == "d":
        whole = oracle.failure(WHOLE)
        assert (whole.kind, whole.value, whole.output, whole.influence) == (FailureKind.SHAPE, "z", "z", math.inf)
    found = oracle.failure((node,))
    assert (found.kind, found.error, found.sample) == (FailureKind.SHAPE, math.inf, "small")
    assert [expecting(oracle)((piece,), 0).outcome for piece in (node, "a")] == [SAME, PASS]


def test_an_engine_that_refuses_fails_with_its_words(oracle_of):
    oracle = expecting(oracle_of("kind=build-failure,node=b"))
    assert oracle.expected.kind is FailureKind.BUILD_FAILED
    assert oracle.expected.message
    assert [oracle((piece,), 0).outcome for piece in "bc"] == [SAME, PASS]


PICKS = """g (int64[1] x) => (float[1] y) <float[4] w = {1, 2, 3, 4}> {
    [double] i = Add(x, x)
    [pick] y = Gather(w, i)
}"""
WHOLES = {"first": {"x": np.int64([0])}, "second": {"x": np.int64([1])}}


def test_a_run_that_fails_names_its_sample(oracle_of):
    found = oracle_of("kind=scale,node=double,amount=9", PICKS, WHOLES).failure(("double", "pick"))
    assert (found.kind, found.sample) == (FailureKind.RUN_FAILED, "second")  # 18 is no place; nine times 0 is one


def test_values_on_which_the_reference_fails_are_wrong_however_much(oracle_of):
    found = oracle_of("kind=scale,node=double,amount=9", PICKS, WHOLES).failure(("double",))
    assert (found.kind, found.value, found.error, found.sample) == (FailureKind.WRONG, "i", 1.0, "second")


def test_a_piece_that_no_golden_value_feeds_is_unresolved(oracle_of):
    verdict = oracle_of(DOUBLED, hidden={"p"})(("b",), 0)
    assert verdict.outcome is UNRESOLVED
    assert "'p'" in verdict.detail


def test_an_output_without_golden_value_is_not_judged(oracle_of):
    assert set(oracle_of(DOUBLED, hidden={"z"}).failure(WHOLE).influences["small"]) == {"y"}


def test_what_the_judge_excuses_does_not_fail_alike(oracle_of):
    oracle = expecting(oracle_of(DOUBLED))
    oracle.judge = dataclasses.replace(oracle.judge, limits={"y": 2.0, "z": 2.0})
    assert oracle(("b",), 0).outcome is PASS

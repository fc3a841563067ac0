"""The search for the smallest piece, with oracles that know the answer."""

import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.pieces.piece_search import Search, candidate_key
from tensortriage.reduce.pieces.pieces import Ends, Pieces
from tensortriage.runs.check_cache import CheckCache
from tensortriage.search.problem import CandidateOutcome, OracleVerdict
from tensortriage.search.search_result import SearchBudget

TEXT = """g (float[2] x) => (float[2] y) {
    [a] p = Relu(x) [b] q = Neg(p) [c] r = Abs(q) [d] s = Exp(r) [e] y = Neg(s)
}"""
SAME, PASS = OracleVerdict(CandidateOutcome.SAME, "wrong"), OracleVerdict(CandidateOutcome.PASS)


class Oracle:
    """Fails on pieces that hold all of some nodes."""

    def __init__(self, *needed):
        self.needed, self.asked, self.premise = set(needed), [], None

    def __call__(self, candidate, attempt):
        self.asked.append(candidate)
        return SAME if self.needed <= set(candidate) else PASS

    def expect(self, runs):
        self.premise = runs[0].signature


def pieces(**given):
    model = models.parse(TEXT)
    return Pieces(model, specs=value_specs(model), **given)


@pytest.fixture
def cache(tmp_path):
    made = CheckCache(tmp_path / "checks.sqlite")
    yield made
    made.close()


def search(oracle, cache, **given):
    return Search(pieces=pieces(), oracle=oracle, identity=lambda: "model and engine", cache=cache, **given)


def test_the_smallest_piece_is_found_and_nothing_is_asked_again(cache):
    oracle = Oracle("b", "d")
    found = search(oracle, cache)
    assert found.run().kept == ("b", "d")
    assert oracle.premise == "wrong"
    again = Oracle("b", "d")
    assert search(again, cache).run().kept == ("b", "d")
    assert again.asked == []


def test_other_questions_have_other_answers(cache):
    search(Oracle("b"), cache).ask(("b",))
    other = Oracle("c")
    assert Search(pieces=pieces(), oracle=other, identity=lambda: "another", cache=cache).ask(("b",)) == PASS
    assert other.asked == [("b",)]


def test_a_whole_that_does_not_fail_is_an_error(cache):
    with pytest.raises(UsageError) as caught:
        search(Oracle("none of them"), cache).run()
    assert caught.value.slug == "premise-not-failing"


def test_suspected_nodes_are_asked_about_first(cache, tmp_path):
    def first_hit(name, suspicion):
        oracle = Oracle("d")
        own = CheckCache(tmp_path / name)
        search(oracle, own).run(lambda: suspicion)
        own.close()
        return next(number for number, asked in enumerate(oracle.asked) if asked == ("d",))

    assert first_hit("told", {"d": 9.0}) <= first_hit("untold", {})


def test_how_the_whole_fails_is_known_before_anything_is_suspected(cache):
    seen, oracle = [], Oracle("b")
    found = search(oracle, cache, observe=seen.append)
    at = []
    found.run(lambda: at.append((oracle.premise, len(seen))) or {})
    assert at == [("wrong", 3)]
    assert [progress.checks for progress in seen] == [*range(1, len(seen) + 1)]


def test_an_interrupted_premise_is_no_beginning(cache):
    def interrupting(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(Oracle("b"), cache, observe=interrupting).run()


def test_the_budget_ends_it(cache):
    found = search(Oracle("b", "d"), cache, budget=SearchBudget(checks=4))
    assert len(found.run().kept) > 2


def test_a_check_that_fails_on_everything_is_an_error(cache):
    found = search(Oracle(), cache)
    with pytest.raises(UsageError) as caught:
        found.refuse_constant_answers(found.run())
    assert caught.value.slug == "check-always-fails"


def test_a_check_that_passes_on_a_stranger_is_none(cache):
    oracle = Oracle("a", "b", "c", "d", "e")
    found = search(oracle, cache)
    found.refuse_constant_answers(found.run())


def test_keys_are_those_of_the_nodes_in_the_piece():
    both, kept = pieces(), pieces(ends=Ends.KEEP_INPUTS)
    assert candidate_key("i", both, ("b",)) != candidate_key("i", both, ("a", "b"))
    assert candidate_key("i", both, ("b",)) != candidate_key("j", both, ("b",))
    assert candidate_key("i", kept, ("b",)) == candidate_key("i", kept, ("a", "b"))
    assert candidate_key("i", both, ("a\0b",)) != candidate_key("i", both, ("a", "b"))

"""How often a candidate is asked about, and what is remembered of it: oracles that fail by plan."""

import pytest

from tensortriage.errors import UsageError
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.answers.query_runner import QueryRunner
from tensortriage.search.answers.search_record import SearchRecord, StoppedError
from tensortriage.search.dialogue import Ask, Care
from tensortriage.search.execution.executors import InProcess
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.search_result import SearchBudget, SearchStop
from tensortriage.search.statistics.repeats import Repeats

SAME, OTHER, PASS, UNRESOLVED = (
    OracleVerdict(outcome, signature=outcome.value)
    for outcome in (CandidateOutcome.SAME, CandidateOutcome.OTHER, CandidateOutcome.PASS, CandidateOutcome.UNRESOLVED)
)
ITEMS = tuple(range(4))


def begun(oracle, *, budget=None, repeats=None):
    """Return a runner about four items, and the questions that reach the oracle."""
    asked = []

    def told(candidate, attempt):
        asked.append((candidate, attempt))
        return oracle(candidate, attempt)

    problem = SearchProblem(ITEMS, told, key=repr)
    answers = AnswerCache(InProcess(told), None, repr)
    runner = QueryRunner(SearchRecord(problem, answers, budget or SearchBudget()), repeats or Repeats())
    return runner, asked


def verdicts(runner, *candidates, care=Care.QUICK):
    return runner.answer(Ask(tuple(map(frozenset, candidates)), care), iter(()), checks_left=0.0)


def every_other(candidate, attempt):
    return SAME if attempt % 2 else PASS


def test_a_whole_that_always_fails_is_asked_three_times_and_everything_else_once():
    runner, asked = begun(lambda candidate, attempt: SAME if 2 in candidate else PASS)
    runner.premise()
    assert (runner.rate.always, runner.false_pass) == (True, 0.0)
    assert asked == [(ITEMS, 0), (ITEMS, 1), (ITEMS, 2)]
    assert verdicts(runner, {0, 1}, {2, 3}) == (PASS, SAME)
    assert asked[3:] == [((0, 1), 0), ((2, 3), 0)]
    assert runner.record.best == frozenset({2, 3})
    assert runner.confidence is None


def test_what_passed_once_is_confirmed_as_often_as_excludes_luck_at_any_rate():
    """Four failures, then two lucky passes: p^4 (1 - p)^2 is 2.2 % at most, at p = 2/3; with one pass 8.2 %."""
    runner, asked = begun(lambda candidate, attempt: SAME if {0, 1} <= set(candidate) else PASS)
    runner.premise()
    verdicts(runner, {0, 1})
    verdicts(runner, {0, 1}, care=Care.MEASURE)
    del asked[:]
    assert verdicts(runner, {0}, {1}, care=Care.SURE) == (PASS, PASS)
    assert asked == [((0,), 0), ((1,), 0), ((0,), 1), ((1,), 1)]
    assert runner.confidence == pytest.approx(1 - 16 / 729, abs=1e-4)


def test_what_passes_although_a_part_of_it_fails_is_asked_again_at_once():
    """Nodes 0 and 1 pass the first time by chance."""
    runner, asked = begun(lambda c, attempt: SAME if 0 in c and (c != (0, 1) or attempt) else PASS)
    runner.premise()
    assert verdicts(runner, {0, 1}, {2, 3}) == (PASS, PASS)
    assert verdicts(runner, {0}) == (SAME,)
    assert asked[5:7] == [((0,), 0), ((0, 1), 1)]
    assert not runner.rate.always
    assert runner.repeats == 1


def test_a_cut_that_hides_the_fault_each_time_is_told_from_chance():
    runner, asked = begun(lambda c, attempt: SAME if 0 in c and c != (0, 1) else PASS)
    runner.premise()
    verdicts(runner, {0, 1})
    for part in ({0}, {0, 2}, {0, 3}):
        verdicts(runner, part)
    assert [attempt for candidate, attempt in asked if candidate == (0, 1)] == [0, 1, 2]  # it is 2 of 2 at 4 in 5
    assert runner.repeats == 2
    assert runner.rate.always


def test_a_fault_that_was_taken_for_steady_by_luck_is_measured_once_it_shows():
    """Node 1 is not needed; without it the fault hides in the first run only."""
    hides = {(0,): 1}
    runner, _ = begun(lambda c, attempt: SAME if 0 in c and attempt >= hides.get(c, 0) else PASS)
    runner.premise()
    verdicts(runner, {0, 1})
    verdicts(runner, {0, 1}, care=Care.MEASURE)
    assert verdicts(runner, {0}, {1}, care=Care.SURE)[0] == SAME
    assert not runner.rate.always
    assert runner.confidence is None


def test_a_fault_that_comes_and_goes_is_measured_and_asked_about_more_often():
    runner, asked = begun(every_other, repeats=Repeats(premise=2, measure=8))
    runner.premise()
    assert (runner.rate.failed, runner.rate.runs) == (4, 8)
    del asked[:]
    assert verdicts(runner, {1, 2}) == (SAME,)
    assert [attempt for _, attempt in asked] == [0, 1]  # it ends with the first failure


def test_enough_passes_are_seen_before_one_is_believed():
    """At a rate of 1/2 a chance below 5 % takes 5 runs: 2^-5 = 3.1 %, 2^-4 = 6.3 %."""
    runner, asked = begun(lambda c, attempt: every_other(c, attempt) if 2 in c else PASS, repeats=Repeats(2, 8))
    runner.premise()
    del asked[:]
    assert verdicts(runner, {0, 1}) == (PASS,)
    assert len(asked) == 5


def test_final_answers_are_new_runs_and_give_a_confidence():
    """Of 4 failures in 8 runs Clopper's and Pearson's bound is 0.157: 22 passes are below half of the 5 % risk."""
    runner, asked = begun(lambda c, attempt: every_other(c, attempt) if 2 in c else PASS, repeats=Repeats(2, 8))
    runner.premise()
    verdicts(runner, {0, 1})
    quick = len(asked)
    verdicts(runner, {0, 1}, care=Care.SURE)
    new = asked[quick:]
    assert [attempt for _, attempt in new] == list(range(5, 5 + 22))
    assert 0.9 < runner.confidence < 1.0
    verdicts(runner, {2, 3})
    assert runner.confidence is None  # something smaller fails: it must be told anew


def test_what_cannot_be_told_is_not_asked_again():
    runner, asked = begun(lambda candidate, attempt: SAME if len(candidate) == 4 and attempt else UNRESOLVED)
    runner.premise()
    del asked[:]
    assert verdicts(runner, {0}) == (UNRESOLVED,)
    assert len(asked) == 1


def test_another_failure_is_kept_in_its_smallest_form():
    runner, _ = begun(lambda candidate, attempt: SAME if len(candidate) == 4 else OTHER)
    runner.premise()
    verdicts(runner, {0, 1, 2}, {1, 2}, {0, 1, 3})
    assert runner.record.others["other"].candidate == (1, 2)
    assert runner.record.best == frozenset(ITEMS)


def test_what_is_known_of_single_removals():
    runner, _ = begun(lambda candidate, attempt: SAME if 2 in candidate else PASS)
    runner.premise()
    verdicts(runner, {0, 1, 2}, {0, 1, 3}, {2})
    assert runner.record.removals(frozenset(ITEMS)) == {2: PASS, 3: SAME}
    assert runner.record.verdict(frozenset({1})) is None


@pytest.mark.parametrize(("verdict", "slug"), [(PASS, "premise-not-failing"), (UNRESOLVED, "premise-unresolved")])
def test_a_whole_that_does_not_fail_is_an_error(verdict, slug):
    runner, _ = begun(lambda candidate, attempt: verdict)
    with pytest.raises(UsageError) as caught:
        runner.premise()
    assert caught.value.slug == slug


def test_the_budget_of_checks_is_not_exceeded():
    runner, _ = begun(lambda candidate, attempt: SAME, budget=SearchBudget(checks=4))
    runner.premise()
    with pytest.raises(StoppedError) as caught:
        verdicts(runner, {0, 1}, {2, 3})
    assert caught.value.stop is SearchStop.CHECK_BUDGET
    assert len(runner.record.history) == 4
    assert runner.record.best == frozenset({0, 1})

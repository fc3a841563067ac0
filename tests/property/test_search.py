"""Whatever the fault does, the result of a search fails the same way and no single item of it can be spared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_oracles import Memory, chain, fault, problem_of
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.dialogue import Minimality
from tensortriage.search.driver import TO_BLOCKS, TO_ITEMS, minimize
from tensortriage.search.execution.executors import InProcess
from tensortriage.search.passes.deletion import one_minimal
from tensortriage.search.search_result import SearchBudget, SearchStop
from tensortriage.search.statistics.repeats import Repeats

SHARES = st.sampled_from([0.0, 0.1, 0.5, 0.9])
PASSES = st.sampled_from([TO_ITEMS, (one_minimal,)])


@st.composite
def problems(draw, rates=(1.0,)):
    items = draw(st.integers(1, 40))
    cores = draw(st.lists(st.sets(st.integers(0, items - 1), min_size=1, max_size=5), min_size=1, max_size=4))
    oracle = fault(
        *cores,
        items=items,
        hiding=draw(SHARES),
        unresolved=draw(SHARES),
        other=draw(SHARES),
        rate=draw(st.sampled_from(rates)),
    )
    some = st.dictionaries(st.integers(0, items - 1), st.floats(1e-3, 1e3), max_size=5)
    how = {"weights": draw(some), "suspicion": draw(some)}
    if draw(st.booleans()):
        how["neighbours"] = chain(items).__getitem__
    return problem_of(oracle, items, **how)


def verdicts(result):
    return (result.kept, result.verdict, result.minimality, result.block_items, result.removals, result.others)


@settings(deadline=None)
@given(problem=problems(), passes=PASSES)
def test_the_result_fails_and_every_removal_was_seen_not_to(problem, passes):
    result = minimize(problem, passes=passes)
    assert problem.oracle(result.kept, 0).same
    assert result.minimality is Minimality.ONE_MINIMAL
    for item in result.kept if len(result.kept) > 1 else ():
        rest = tuple(other for other in result.kept if other != item)
        assert not result.removals[item].same
        assert result.removals[item] == problem.oracle(rest, 0)


@settings(deadline=None)
@given(core=st.sets(st.integers(0, 59), min_size=1, max_size=6), passes=PASSES, suspects=st.sets(st.integers(0, 59)))
def test_a_monotone_fault_with_one_core_gives_that_core(core, passes, suspects):
    problem = problem_of(fault(core, items=60), 60, suspicion=dict.fromkeys(suspects, 1.0))
    assert set(minimize(problem, passes=passes).kept) == core


@settings(deadline=None, max_examples=50)
@given(problem=problems())
def test_no_block_of_a_block_minimal_result_can_be_spared(problem):
    result = minimize(problem, passes=TO_BLOCKS)
    assert problem.oracle(result.kept, 0).same
    assert result.minimality in (Minimality.BLOCK_MINIMAL, Minimality.ONE_MINIMAL)


@settings(deadline=None, max_examples=50)
@given(problem=problems(rates=(0.3, 0.6, 0.9)), premise=st.integers(8, 20))
def test_a_fault_that_comes_and_goes_is_never_lost(problem, premise):
    repeats = Repeats(premise=premise, measure=6, limit=10)
    if not any(problem.oracle(problem.items, attempt).same for attempt in range(premise)):
        return
    result = minimize(problem, repeats=repeats)
    assert any(problem.oracle(result.kept, attempt).same for attempt in range(40))
    assert result.confidence is None or 0.0 <= result.confidence <= 1.0


@settings(deadline=None, max_examples=50)
@given(problem=problems(rates=(0.6, 1.0)), data=st.data())
def test_stopped_anywhere_it_goes_on_to_the_same_result_without_repeating_a_check(problem, data):
    repeats = Repeats(premise=8, measure=4, limit=6)
    if not any(problem.oracle(problem.items, attempt).same for attempt in range(8)):
        return
    done = minimize(problem, repeats=repeats)
    checks = data.draw(st.integers(8, done.checks))
    cache = Memory()
    part = minimize(
        problem, repeats=repeats, answers=AnswerCache.of(problem, cache), budget=SearchBudget(checks=checks)
    )
    assert part.stop is (SearchStop.CHECK_BUDGET if checks < done.checks else SearchStop.FINISHED)
    assert problem.oracle(part.kept, 0).same or problem.oracle.rate < 1.0
    rest = minimize(problem, repeats=repeats, answers=AnswerCache.of(problem, cache))
    assert rest.cache_hits == checks
    assert not cache.twice
    assert verdicts(rest) == verdicts(done)


class Anyhow(InProcess):
    """Has room for several checks at once, and answers them in an order of its own."""

    def __init__(self, oracle, room, order):
        super().__init__(oracle)
        self.room = room
        self.order = order

    def idle(self):
        return self.room - len(self._queue)

    def wait(self):
        self._queue.rotate(self.order.randrange(len(self._queue)))
        return super().wait()


@pytest.mark.lengthy
@settings(deadline=None, max_examples=20)
@given(problem=problems(rates=(0.6, 1.0)), room=st.integers(1, 6), order=st.randoms(use_true_random=False))
def test_parallel_checks_give_the_result_of_serial_ones(problem, room, order):
    repeats = Repeats(premise=8, measure=4, limit=6)
    if not any(problem.oracle(problem.items, attempt).same for attempt in range(8)):
        return
    serial = minimize(problem, repeats=repeats)
    executor = Anyhow(problem.oracle, room, order)
    parallel = minimize(problem, repeats=repeats, answers=AnswerCache.of(problem, executor=executor))
    assert verdicts(parallel) == verdicts(serial)
    assert parallel.checks == serial.checks

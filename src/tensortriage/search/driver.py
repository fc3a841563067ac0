"""Runs a search: is the premise true, then pass by pass, each check once, until done or out of budget.

A search is a deterministic function of the answers to its questions. That one property gives the rest: a killed search
resumes by asking the same questions again and finding the answers in the cache; parallel checks change when answers
come and never which ones are used; and there is no seed, since nothing is random.
"""

import dataclasses
from collections.abc import Callable, Sequence

from tensortriage.errors import UsageError
from tensortriage.search.answers.answer_cache import AnswerCache
from tensortriage.search.answers.query_runner import QueryRunner
from tensortriage.search.answers.search_record import SearchRecord, StoppedError
from tensortriage.search.answers.speculation import converse
from tensortriage.search.dialogue import Dialogue, Minimality, Pass, SearchState
from tensortriage.search.passes.deletion import block_minimal, one_minimal, sweep
from tensortriage.search.passes.prefix_search import narrow
from tensortriage.search.problem import SearchProblem, T
from tensortriage.search.search_result import Progress, SearchBudget, SearchResult, SearchStop
from tensortriage.search.statistics.repeats import Repeats

TO_ITEMS = (narrow, sweep, one_minimal)
"""Passes to a result in which every single item is needed."""
TO_BLOCKS = (narrow, block_minimal)
"""Passes to a result in which every block is needed: for faults that need many items, when checks are expensive."""


def minimize(
    problem: SearchProblem[T],
    *,
    answers: AnswerCache[T] | None = None,
    budget: SearchBudget | None = None,
    repeats: Repeats | None = None,
    passes: Sequence[Pass[T]] = TO_ITEMS,
    observe: Callable[[Progress[T]], None] | None = None,
) -> SearchResult[T]:
    """Find a smallest subset that still fails the same way.

    The empty subset is never tested. Ctrl-C and the budget end the search with the smallest subset found so far.

    Args:
        problem: Items and oracle.
        answers: Runs checks and stores their answers, so that none is ever made twice; by default the problem's oracle
            in this thread, without a store.
        budget: Limits of the search; none by default.
        repeats: Number of runs per candidate.
        passes: Passes to run, in this order.
        observe: Receives every answer.

    Raises:
        UsageError: When the whole does not fail (``premise-not-failing``), that is unresolved (``premise-unresolved``),
            or the budget does not reach that far (``search-budget-too-small``).

    Example:
        >>> from tensortriage.search.problem import CandidateOutcome, SearchProblem, OracleVerdict
        >>> def oracle(candidate, attempt):
        ...     return OracleVerdict(CandidateOutcome.SAME if {3, 7} <= set(candidate) else CandidateOutcome.PASS)
        >>> result = minimize(SearchProblem(tuple(range(100)), oracle, key=repr))
        >>> result.kept, result.minimality.value
        ((3, 7), 'one-minimal')
    """
    record = SearchRecord(problem, answers or AnswerCache.of(problem), budget or SearchBudget(), observe)
    runner = QueryRunner(record, repeats or Repeats())
    try:
        runner.premise()
    except (StoppedError, KeyboardInterrupt) as error:
        stop = _stop(error, runner)
        if stop is not SearchStop.INTERRUPTED:
            _premised(problem, runner)
        return _result(problem, runner, None, stop)
    problem, false_pass = _premised(problem, runner), runner.false_pass  # of the premise, always

    def begin() -> SearchState[T]:
        return SearchState(problem, problem.whole, false_pass=false_pass)

    state, stop = begin(), SearchStop.FINISHED
    try:
        converse(
            _talk(state, passes),
            lambda ask, ahead: runner.answer(ask, ahead, checks_left=state.checks_left),
            lambda: _talk(begin(), passes),
            runner.expect,
        )
    except (StoppedError, KeyboardInterrupt) as error:
        stop = _stop(error, runner)
    return _result(problem, runner, state, stop)


def _premised(problem: SearchProblem[T], runner: QueryRunner[T]) -> SearchProblem[T]:
    """Return the problem with the suspicion that follows from how the whole failed."""
    if problem.premised is None:
        return problem
    with runner.record.suspecting():
        suspicion = problem.premised(runner.record.runs[problem.whole])
    return dataclasses.replace(problem, suspicion=suspicion, premised=None)


def _talk(state: SearchState[T], passes: Sequence[Pass[T]]) -> Dialogue[T]:
    for one in passes:
        yield from one(state)


def _stop(error: StoppedError | KeyboardInterrupt, runner: QueryRunner[T]) -> SearchStop:
    """Return why a search ended early; without anything that fails there is no result to give."""
    if isinstance(error, StoppedError):
        if runner.record.best is None:
            raise UsageError(
                f"the budget ended before the whole model failed once ({len(runner.record.history)} checks)",
                slug="search-budget-too-small",
                cure="allow more checks or more time",
            ) from error
        return error.stop
    if runner.record.best is None:
        raise error
    return SearchStop.INTERRUPTED


def _result(
    problem: SearchProblem[T], runner: QueryRunner[T], state: SearchState[T] | None, stop: SearchStop
) -> SearchResult[T]:
    """Assemble the result: the passes' final subset, or the smallest failing one when they were cut short."""
    kept = runner.record.best or problem.whole
    shown = Minimality.BUDGET
    if state is not None and (stop is SearchStop.FINISHED or problem.size(state.current) <= problem.size(kept)):
        kept, shown = state.current, state.minimality
    verdict = runner.record.verdict(kept)
    assert verdict is not None  # nothing is kept that was not asked about
    ordered = problem.ordered(kept)
    proven = shown is not Minimality.BUDGET
    trivial = len(kept) == 1 and not runner.rate.always
    return SearchResult(
        kept=ordered,
        verdict=verdict,
        minimality=shown,
        block_items=state.block_items if state is not None and shown is Minimality.BLOCK_MINIMAL else 0,
        stop=stop,
        removals=runner.record.removals(kept),
        checks=len(runner.record.history) - runner.repeats,
        repeats=runner.repeats,
        candidates=sum(map(bool, runner.record.runs.values())),
        cache_hits=runner.record.cache_hits,
        seconds=runner.record.seconds,
        rate=runner.measured(kept),
        confidence=(1.0 if trivial else runner.confidence) if proven else None,
        history=tuple(runner.record.history),
        others=tuple(runner.record.others.values()),
    )

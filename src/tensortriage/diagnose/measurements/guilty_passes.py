"""The fewest optimizer passes by which a target is wrong, or refuses a model; found by group testing."""

from collections.abc import Callable, Sequence

from tensortriage.errors import UsageError
from tensortriage.runs.check_cache import digest
from tensortriage.search.driver import minimize
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.search_result import SearchBudget
from tensortriage.search.statistics.repeats import Repeats

MOST_CHECKS = 40
"""Builds of the whole model that group testing over passes may take."""


def guilty_passes(names: Sequence[str], right: Callable[[Sequence[str]], bool | None]) -> tuple[str, ...]:
    """Return the fewest passes that a target must have to be wrong; empty where leaving all out does not cure it.

    Args:
        names: The passes that may be to blame.
        right: Whether the target is right without some passes; None where that is not known.
    """
    if not names or not right(names):
        return ()

    def oracle(candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        del attempt
        answer = right([name for name in names if name not in candidate])
        return OracleVerdict(
            {True: CandidateOutcome.PASS, False: CandidateOutcome.SAME, None: CandidateOutcome.UNRESOLVED}[answer]
        )

    try:
        problem = SearchProblem(tuple(names), oracle, key=lambda candidate: digest("passes", candidate))
        return minimize(problem, repeats=Repeats(premise=1), budget=SearchBudget(checks=MOST_CHECKS)).kept
    except UsageError:
        return ()

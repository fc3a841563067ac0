"""Fusion breakers: the smallest set of tensors that, marked as outputs, make the target's answer right again.

A tensor that is an output must exist, so no engine can fuse across it. Marking it changes no number of the model; when
it changes the target's, the fusion across it is proven to be at fault, on the user's own deployed model.
"""

from collections.abc import Sequence

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.fusion.restored_answer import restored
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError, UsageError
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.runs.check_cache import digest
from tensortriage.search.driver import minimize
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, SearchProblem
from tensortriage.search.search_result import SearchBudget
from tensortriage.search.statistics.repeats import Repeats

MOST_CHECKS = 80
"""Builds of the whole model that the search for the smallest set of breakers may take; it keeps the best so far."""


def breakers(inv: Investigation, evidence: Evidence, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the fewest values that restore the answer on every feed when marked; empty when all of them do not.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        groups: Sets of values, one of which is likely enough, as those within one set of ops.
    """
    outputs = {spec.name for spec in inv.model.outputs}
    usable = [[value for value in group if value in {*inv.question.values} - outputs] for group in groups]
    usable = [group for group in usable if group]
    firsts, lasts = ([group[place] for group in usable] for place in (0, -1))
    for tried in (firsts, lasts, [value for group in usable for value in group]):
        items = tuple(dict.fromkeys(tried))
        if items and restores(inv, evidence, items):
            kept = fewest(inv, evidence, items)
            sure = all(restores(inv, evidence, kept, feed=number) for number in range(len(evidence.results)))
            return kept if sure else ()
    return ()


def fewest(inv: Investigation, evidence: Evidence, items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fewest of given values, which restore the answer together, that do so as well."""
    if len(items) == 1:
        return items

    def oracle(candidate: tuple[str, ...], attempt: int) -> OracleVerdict:
        del attempt  # one build is as good as another: a target that differs from run to run was told before
        return OracleVerdict(CandidateOutcome.SAME if restores(inv, evidence, candidate) else CandidateOutcome.PASS)

    inv.lab.progress(f"looking for the smallest set of {len(items)} tensors that restores the answer when marked")
    try:
        problem = SearchProblem(items, oracle, key=lambda candidate: digest("breakers", candidate))
        return minimize(problem, repeats=Repeats(premise=1), budget=SearchBudget(checks=MOST_CHECKS)).kept
    except UsageError:  # the answer of the premise has changed: what all do is still known
        return items


def restores(inv: Investigation, evidence: Evidence, values: Sequence[str], *, feed: int | None = None) -> bool:
    """Return whether marking some values restores the answer, on the feed that fails worst or on a certain one."""
    looked_into = evidence.feed if feed is None else evidence.results[feed].feed
    marked = mark_outputs(inv.model, values)
    try:
        return restored(inv, evidence, looked_into, model=marked, spec=inv.question.target)
    except EngineError:
        return False

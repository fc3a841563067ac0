"""Are results that vary from run to run now and then those of the feed before? Two feeds in turn show it.

One feed again and again shows no difference: what is left of the run before is what it should be.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tensortriage.diagnose.sdk import (
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    TriageError,
    VerdictKind,
    another_feed,
    enumeration,
    rung,
)
from tensortriage_feeds.arrays.numbers import CLEARER

QUESTION = "are results now and then those of the feed before?"
_RUNS = 40
"""Runs of two feeds in turn: one run of ten that goes wrong is missed in 1.5 % of sessions (0.9**40)."""
_CURE = (
    "wait until inputs are copied before a run (in the stream in which it computes), and until it has finished before "
    "its outputs are read"
)
_Values = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Late:
    """Runs whose results are those of the feed before.

    Attributes:
        outputs: The outputs; none where no run was of this kind.
        runs: How many.
    """

    outputs: tuple[str, ...] = ()
    runs: int = 0


@rung(
    QUESTION,
    reads=("concluded", "results"),
    cost=f"{_RUNS} runs of two feeds in turn, where runs of the target differ",
    ends=(VerdictKind.NONDETERMINISTIC_RUN, VerdictKind.INTERMITTENT),
    after="what is at fault?",
)
def feed_before(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell of runs that return what belongs to the feed before, where results vary by chance."""
    found = evidence.concluded
    if found is None or found.kind not in (VerdictKind.NONDETERMINISTIC_RUN, VerdictKind.INTERMITTENT):
        return None
    feed = evidence.worst_feed.feed if evidence.results else inv.question.feeds[0]
    try:
        other = another_feed(inv.model, feed, inv.question.feeds)
        if other is None:
            return None
        place = inv.lab.derived(Late, QUESTION, inv.question.target, inv.question.reference, inv.model, feed, other)
        late = place.of(lambda: _late(inv, (feed, other)))
    except TriageError:
        return None
    if not late.runs:
        inv.record.answered(QUESTION, f"no, in {_RUNS} runs of two feeds in turn")
        return None
    names = enumeration([f"'{name}'" for name in late.outputs])
    words = f"in {late.runs} of {_RUNS} runs of two feeds in turn, {names} equals that of the feed before"
    inv.record.answered(QUESTION, f"yes: {words}", outputs=list(late.outputs))
    return dataclasses.replace(
        found,
        summary=f"{inv.question.target} computes on, or returns, what is there of an earlier run: {words}, which the "
        f"reference {inv.question.reference} tells apart. Cure: {_CURE}",
        culprits=(),
    )


def _late(inv: Investigation, feeds: tuple[Feed, Feed]) -> Late:
    question = inv.question
    right = [inv.lab.outputs(question.reference, inv.model, feed) for feed in feeds]
    named, count = set[str](), 0
    with inv.lab.session(question.target, inv.model, sequence=True) as ask:
        for run in range(_RUNS):
            made = dict(ask(feeds[run % 2]))
            stale = _stale(made, right[run % 2], right[1 - run % 2]) if run else []
            named.update(stale)
            count += bool(stale)
    return Late(tuple(sorted(named)), count)


def _stale(made: _Values, right: _Values, before: _Values) -> list[str]:
    """Return the outputs that are a hundred times nearer to those of the feed before than to their own."""
    found = []
    for name, array in made.items():
        own, other = (np.asarray(of[name], np.float64) if name in of else np.empty(0) for of in (right, before))
        if own.shape != array.shape or other.shape != array.shape or not np.isfinite(array.astype(np.float64)).all():
            continue
        if np.linalg.norm(array - other) < np.linalg.norm(array - own) / CLEARER:
            found.append(name)
    return found

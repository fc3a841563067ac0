"""Are results that vary from run to run now and then those of the feed before? Two feeds in turn show it.

One feed again and again shows no difference: what is left of the run before is what it should be. A program that is
late is so for every op; an op that returns an earlier result has operands of this run in each run in which it does.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    Conclusion,
    Culprit,
    Evidence,
    Feed,
    Investigation,
    Model,
    TriageError,
    VerdictKind,
    another_feed,
    enumeration,
    rung,
)
from tensortriage.envelope.sdk import select_outputs
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
        by_op: The first op named so far, if it returns them: its operands are of their own feed in each such run.
    """

    outputs: tuple[str, ...] = ()
    runs: int = 0
    by_op: str = ""


@rung(
    QUESTION,
    reads=("concluded", "results"),
    cost=f"{_RUNS} runs of two feeds in turn, where runs of the target differ; as many with an op's operands marked",
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
        first = found.culprits[0] if found.culprits else None
        asked = (inv.question.target, inv.question.reference, inv.model, feed, other, first.node if first else "")
        late = inv.lab.derived(Late, QUESTION, *asked).of(lambda: _late(inv, (feed, other), first))
    except TriageError:
        return None
    if not late.runs:
        inv.record.answered(QUESTION, f"no, in {_RUNS} runs of two feeds in turn")
        return None
    names = enumeration([f"'{name}'" for name in late.outputs])
    words = f"in {late.runs} of {_RUNS} runs of two feeds in turn, {names} equals that of the feed before"
    if late.by_op:
        words += f", and the operands of {late.by_op} are those of its own feed: it is the op that is late"
        inv.record.answered(QUESTION, f"yes: {words}", outputs=list(late.outputs))
        return dataclasses.replace(found, summary=f"{found.summary}. {words[0].upper()}{words[1:]}")
    inv.record.answered(QUESTION, f"yes: {words}", outputs=list(late.outputs))
    return dataclasses.replace(
        found,
        summary=f"{inv.question.target} computes on, or returns, what is there of an earlier run: {words}, which the "
        f"reference {inv.question.reference} tells apart. Cure: {_CURE}",
        culprits=(),
    )


def _late(inv: Investigation, feeds: tuple[Feed, Feed], first: Culprit | None) -> Late:
    names = [spec.name for spec in inv.model.outputs]
    runs = [stale for stale in _turns(inv, inv.model, feeds) if stale]
    if not runs:
        return Late()
    by_op = f"{first.op_type} '{first.node}'" if first and _of_op(inv, feeds, first, names) else ""
    return Late(tuple(sorted(set().union(*runs))), len(runs), by_op)


def _of_op(inv: Investigation, feeds: tuple[Feed, Feed], culprit: Culprit, outputs: Sequence[str]) -> bool:
    """Return whether an op's result is late whenever an output is, and none of its operands, which are all seen."""
    graph = inv.model.graph
    if culprit.node not in graph:
        return False
    operands = {name for name in graph.node(culprit.node).inputs if graph.producer(name) is not None}
    if not operands or {spec.name for spec in inv.model.inputs}.intersection(graph.node(culprit.node).inputs):
        return False  # the input as the program copied it was not seen
    try:
        marked = select_outputs(inv.model, dict.fromkeys([*operands, culprit.value, *outputs]))
        if not operands <= {*inv.lab.outputs(inv.question.target, marked, feeds[0])}:
            return False
        late = [stale for stale in _turns(inv, marked, feeds) if stale & {*outputs}]
    except TriageError:
        return False
    return bool(late) and all(culprit.value in stale and not stale & operands for stale in late)


def _turns(inv: Investigation, model: Model, feeds: tuple[Feed, Feed]) -> Iterator[set[str]]:
    """Yield the outputs that are those of the feed before, run by run."""
    question = inv.question
    right = [inv.lab.outputs(question.reference, model, feed) for feed in feeds]
    with inv.lab.session(question.target, model, sequence=True) as ask:
        for run in range(_RUNS):
            made = dict(ask(feeds[run % 2]))
            yield {*_stale(made, right[run % 2], right[1 - run % 2])} if run else set()


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

"""Does a program that gives other results in every run feed its network other numbers in every run?

The memory of an input that was freed, or is written again before the run is over, holds what others put there. A model
that returns its inputs shows it, run after run; then no op is to blame.
"""

import dataclasses

import numpy as np

from tensortriage.diagnose.sdk import (
    Conclusion,
    Evidence,
    Feed,
    Investigation,
    NewNode,
    TriageError,
    VerdictKind,
    insert_node,
    is_foreign,
    rung,
    triage_command,
)
from tensortriage_feeds.rungs import as_given, fed_tensors

QUESTION = "does the target get equal inputs in every run?"
_TIMES = 8
"""Runs in which results are seen to stay: one of three that changes is missed in 4 % (0.67**8)."""
_CURE = (
    "keep the memory of the input alive, and unchanged, until the run is over (a tensor made of a buffer does not copy "
    "it)"
)


@rung(
    QUESTION,
    reads=("concluded", "results"),
    cost="two builds and three runs of models that return their input, where runs of a user's program differ",
    ends=(VerdictKind.NONDETERMINISTIC_RUN,),
    after="what is at fault?",
)
def changing_input(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell of an input whose numbers change from run to run, where results do."""
    found, target = evidence.concluded, inv.question.target
    if found is None or found.kind is not VerdictKind.NONDETERMINISTIC_RUN or not is_foreign(target.name):
        return None
    feed = evidence.worst_feed.feed if evidence.results else inv.question.feeds[0]
    try:
        runs = [fed_tensors(inv, feed, repetition=repetition) for repetition in (0, 1)]
    except TriageError:
        return None
    seen = [each for each in runs if each is not None]
    if len(seen) < len(runs):
        return None
    given = {name: np.asarray(feed.tensors[name]) for name in seen[0]}
    moved = [
        name for name, array in given.items() if any(not as_given(array, run[name], inv.precision) for run in seen)
    ]
    varies = [name for name in moved if not np.array_equal(seen[0][name], seen[1][name], equal_nan=True)]
    if not varies:
        inv.record.answered(QUESTION, "yes" if not moved else "yes, and others than it is given")
        return None
    name = varies[0]
    if not _returns_ones(inv, feed, name):
        inv.record.answered(QUESTION, "unknown: what it returns changes as well")
        return None
    words = (
        f"'{name}' has other numbers than it is given, and others in every run: {_which(given[name], seen[0][name])}"
    )
    inv.record.answered(QUESTION, f"no: {words}", inputs=varies)
    return dataclasses.replace(
        found,
        summary=f"{target} feeds its network other numbers in every run: {words}. Cure: {_CURE}",
        culprits=(),
        next=[triage_command(inv.question, "run", "--target", str(target))],
    )


def _returns_ones(inv: Investigation, feed: Feed, name: str) -> bool:
    """Return whether the exponential of an input less itself comes back as 1 every time: else results are changed."""
    model = inv.model
    for spec in model.outputs:
        model = insert_node(model, NewNode(op_type="Sub", inputs=[name, name], outputs=[spec.name]))
        if np.asarray(feed.tensors[name]).dtype.kind == "f":  # 0 shows no factor
            model = insert_node(model, NewNode(op_type="Exp", inputs=[spec.name], outputs=[spec.name]))
    expected = float(np.asarray(feed.tensors[name]).dtype.kind == "f")
    for repetition in range(_TIMES):
        try:
            shown = inv.lab.outputs(
                inv.question.target, model, feed, repetition=repetition, what="asking what becomes of outputs"
            )
        except TriageError:
            return False
        if any(np.any(np.asarray(array) != expected) for array in shown.values()):
            return False
    return True


def _which(given: np.ndarray, seen: np.ndarray) -> str:
    """Return which elements of an input have other numbers, by their place in memory."""
    if given.shape != seen.shape:
        return f"its shape is {list(seen.shape)}"
    unlike = np.flatnonzero(np.ravel(given) != np.ravel(seen))
    if len(unlike) == given.size:
        return "all of its values"
    first, last = int(unlike[0]), int(unlike[-1])
    place = f"the first {last + 1} values" if not first else f"values {first} to {last}"
    return f"{len(unlike):,} of {given.size:,}, among {place} of its memory"

"""Do outputs of one run lie in one memory, so that one overwrites another? A question about a user's program.

It is asked by the program's own arrays: those that overlap come back with their bits inverted. Overlapping alone is no
fault (an output may be a view of another); an output is wrong by it that holds the numbers of another one.
"""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from tensortriage.api import EngineSpec, Feed, Model
from tensortriage.diagnose.sdk import (
    OBSERVED,
    Conclusion,
    Evidence,
    Investigation,
    Lab,
    TriageError,
    VerdictKind,
    error_of,
    error_size,
    is_foreign,
    is_minor,
    measure,
    rung,
)
from tensortriage_feeds.transforms import Tensors

QUESTION = "do outputs of one run overwrite each other?"
SHARED = "shared"
"""The word of `tensortriage_worker.feeding` for results that lie in one memory."""
_BYTES = 64
"""So many bytes of one output are looked for in another one."""
_LEAST_KINDS = 5
"""Different bytes from which on numbers are not equal by chance."""


@dataclasses.dataclass(frozen=True, slots=True)
class Overwritten:
    """An output that holds the numbers of another.

    Attributes:
        output: Its name.
        by: The other.
        error: How far it is off.
    """

    output: str
    by: str
    error: float

    @property
    def words(self) -> str:
        """It as a clause."""
        return f"output '{self.output}' holds the numbers of '{self.by}', whose memory it shares"

    @property
    def cure(self) -> str:
        """The change that separates the outputs."""
        return f"return copies, e.g. '{self.output}': array.copy(), before '{self.by}' is written"


@rung(
    QUESTION,
    reads=("results",),
    cost="a run of the target, where a user's program has several outputs",
    ends=(VerdictKind.COMPARISON_UNSOUND,),
    after="are the outputs in the right order?",
)
def overwritten_outputs(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Tell of outputs of a user's program that lie in one memory, where that makes them wrong."""
    feed, target = evidence.worst_feed.feed, inv.question.target
    if not is_foreign(target.name) or len(inv.model.outputs) < 2:
        return None
    try:
        found = list(overwritten(inv.lab, inv.model, feed, inv.question.reference, target))
    except TriageError:
        return None
    inv.record.answered(QUESTION, f"yes: {found[0].words}" if found else "no")
    if not found:
        return None
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        OBSERVED,
        f"{target} returns outputs that overwrite each other: {'; '.join(each.words for each in found)}; "
        f"'{found[0].output}' is off by {error_size(found[0].error)}. Cure: {found[0].cure}",
    )


def overwritten(lab: Lab, model: Model, feed: Feed, reference: EngineSpec, target: EngineSpec) -> Iterator[Overwritten]:
    """Yield the outputs of a target that are wrong since they share memory with another one.

    Raises:
        TriageError: As `Lab.answer`.
    """
    right, made = (lab.outputs(engine, model, feed) for engine in (reference, target))
    names = [name for name, array in made.items() if name in right and right[name].shape == array.shape]
    errors = {name: error_of(measure(np.asarray(right[name]), np.asarray(made[name]))) for name in names}
    pairs = [
        (one, other)
        for one, other in itertools.permutations(names, 2)
        if errors[one] and is_minor(errors[other], errors[one])
        and _holds(made[one], made[other]) and not _holds(right[one], right[other])
    ]  # fmt: skip
    if not pairs:
        return
    inverted = lab.outputs(target, model, feed, layout=SHARED, repetition=None)
    told = set[str]()
    for one, other in sorted(pairs, key=lambda pair: errors[pair[1]]):
        if one not in told and all(_differ(made, inverted, name) for name in (one, other)):
            told.add(one)
            yield Overwritten(one, other, errors[one])


def _holds(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether, over a stretch of memory, both have the same bytes: one begins within the other."""
    first, second = np.asarray(one).tobytes(), np.asarray(other).tobytes()
    for outer, inner in ((first, second), (second, first)):
        at = outer.find(inner[:_BYTES])
        same = outer[at : at + len(inner)] if at >= 0 else b""
        if len(set(same)) >= _LEAST_KINDS and inner.startswith(same):
            return True
    return False


def _differ(made: Tensors, inverted: Tensors, name: str) -> bool:
    return np.asarray(made[name]).tobytes() != np.asarray(inverted[name]).tobytes()

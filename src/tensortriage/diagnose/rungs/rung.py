"""A rung of the ladder: a question with its title, what it reads of the evidence so far, and what it adds to that."""

import dataclasses
from collections.abc import Callable, Sequence

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict

Ask = Callable[[Investigation, Evidence], Verdict | None]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """One question of the ladder.

    Attributes:
        title: The question, for people.
        ask: Asks it; returns a verdict, or None to go on.
        reads: Fields of `Evidence` that the answer may depend on.
        gives: Fields of `Evidence` that it may fill.
    """

    title: str
    ask: Ask
    reads: frozenset[str]
    gives: frozenset[str]

    def __call__(self, inv: Investigation, evidence: Evidence) -> Verdict | None:
        """Ask the question."""
        return self.ask(inv, evidence)


def rung(title: str, *, reads: Sequence[str] = (), gives: Sequence[str] = ()) -> Callable[[Ask], Rung]:
    """Return a decorator that makes a rung of the function that asks a question.

    Args:
        title: The question.
        reads: Names of the fields of `Evidence` that the function reads.
        gives: Names of those that it fills.
    """
    return lambda ask: Rung(title, ask, frozenset(reads), frozenset(gives))

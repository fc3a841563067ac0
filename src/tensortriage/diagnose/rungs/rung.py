"""A rung of the ladder: a question with its title, the evidence that it reads, and the evidence that it adds."""

import dataclasses
from collections.abc import Callable, Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.questions.question import Question


@frozen_dataclass
class Answer:
    """The result of a rung.

    Attributes:
        verdict: The end of the diagnosis; None to go on.
        findings: Additions to the evidence.
        question: The question from here on; None for the one so far.
    """

    verdict: Conclusion | None = None
    findings: Findings = dataclasses.field(default_factory=Findings)
    question: Question | None = None


Ask = Callable[[Investigation, Evidence], Answer | Conclusion | None]


@frozen_dataclass(eq=False)
class Rung:
    """One question of the ladder.

    Attributes:
        title: The question, for people.
        ask: Asks it; returns its findings, or no more than a verdict, or None to go on.
        reads: Fields of `Evidence` that the answer may depend on.
        gives: Fields of `Evidence` that are among its findings.
        cost: The cost of the answer in addition to earlier questions, for people.
        ends: Verdicts that it may end with; none where it only adds to the evidence.
        after: Title of the preceding question, for a rung that another package registers.
    """

    title: str
    ask: Ask
    reads: frozenset[str]
    gives: frozenset[str]
    cost: str
    ends: tuple[VerdictKind, ...] = ()
    after: str = ""

    def __call__(self, inv: Investigation, evidence: Evidence) -> Answer:
        """Ask the question."""
        answer = self.ask(inv, evidence)
        return answer if isinstance(answer, Answer) else Answer(answer)


def rung(
    title: str,
    *,
    reads: Sequence[str] = (),
    gives: Sequence[str] = (),
    cost: str,
    ends: Sequence[VerdictKind] = (),
    after: str = "",
) -> Callable[[Ask], Rung]:
    """Return a decorator that makes a rung of the function that asks a question.

    Args:
        title: The question.
        reads: Names of the fields of `Evidence` that the function reads.
        gives: Names of those that it finds out.
        cost: The cost of the answer, for people.
        ends: Verdicts that it may end with.
        after: Title of the preceding question, where the ladder does not hold it by itself.
    """
    return lambda ask: Rung(title, ask, frozenset(reads), frozenset(gives), cost, tuple(ends), after)

"""Answers and verdicts from a stage of the judge's walk: its answer, and the verdict that no op is to blame."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.judging import Seen, judge_of
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.measurements.soundness import silent
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.rungs.rung import Answer
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN, Confidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.costs import of_freedoms
from tensortriage.envelope.explanations import Explanation, Held, Taken
from tensortriage.envelope.judge import Judge, Stage
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.text import error_size

READS, GIVES = ("results", "floors", "in_context", "local", "explained"), ("explained", "local")
"""Findings that every rung with a stage reads and gives."""


@frozen_dataclass
class Took:
    """A stage of the walk, run at a question of the ladder.

    Attributes:
        evidence: The evidence before the stage.
        judge: The judge that runs the stage.
        seen: The target's values.
        taken: The outcome of the stage.
        explains: Whether no output is left.
    """

    inv: Investigation
    evidence: Evidence
    question: str
    judge: Judge
    seen: Seen
    taken: Taken
    explains: bool

    @property
    def held(self) -> Held:
        """The set that decides."""
        return self.taken.tried[-1]

    @property
    def told(self) -> str:
        """Its rows in words, with the operators they concern."""
        return in_words(self.inv, self.held.explanations)

    def error(self, name: str) -> str:
        """Return how far off an output is, in words."""
        return error_size(self.evidence.worst_feed.errors[name])

    def predicted(self, name: str) -> str:
        """Return how far off it is predicted to be."""
        return error_size(self.held.predicted.get(name))

    def blameless(self, told: str, rest: str = "") -> str:
        """Return the summary that the answer explains the error, with further clauses."""
        name = self.held.worst
        return (
            f"no op is to blame: {told}; output '{name}' has relative error {self.error(name)}, predicted "
            f"{self.predicted(name)} ({self.held.gap}){rest}{self.avoiding}"
        )

    @property
    def avoiding(self) -> str:
        """Ways to avoid the error, as further clauses."""
        avoided = sorted({each.avoided for each in self.held.explanations if each.avoided})
        return "".join(f"; to avoid it, {words}" for words in avoided)

    def verdict(
        self, told: str, summary: str, *, sure: Confidence = FREEDOMS_EXPLAIN, next: Sequence[str] = (), **facts: object
    ) -> Conclusion | None:
        """Record an answer, and return the verdict where no output is left.

        Args:
            told: The answer; empty where it has none.
            summary: Summary of the verdict.
            sure: How sure it is.
            next: Commands that may follow in addition to the one that compares every tensor.
            facts: Evidence of the step in addition to predicted and measured errors.
        """
        if told:
            self.inv.record.answered(self.question, told, **facts_of(self.held, self.evidence.worst_feed), **facts)
        rows = [name for names in self.explained.values() for name in names]
        following = [layers_command(self.inv.question), *next]
        return rounding_verdict(self.inv, self.evidence, rows, sure, summary, following) if self.explains else None

    @property
    def explained(self) -> Mapping[str, tuple[str, ...]]:
        """Outputs that are explained so far, each with the rows that explain it."""
        return {**self.evidence.explained, **{name: each.by for name, each in self.taken.limits.items()}}


def take(inv: Investigation, evidence: Evidence, question: str, stage: Stage, seen: Seen | None = None) -> Took | None:
    """Take a stage of the walk for the outputs that are left.

    Args:
        inv: The investigation.
        evidence: The evidence so far.
        question: The question of the ladder.
        stage: The stage.
        seen: The target's values; None for those in the evidence.

    Returns:
        The outcome; None where there is nothing to take, and, which is recorded, where nothing can be evaluated.
    """
    seen = seen or Seen(inv, evidence.feed, inside=evidence.in_context or {}, local=evidence.local)
    judge = judge_of(inv, evidence.worst_feed, floors=evidence.floors, seen=seen)
    names = [name for name in judge.standing_out or judge.names if name not in evidence.explained]
    outcome = judge.take(stage, names)
    if not outcome.tried and outcome.problem:
        inv.record.answered(question, f"unknown: the model cannot be evaluated that way: {outcome.problem}")
    return (
        Took(inv, evidence, question, judge, seen, outcome, len(outcome.limits) == len(names))
        if outcome.tried
        else None
    )


def answer(took: Took, verdict: Conclusion | None) -> Answer:
    """Return a verdict with the outputs explained so far, and with the ops alone where they were measured."""
    return Answer(verdict, Findings(explained=took.explained, local=took.seen.local))


def facts_of(found: Held, result: FeedResult) -> dict[str, object]:
    """Return predicted and measured errors, as evidence of a step."""
    return {
        "freedoms": [each.name for each in found.explanations if each.cost is of_freedoms],
        "gap_db": dict(found.gaps),
        "predicted_error": {output: found.predicted.get(output, 0.0) for output in result.errors},
        "measured_error": dict(result.errors),
    }


def rounding_verdict(
    inv: Investigation,
    evidence: Evidence,
    allowed_by: Iterable[str],
    confidence: Confidence,
    summary: str,
    next: Sequence[str],
) -> Conclusion:
    """Return the verdict that no op is to blame, by the rows that allow the outputs' errors, if these say anything."""
    names, lost = tuple(dict.fromkeys(allowed_by)), evidence.worst_feed.lost
    said = Conclusion(VerdictKind.ROUNDING, confidence, summary, next=next, allowed_by=names, lost=lost)
    return said if lost else silent(inv) or said  # outputs of one value, but for rounding, say nothing


def in_words(inv: Investigation, freedoms: Sequence[Explanation]) -> str:
    """Return choices with the operators they concern: ``2 Conv and Gemm: sums kept in fp16, usual on GPUs``."""
    op_types = [node.op_type for node in inv.model.graph.nodes]
    rows = ((counted(kind for kind in op_types if kind in each.operators), each.words) for each in freedoms)
    return "; ".join(f"{ops}: {words}" if ops else words for ops, words in rows)


def counted(op_types: Iterable[str]) -> str:
    """Return operators with how many there are of each, the most frequent first: ``2 Conv and Gemm``."""
    kinds = Counter(op_types).most_common()
    return " and ".join(kind if count == 1 else f"{count} {kind}" for kind, count in kinds)

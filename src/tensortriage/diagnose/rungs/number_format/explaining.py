"""The walk over explanations: the first one under which the target is no farther off than a healthy engine may be.

What an explanation costs is predicted for outputs, and for what was seen inside the target's full run: a fault shows at
the value where it is made, where little error has piled up. A rung says which explanations it tries, and in which words
it tells what came of that.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from tensortriage.compare.judgement.relative_error import error_of, say_gap
from tensortriage.compare.judgement.within import Limit, prediction_gap_db, within_healthy, within_prediction
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN, Confidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.envelope.explanations import Explanation, ExplanationKind
from tensortriage.envelope.floors import cost_of_freedoms
from tensortriage.errors import EngineError, UsageError
from tensortriage.values.text import error_size

Together = tuple[Explanation, ...]
"""Explanations that an engine takes all at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """The target's error held against what explanations predict.

    Attributes:
        explanations: These.
        predicted: Relative error that they cost, by value.
        gaps: By how many dB outputs that fail exceed it.
        beyond: Outputs that exceed it by more than they may.
        inside: The first value inside that does, with its error and what it may be off by; None where none does.
    """

    explanations: Together
    predicted: Mapping[str, float]
    gaps: Mapping[str, float]
    beyond: Sequence[str]
    inside: tuple[str, float, Limit] | None = None

    @property
    def explains(self) -> bool:
        """Whether nothing is beyond."""
        return not self.beyond and self.inside is None

    @property
    def worst(self) -> str:
        """The output that exceeds what is predicted most."""
        return max(self.beyond or self.gaps, key=lambda name: self.gaps[name])

    @property
    def gap(self) -> str:
        """By how much it does, in words."""
        return say_gap(self.gaps[self.worst])

    @property
    def why_not(self) -> str:
        """What is beyond, in words; empty where nothing is."""
        if self.explains:
            return ""
        if self.inside is None:
            return f"output '{self.worst}' is {self.gap} against what that predicts"
        value, error, limit = self.inside
        return f"'{value}' inside is off by {error_size(error)}, at most {error_size(limit.error)} is expected"

    def facts(self, result: FeedResult) -> dict[str, object]:
        """Return the same as evidence of a step."""
        return {
            "freedoms": [each.name for each in self.explanations if each.kind is ExplanationKind.FREEDOM],
            "gap_db": dict(self.gaps),
            "predicted_error": {output: self.predicted.get(output, 0.0) for output in result.errors},
            "measured_error": dict(result.errors),
        }


Allows = Callable[[Metrics, float, float], bool]
"""Says whether an error of an output is what was predicted."""


def by_prediction(figure: Metrics, error: float, predicted: float) -> bool:
    """Say whether an output is no farther off than predicted, chance allowed for."""
    return within_prediction(prediction_gap_db(figure, error, predicted), figure.count)


def held(
    result: FeedResult,
    predicted: Mapping[str, float],
    explanations: Together = (),
    *,
    inside: tuple[str, float, Limit] | None = None,
    allows: Allows = by_prediction,
) -> Held:
    """Hold the outputs that fail against what explanations predict; `allows` says whether that is all of an error."""
    failing = [name for name, within in result.within.items() if not within]
    of = {name: (result.metrics[name], result.errors[name], predicted.get(name, 0.0)) for name in failing}
    gaps = {name: prediction_gap_db(*figures) for name, figures in of.items()}
    beyond = [name for name, figures in of.items() if not allows(*figures)]
    return Held(explanations, predicted, gaps, beyond, inside)


def seen_inside(evidence: Evidence) -> Mapping[str, Metrics]:
    """Return the figures of inner values of the target's full run that have a floor and are no exact types."""
    known = evidence.floors.fp32 if evidence.floors else {}
    return {v: figure for v, figure in (evidence.in_context or {}).items() if v in known and not figure.exact}


def first_inside(
    inv: Investigation, evidence: Evidence, predicted: Mapping[str, float]
) -> tuple[str, float, Limit] | None:
    """Return the first value inside that is farther off than healthy, with its error and its limit."""
    seen, floors = seen_inside(evidence), evidence.floors
    for value in inv.values:
        if value in seen and floors is not None:
            error, limit = error_of(seen[value]), floors.limit(value, seen[value].count, predicted.get(value))
            if not within_healthy(error, limit.error):
                return value, error, limit
    return None


def first_explaining(
    inv: Investigation, evidence: Evidence, question: str, tried: Iterable[Together], *, inside: bool
) -> Held | None:
    """Evaluate the model with sets of freedoms, until one explains the target's error.

    Args:
        inv: The investigation.
        evidence: What is known.
        question: Why that is asked.
        tried: The sets, those that allow least first.
        inside: Whether what was seen inside has to be explained as well.

    Returns:
        What came of the first set that explains, else of the last one; None, which is recorded, where the model cannot
        be evaluated.
    """
    result, seen = evidence.worst_feed, seen_inside(evidence) if inside else {}
    values = [value for value in inv.values if value in seen or value in result.errors]
    found = None
    for together in tried:
        try:
            predicted = cost_of_freedoms(
                inv.lab, inv.model, evidence.feed, values, freedoms=together, precision=inv.precision
            )
        except (EngineError, UsageError) as problem:
            inv.answered(question, f"unknown: the model cannot be evaluated that way: {problem.message}")
            return None
        first = first_inside(inv, evidence, predicted) if inside else None
        found = held(result, predicted, together, inside=first)
        if found.explains:
            break
    return found


def freedoms_explain(inv: Investigation, evidence: Evidence, found: Held, told: str, rest: str) -> Verdict:
    """Return the verdict that freedoms, told in words, explain the error; what else holds is put as further clauses."""
    name = found.worst
    avoided = sorted({each.avoided for each in found.explanations if each.avoided})
    return rounding_verdict(
        inv,
        FREEDOMS_EXPLAIN,
        f"no op is to blame: {told}; output '{name}' has relative error "
        f"{error_size(evidence.worst_feed.errors[name])}, predicted {error_size(found.predicted.get(name))} "
        f"({found.gap}){rest}" + "".join(f"; to avoid it, {words}" for words in avoided),
    )


def rounding_verdict(inv: Investigation, confidence: Confidence, summary: str, *further: str) -> Verdict:
    """Return the verdict that no op is to blame, with commands to run after the one that compares every tensor."""
    return inv.verdict(VerdictKind.ROUNDING, confidence, summary, next=[layers_command(inv), *further])


def in_words(inv: Investigation, freedoms: Sequence[Explanation]) -> str:
    """Return choices with the operators they concern: ``2 Conv and Gemm: sums kept in fp16, usual on GPUs``."""
    op_types = [node.op_type for node in inv.model.graph.nodes]
    told = ((counted(kind for kind in op_types if kind in each.operators), each.words) for each in freedoms)
    return "; ".join(f"{ops}: {words}" if ops else words for ops, words in told)


def counted(op_types: Iterable[str]) -> str:
    """Return operators with how many there are of each, the most frequent first: ``2 Conv and Gemm``."""
    kinds = Counter(op_types).most_common()
    return " and ".join(kind if count == 1 else f"{count} {kind}" for kind, count in kinds)

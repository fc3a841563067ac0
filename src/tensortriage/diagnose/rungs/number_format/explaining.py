"""What rungs say of the judge's answers: which explanations were tried, and the verdict that no op is to blame."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tensortriage.compare.judgement.within import is_lost
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.diagnose.measurements.suggested_commands import layers_command
from tensortriage.diagnose.state.confidence import FREEDOMS_EXPLAIN, Confidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.envelope.costs import of_freedoms
from tensortriage.envelope.explanations import Explanation
from tensortriage.envelope.judge import Held, Judge, Together
from tensortriage.errors import EngineError, UsageError
from tensortriage.values.text import error_size


def facts(found: Held, result: FeedResult) -> dict[str, object]:
    """Return what explanations predict beside what was measured, as evidence of a step."""
    return {
        "freedoms": [each.name for each in found.explanations if each.cost is of_freedoms],
        "gap_db": dict(found.gaps),
        "predicted_error": {output: found.predicted.get(output, 0.0) for output in result.errors},
        "measured_error": dict(result.errors),
    }


def first_explaining(inv: Investigation, judge: Judge, question: str, tried: Iterable[Together]) -> Held | None:
    """Evaluate the model with sets of freedoms, those that allow least first, until one explains the target's error.

    Returns:
        What came of the first set that explains, else of the last one; None, which is recorded, where the model cannot
        be evaluated.
    """
    found = None
    for together in tried:
        try:
            found = judge.held(together)
        except (EngineError, UsageError) as problem:
            inv.record.answered(question, f"unknown: the model cannot be evaluated that way: {problem.message}")
            return None
        if found.explains:
            break
    return found


def freedoms_explain(inv: Investigation, evidence: Evidence, found: Held, told: str, rest: str) -> Conclusion:
    """Return the verdict that freedoms, told in words, explain the error; what else holds is put as further clauses."""
    name = found.worst
    avoided = sorted({each.avoided for each in found.explanations if each.avoided})
    return rounding_verdict(
        inv,
        evidence,
        found.explanations,
        FREEDOMS_EXPLAIN,
        f"no op is to blame: {told}; output '{name}' has relative error "
        f"{error_size(evidence.worst_feed.errors[name])}, predicted {error_size(found.predicted.get(name))} "
        f"({found.gap}){rest}" + "".join(f"; to avoid it, {words}" for words in avoided),
        [layers_command(inv.question)],
    )


def rounding_verdict(
    inv: Investigation,
    evidence: Evidence,
    allowed_by: Together,
    confidence: Confidence,
    summary: str,
    next: Sequence[str],
) -> Conclusion:
    """Return the verdict that no op is to blame, by the explanations that allow what the outputs are off by."""
    names = tuple(each.name for each in allowed_by)
    lost = any(map(is_lost, evidence.worst_feed.errors.values()))
    return Conclusion(VerdictKind.ROUNDING, confidence, summary, next=next, allowed_by=names, lost=lost)


def in_words(inv: Investigation, freedoms: Sequence[Explanation]) -> str:
    """Return choices with the operators they concern: ``2 Conv and Gemm: sums kept in fp16, usual on GPUs``."""
    op_types = [node.op_type for node in inv.model.graph.nodes]
    told = ((counted(kind for kind in op_types if kind in each.operators), each.words) for each in freedoms)
    return "; ".join(f"{ops}: {words}" if ops else words for ops, words in told)


def counted(op_types: Iterable[str]) -> str:
    """Return operators with how many there are of each, the most frequent first: ``2 Conv and Gemm``."""
    kinds = Counter(op_types).most_common()
    return " and ".join(kind if count == 1 else f"{count} {kind}" for kind, count in kinds)

"""Was the model left in training mode? No engine is to blame for that, and engines that agree do not make it right."""

import dataclasses

from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.model.lint.training import in_training

_MOST = 20


def left_in_training(inv: Investigation, evidence: Evidence) -> None:
    """Record which nodes of the reference's model are in training mode; nothing when there is none."""
    since = inv.mark()
    evidence.in_training = in_training(inv.model)
    if not evidence.in_training:
        return
    first = evidence.in_training[0]
    inv.answered(
        "is the model meant for inference?",
        f"no: {_told(evidence)} {first.why}",
        since=since,
        nodes={finding.node: finding.slug for finding in evidence.in_training[:_MOST]},
        cure=first.cure,
    )


def with_training(evidence: Evidence, verdict: Verdict) -> Verdict:
    """Return a verdict that says which nodes of the model are in training mode."""
    if not evidence.in_training:
        return verdict
    words = f"the model itself was left in training mode: {_told(evidence)} {evidence.in_training[0].why}"
    return dataclasses.replace(verdict, summary=f"{verdict.summary}; {words}")


def _told(evidence: Evidence) -> str:
    first, more = evidence.in_training[0], len(evidence.in_training) - 1
    return f"{first.op_type} '{first.node}'" + (f" and {more} more:" if more else ":")

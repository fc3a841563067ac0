"""Was the model left in training mode? No engine is to blame for that, and engines that agree do not make it right."""

from collections.abc import Sequence

from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.model.lint.finding import LintFinding
from tensortriage.model.lint.training import in_training

QUESTION = "is the model meant for inference?"
_MOST = 20


@rung(QUESTION, gives=("in_training",), cost="nothing")
def left_in_training(inv: Investigation, _: Evidence) -> Answer | None:
    """Record which nodes of the reference's model are in training mode; nothing when there is none."""
    found = in_training(inv.model)
    if not found:
        return None
    first = found[0]
    inv.record.answered(
        QUESTION,
        f"no: {_told(found)} {first.why}",
        nodes={finding.node: finding.slug for finding in found[:_MOST]},
        cure=first.cure,
    )
    return Answer(findings=Findings(in_training=found))


def training_words(found: Sequence[LintFinding]) -> str:
    """Return which nodes of the model are in training mode, as a clause; empty when none is."""
    return f"the model itself was left in training mode: {_told(found)} {found[0].why}" if found else ""


def _told(found: Sequence[LintFinding]) -> str:
    first, more = found[0], len(found) - 1
    return f"{first.op_type} '{first.node}'" + (f" and {more} more:" if more else ":")

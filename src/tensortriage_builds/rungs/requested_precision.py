"""Does the target run in the requested precision? Its plan, read back, shows the format and the device.

Asked only where the plan costs no further build. The answer is no verdict: numbers decide. But a target that passes
because half of it fell back to the CPU, or runs in another format than requested, proves little about the device.
"""

from collections import Counter
from collections.abc import Iterable

from tensortriage.diagnose.sdk import EngineError, Evidence, Investigation, count, rung
from tensortriage.engines.sdk import TellsPlan
from tensortriage.envelope.sdk import resolve
from tensortriage.sdk import AuditedRegion, PlanAudit, PrecisionMatch, audit

QUESTION = "does the target run in the requested precision?"
MOST_NAMED = 4
"""Operators that are named; all regions are in `triage inspect plan`."""


@rung(QUESTION, cost="nothing new", after="at which shapes does it fail?")
def runs_as_asked(inv: Investigation, evidence: Evidence) -> None:
    """Record the target's plan of the deployed model, if it costs no build."""
    del evidence  # its outputs are not asked about
    target = inv.question.target
    engine = resolve(target).engine
    if not (isinstance(engine, TellsPlan) and engine.tells_plan(target.options)):
        return
    try:
        plan = inv.lab.plan(target, inv.model)
    except EngineError:
        return
    if plan is None:
        return
    answer, facts = summary(audit(plan, inv.model, target, engine))
    inv.record.answered(QUESTION, answer, **facts)


def summary(told: PlanAudit) -> tuple[str, dict[str, object]]:
    """Return the result of an audited plan, in words and as evidence of a step."""
    computing = [region for region in told.regions if region.match is not PrecisionMatch.NOT_JUDGED]
    elsewhere = [region for region in told.regions if region.fell_back]
    other = [region for region in computing if region.match.is_finding]
    where = f" on {told.device}" if told.device else ""
    problems = []
    if elsewhere:
        devices = " and ".join(dict.fromkeys(region.device for region in elsewhere))
        problems.append(f"{nodes_of(elsewhere)} run on {devices}, not{where}")
    for (wanted, built), _ in Counter((region.asked, region.built) for region in other).most_common():
        these = [region for region in other if (region.asked, region.built) == (wanted, built)]
        words = "requested" if told.requested else "in the model"
        problems.append(f"{nodes_of(these)} compute in {built}, {wanted} {words}")
    formats = Counter(region.built for region in computing)
    fine = f"yes: {count(len(told.regions), 'region')}{where}, {_computing(told.regions, formats)}"
    return "no: " + "; ".join(problems) if problems else fine, {
        "regions": len(told.regions),
        "formats": dict(formats),
        "fell_back": tuple(name for region in elsewhere for name in region.nodes),
        "other_format": tuple(name for region in other for name in region.nodes),
    }


def _computing(regions: Iterable[AuditedRegion], formats: Iterable[str]) -> str:
    """Return the formats of regions in words, unknown ones included."""
    if known := " and ".join(formats):
        return f"computing in {known}"
    if any(region.asked and not region.built for region in regions):
        return "in a format that the plan does not report"
    return "none of which computes in floating point"


def nodes_of(regions: Iterable[AuditedRegion]) -> str:
    """Return operators with how often they are in given regions: ``8 DequantizeLinear and 1 QuantizeLinear``."""
    kinds = Counter(kind for region in regions for kind in region.op_types)
    named = [f"{number} {kind}" for kind, number in kinds.most_common(MOST_NAMED)]
    more = len(kinds) - MOST_NAMED
    return " and ".join(named) + (f" and {more} more kinds" if more > 0 else "")

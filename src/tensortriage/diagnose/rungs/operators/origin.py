"""Where does a NaN or Inf originate, and is that op guilty or only the first victim of wrong operands?"""

from collections.abc import Sequence

from tensortriage.compare.nonfinite.arithmetic_rules import UNEXPLAINED
from tensortriage.diagnose.measurements.element_origins.provenance import explain, provenance
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.diagnose.measurements.nonfinite_values.nonfinite import born, nonfinite_alone, sources
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.rungs.fusion.fusion import fusion_fault
from tensortriage.diagnose.rungs.operators.blame import blame, misled
from tensortriage.diagnose.rungs.operators.deciding_element import MOST_STARTS, of_elements
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import (
    LEAST_BLAMED,
    NONFINITE_BORN,
    NONFINITE_BORN_ALONE,
    NONFINITE_MISLED,
    NONFINITE_UNBLAMED,
    blamed,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.model.ir.graph import Node

QUESTION = "where does the NaN or Inf originate?"


@rung(
    QUESTION,
    reads=(
        "results",
        "floors",
        "excess",
        "in_context",
        "in_context_judged",
        "local",
        "influence",
        "wrong_together",
        "explained",
    ),
    gives=("local", "influence"),
    cost="a build and a run of some ops",
    ends=(
        VerdictKind.NON_FINITE,
        VerdictKind.FUSION_FAULT,
        VerdictKind.LOCAL_FAULT,
        VerdictKind.RANGE_OVERFLOW,
        VerdictKind.ROUNDING,
    ),
)
def nonfinite(inv: Investigation, evidence: Evidence) -> Answer:
    """Where does the NaN or Inf originate that the reference does not have and the format does not explain?"""
    if not any(figure.nonfinite_mismatch for figure in evidence.worst_feed.metrics.values()):
        return Answer()
    figures = evidence.in_context or {}
    nodes = sources(inv.model.graph, figures, list(evidence.worst_feed.metrics))
    seen_in, confidence = "the instrumented run", NONFINITE_BORN
    if (answer := of_single_elements(inv, evidence, nodes)).verdict:
        return answer
    findings, whole_alone = Findings(), False
    how = provenance(inv, evidence, nodes, spec=inv.question.target, model=inv.model)
    if nodes and all(node.name in how and how[node.name].rule.rule == UNEXPLAINED for node in nodes):
        if (answer := only_together(inv, evidence, nodes)).verdict:
            return answer
        findings, evidence = answer.findings, evidence.with_(**answer.findings)
        whole_alone = evidence.local is not None and not any(n in nonfinite_alone(inv, evidence.local) for n in nodes)
    elif not nodes or any(misled(evidence, node) for node in nodes):
        try:
            local = evidence.local or local_errors(inv, evidence.feed)
        except EngineError as error:
            if not nodes:
                inv.record.answered(QUESTION, f"unknown: the exploded graph fails: {error.message}")
                return Answer()
            confidence = NONFINITE_MISLED
        else:
            findings, evidence = Findings(local=local), evidence.with_(local=local)
            alone = nonfinite_alone(inv, local)
            if nodes and not any(node in alone for node in nodes):
                return misled_origins(inv, evidence, nodes)
            nodes = [node for node in nodes if node in alone] or alone
            seen_in, confidence = "the exploded graph", NONFINITE_BORN_ALONE
    if not nodes:
        inv.record.answered(QUESTION, "unknown: it disappears when tensors are marked, and no op makes it in isolation")
        return Answer(findings=findings)
    how = provenance(inv, evidence, nodes, spec=inv.question.target, model=inv.model)
    culprits = [explain(inv, node, evidence.feed, evidence.excess, how.get(node.name)) for node in nodes]
    first, others = culprits[0], len(culprits) - 1
    independent = f", and in {others} other op{'s' * (others > 1)} independently" if others else ""
    inv.record.answered(
        QUESTION,
        f"in {first.op_type} '{first.node}', seen in {seen_in}{independent}",
        origins=[culprit.node for culprit in culprits][:20],
        rules={name: found.facts for name, found in how.items()},
        harmless=[node.name for node in born(inv.model.graph, figures) if node not in nodes][:20],
    )
    verdict = Conclusion(
        VerdictKind.NON_FINITE,
        confidence,
        f"NaN or Inf that the reference does not have originates in {first.op_type} '{first.node}'{independent}, which "
        f"{first.reason}{'; alone, on golden operands, it stays finite' if whole_alone else ''}",
        culprits=culprits,
        next=[reduce_command(inv.question), run_command(inv.question, "--validate")],
    )
    return Answer(verdict, findings)


def only_together(inv: Investigation, evidence: Evidence, nodes: Sequence[Node]) -> Answer:
    """Ops that make a NaN of operands that give no reason for it: do they make it alone, or only behind another op?"""
    try:
        local = evidence.local or local_errors(inv, evidence.feed)
    except EngineError:
        return Answer()
    evidence, findings = evidence.with_(local=local), Findings(local=local)
    alone = nonfinite_alone(inv, local)
    if any(node in alone for node in nodes):
        return Answer(findings=findings)
    first = nodes[0]
    inv.record.answered(
        QUESTION,
        f"in {first.op_type} '{first.name}', of operands that give no reason; alone, on golden ones, it stays finite",
        origins=[node.name for node in nodes][:20],
    )
    return Answer(fusion_fault(inv, evidence).verdict, findings)


def of_single_elements(inv: Investigation, evidence: Evidence, nodes: Sequence[Node]) -> Answer:
    """Ops whose operands are right as tensors may have been fed one wrong element: which op made it?"""
    fed_well = [node for node in nodes if not misled(evidence, node)][:MOST_STARTS]
    if not fed_well:
        return Answer()
    how = provenance(inv, evidence, fed_well, spec=inv.question.target, model=inv.model)
    return of_elements(inv, evidence, fed_well, {name: found.rule.sentence for name, found in how.items()})


def misled_origins(inv: Investigation, evidence: Evidence, nodes: Sequence[Node]) -> Answer:
    """Ops that make a NaN in the target's run, but not on golden operands: which op made their operands wrong?"""
    first = nodes[0]
    how = provenance(inv, evidence, nodes, spec=inv.question.target, model=inv.model)
    inv.record.answered(
        QUESTION,
        f"in {first.op_type} '{first.name}', but from operands that are already wrong: on golden ones it stays finite",
        origins=[node.name for node in nodes][:20],
        rules={name: each.facts for name, each in how.items()},
    )
    fault, findings = blame(inv, evidence)
    evidence = evidence.with_(**findings)
    where = f"NaN or Inf that the reference does not have appears in {first.op_type} '{first.name}'"
    following = [
        reduce_command(inv.question),
        run_command(inv.question, "--validate"),
    ]
    if fault is None:
        rules = {name: each.rule.sentence for name, each in how.items()}
        answer = of_elements(inv, evidence, nodes[:MOST_STARTS], rules)
        verdict = answer.verdict or fusion_fault(inv, evidence).verdict
        verdict = verdict or Conclusion(
            VerdictKind.NON_FINITE,
            NONFINITE_UNBLAMED,
            f"{where}, from operands that are already wrong; no op is wrong in isolation",
            culprits=[explain(inv, node, evidence.feed, evidence.excess, how.get(node.name)) for node in nodes],
            next=following,
        )
        return Answer(verdict, {**findings, **answer.findings})
    guilty = fault.culprits[0]
    rule = f" ({how[first.name].rule.sentence})" if first.name in how else ""
    verdict = Conclusion(
        VerdictKind.NON_FINITE,
        blamed(max(fault.explained, LEAST_BLAMED)),
        f"{where}{rule}, because {guilty.op_type} '{guilty.node}' before it is wrong: {guilty.reason}",
        culprits=fault.culprits,
        next=following,
    )
    return Answer(verdict, findings)

"""Are the numbers right, but in the wrong places? Outputs exchanged with each other, or a tensor in another layout.

Outputs are looked at first, for they are there already. When an op makes such a tensor on golden inputs, it is named;
otherwise the output as a whole is handed over wrongly: by the engine's binding, or by a wrapper.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.thresholds import LAYOUT_EVERYWHERE
from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.moved_values import exchanged, moved
from tensortriage.diagnose.measurements.suggested_commands import reduce_command, run_command
from tensortriage.diagnose.rungs.operators.blame import Blame
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import (
    ALL_OUTPUTS_MOVED,
    EXCHANGED_OUTPUTS,
    LEAST_BLAMED,
    SOME_OUTPUTS_MOVED,
    blamed,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.errors import EngineError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.text import percent

QUESTION = "are the outputs in the right order?"


@frozen_dataclass
class Places:
    """Where the values of the failing outputs are.

    Attributes:
        holds: Outputs that hold each other's values: name to the name of the output whose values it holds.
        moved: Outputs that hold their own values in another order, and which.
    """

    holds: Mapping[str, str]
    moved: Mapping[str, PatternFinding]


@rung(QUESTION, reads=("results",), gives=("moved",), cost="nothing new", ends=(VerdictKind.COMPARISON_UNSOUND,))
def outputs_in_place(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Do the outputs hold the right values in wrong places? A verdict only when they are exchanged for each other."""
    failing = evidence.worst_feed.failing
    try:
        outputs = places(inv, evidence, failing)
    except EngineError:
        return None
    if outputs.holds:
        inv.record.answered(QUESTION, f"no: {said(outputs.holds)}", holds=dict(outputs.holds))
        return out_of_order(inv, outputs.holds)
    if outputs.moved:
        words = "; ".join(f"'{name}': {finding.sentence}" for name, finding in outputs.moved.items())
        inv.record.answered(QUESTION, f"no: {words}", outputs=facts(outputs.moved))
    else:
        inv.record.answered(QUESTION, "yes: no other order of their values explains the error")
    return Answer(findings=Findings(moved=outputs.moved))


def places(inv: Investigation, evidence: Evidence, failing: Sequence[str]) -> Places:
    """Look for the values of failing outputs in other places."""
    floors, golden = evidence.worst_feed.floors, inv.golden.outputs(evidence.feed)
    outputs = inv.deployed(evidence.feed)
    wrong = {name: np.asarray(outputs[name]) for name in failing}
    reference = {name: np.asarray(golden[name]) for name in failing}
    limits = {name: floors.in_other_places(name) for name in failing}
    patterns = {n: moved(reference[n], array, floor=floors.target.get(n, 0.0)) for n, array in wrong.items()}
    return Places(
        exchanged(reference, wrong, limits),
        {name: finding for name, finding in patterns.items() if finding is not None},
    )


def facts(patterns: Mapping[str, PatternFinding]) -> dict[str, object]:
    """Return findings for a step's evidence."""
    return {name: {"pattern": finding.slug, **finding.evidence} for name, finding in patterns.items()}


def said(pairs: Mapping[str, str]) -> str:
    """Return which output holds which, in words."""
    return ", ".join(f"'{name}' holds '{other}'" for name, other in list(pairs.items())[:4])


def out_of_order(inv: Investigation, pairs: Mapping[str, str]) -> Conclusion:
    """Outputs hold each other's values: they were paired wrongly, and nothing was compared that belongs together."""
    return Conclusion(
        VerdictKind.COMPARISON_UNSOUND,
        EXCHANGED_OUTPUTS,
        f"the outputs of {inv.question.target} are in another order than the model's: {said(pairs)}, within their "
        "noise floors; take them from the engine by name, not by position",
        next=[run_command(inv.question)],
    )


def of_an_op(inv: Investigation, evidence: Evidence, fault: Blame) -> Conclusion | None:
    """Does the first of the ops that are wrong in isolation give the right values in another order?"""
    local, first = evidence.local, fault.culprits[0]
    if local is None or first.value not in local.arrays:
        return None
    golden = inv.golden.of(evidence.feed)
    pattern = moved(golden[first.value], local.arrays[first.value], floor=local.floors.target.get(first.value, 0.0))
    if pattern is None:
        return None
    if evidence.moved and share_of_suspects(evidence) > LAYOUT_EVERYWHERE:
        return outputs_moved(inv, evidence)
    return Conclusion(
        VerdictKind.LAYOUT,
        blamed(max(fault.explained, LEAST_BLAMED)),
        f"{first.op_type} '{first.node}' gives the right numbers in the wrong places on {inv.question.target}: "
        f"{pattern.sentence}; {'it explains' if fault.named == 1 else f'{fault.named} such ops explain'} "
        f"{percent(fault.explained)} of the output error; {cure(pattern)}",
        culprits=fault.culprits,
        next=[reduce_command(inv.question)],
    )


def share_of_suspects(evidence: Evidence) -> float:
    """Return the share of ops beyond their floors in isolation."""
    local = evidence.local
    if local is None or not local.metrics:
        return 0.0
    return sum(local.over.get(name, 0.0) > 1.0 for name in local.metrics) / len(local.metrics)


@rung("are the outputs in another layout?", reads=("results", "moved"), cost="nothing new", ends=(VerdictKind.LAYOUT,))
def layout(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Are outputs in another layout though no op makes it?"""
    return outputs_moved(inv, evidence) if evidence.moved else None


def outputs_moved(inv: Investigation, evidence: Evidence) -> Conclusion:
    """Outputs as a whole are handed over in another layout."""
    name, finding = next(iter(evidence.moved.items()))
    all_moved = all(name in evidence.moved for name in evidence.worst_feed.failing)
    others = f" (and {len(evidence.moved) - 1} more outputs)" if len(evidence.moved) > 1 else ""
    return Conclusion(
        VerdictKind.LAYOUT,
        ALL_OUTPUTS_MOVED if all_moved else SOME_OUTPUTS_MOVED,
        f"output '{name}'{others} of {inv.question.target} holds the right numbers in the wrong places, and no single "
        f"op is to blame for it: {finding.sentence}; {cure(finding)}",
        next=[run_command(inv.question)],
    )


def cure(finding: PatternFinding) -> str:
    """Return the advice that puts the numbers back into their places, as a clause."""
    axes = finding.evidence.get("axes")
    if finding.slug == "transposition" and axes is not None:
        back = [list(axes).index(place) for place in range(len(axes))]
        return f"transposing with perm={back} restores it"
    if finding.slug == "layout":
        return "read it in the engine's layout, or request the model's layout from the engine"
    if finding.slug == "shape":
        return "reshaping to the model's shape restores it"
    if finding.slug == "reordering" and "reversed" in finding.evidence:
        return "flipping that axis restores it"
    return "the order is the engine's, not the model's"

"""Two targets, one question: of two versions, precisions or devices, what changed first, and which one is right?

Both run the same model on the same feed. They part at the first value, in topological order, in which they differ by
more than two healthy engines may; the plans show whether it is fused, computed in another format, or by another kernel.
Each is judged by the envelope of the model in its own format, so neither has to be right. The ladder continues with the
one that is outside.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    Answer,
    EngineError,
    EngineSpec,
    Evidence,
    Feed,
    Findings,
    Investigation,
    Node,
    TensorStore,
    UsageError,
    difference_in_kind,
    error_size,
    rung,
)
from tensortriage.engines.sdk import Plan, Region
from tensortriage.envelope.sdk import difference, healthy_values, within_limit

AGREE = "do the two targets agree?"


@dataclasses.dataclass(frozen=True, slots=True)
class ValueRow:
    """One value on both targets.

    Attributes:
        value: Its name.
        difference: Relative RMS difference of the two, of the first one's RMS.
        allowed: The sum of both healthy errors.
        errors: Relative error of each against the model's own evaluation, by spec.
        outside: The targets that are outside the envelope of the model in their format.
        shapes: How their shapes or kinds of type differ, in words; empty when they do not.
    """

    value: str
    difference: float
    allowed: float
    errors: Mapping[str, float]
    outside: tuple[str, ...]
    shapes: str = ""

    @property
    def apart(self) -> str:
        """The distance of the two, in words."""
        return f"in {self.shapes}" if self.shapes else f"by {error_size(self.difference)}"

    @property
    def parts(self) -> bool:
        """Whether the two differ by more than two healthy engines may."""
        return not within_limit(self.difference, self.allowed)


@dataclasses.dataclass(frozen=True, slots=True)
class PlanChange:
    """A region of one plan, and the other plan's regions for the same nodes.

    Attributes:
        what: ``fusion``, ``precision`` or ``tactic``.
        nodes: ONNX nodes of the region in the first target's plan.
        before: The first target's.
        after: The other's.
    """

    what: str
    nodes: tuple[str, ...]
    before: str
    after: str


@rung(
    AGREE,
    gives=("two_targets",),
    cost="a run of both targets",
    after="do the quantizers fit the values they quantize?",
)
def changed_between(inv: Investigation, _: Evidence) -> Answer | None:
    """Find the first change between the target and the one it is compared with, and continue with the guilty one."""
    against = inv.question.against
    if against is None:
        return None
    targets = (inv.question.target, against)
    try:
        outputs = [row for feed in inv.question.feeds for row in _output_rows(inv, targets, feed)]
    except (EngineError, UsageError) as error:
        inv.record.answered(AGREE, f"unknown: {error.message}")
        if not _gives_outputs(inv, inv.question.target):
            return None
        return Answer(
            findings=Findings(two_targets=f"{against} gives no outputs"),
            question=inv.question.on_target(against, kept=inv.question.kept),
        )
    worst = max(outputs, key=lambda row: (row.parts, row.difference / max(row.allowed, 1e-30)))
    outside = [str(spec) for spec in targets if any(str(spec) in row.outside for row in outputs)]
    envelope = f"outside the envelope of the model: {' and '.join(outside) or 'neither'}"
    relation = "no" if worst.parts else "yes"
    inv.record.answered(
        AGREE,
        f"{relation}: output '{worst.value}' differs {worst.apart}, a healthy engine stays within "
        f"{error_size(worst.allowed)}; {envelope}",
        outputs=outputs,
        outside=outside,
    )
    findings = Findings(two_targets=f"{envelope}; {_first_change(inv, targets, worst)}")
    guilty = inv.question.on_target(against, kept=inv.question.kept) if outside == [str(against)] else None
    return Answer(findings=findings, question=guilty)


def _first_change(inv: Investigation, targets: Sequence[EngineSpec], worst: ValueRow) -> str:
    """Record and return where the two part first, in results and in plans."""
    row = _first_value(inv, targets) if worst.parts else None
    node = inv.model.graph.producer((row or worst).value)
    place = "no single value differs once all are marked" if worst.parts else "their outputs agree"
    if row is not None and node is not None:
        place = f"they diverge first in '{row.value}' ({node.op_type} '{node.name}'), {row.apart}"
    changes = _plan_changes(inv, targets)
    words = "".join(
        f"; {change.what} of {', '.join(change.nodes[:4])}: {change.before} -> {change.after}"
        for change in _told(changes, node if row else None)
    )
    plans = words if changes is not None else "; the plans do not show it"
    inv.record.answered("what changed first?", f"{place}{plans}", value=row, plan=(changes or [])[:20])
    return f"{place}{words}"


def _gives_outputs(inv: Investigation, spec: EngineSpec) -> bool:
    names = [output.name for output in inv.model.outputs]
    try:
        inv.lab.values(spec, inv.model, inv.question.feeds[0], names)
    except (EngineError, UsageError):
        return False
    return True


def _output_rows(inv: Investigation, targets: Sequence[EngineSpec], feed: Feed) -> list[ValueRow]:
    names = [spec.name for spec in inv.model.outputs]
    return _rows(inv, targets, feed, names, [inv.lab.values(spec, inv.model, feed, names) for spec in targets])


def _first_value(inv: Investigation, targets: Sequence[EngineSpec]) -> ValueRow | None:
    """Return the first value in which the two part, all values shown; None where none is seen to."""
    feed = inv.question.feeds[0]
    try:
        stores = [inv.lab.values(spec, inv.model, feed, inv.question.values) for spec in targets]
        rows = _rows(inv, targets, feed, inv.question.values, stores)
    except (EngineError, UsageError):
        return None
    return next((row for row in rows if row.parts), None)


def _rows(
    inv: Investigation,
    targets: Sequence[EngineSpec],
    feed: Feed,
    names: Sequence[str],
    found: Sequence[TensorStore],
) -> list[ValueRow]:
    healthy = [healthy_values(inv.lab, inv.model, feed, names, target=spec) for spec in targets]
    rows = []
    for name in names:
        if any(name not in store for store in found):
            continue
        limits = [each.limit(name).error for each in healthy]
        errors = {
            str(spec): difference(healthy[0].centre[name], store[name])
            for spec, store in zip(targets, found, strict=True)
        }
        outside = [
            str(spec) for spec, limit in zip(targets, limits, strict=True) if not within_limit(errors[str(spec)], limit)
        ]
        first, other = (np.asarray(store[name]) for store in found)
        kinds = difference_in_kind(first, other)
        apart = math.inf if kinds else difference(first, other)
        rows.append(ValueRow(name, apart, sum(limits), errors, tuple(outside), kinds))
    return rows


# -- plans -------------------------------------------------------------------------------------------------------------


def _plan_changes(inv: Investigation, targets: Sequence[EngineSpec]) -> list[PlanChange] | None:
    """Return the changes of the second plan, in the order of the first; None where a plan is not reported."""
    try:
        plans = [inv.lab.plan(spec, inv.model) for spec in targets]
    except EngineError:
        return None
    return plan_changes(plans[0], plans[1]) if plans[0] and plans[1] else None


def plan_changes(first: Plan, other: Plan) -> list[PlanChange]:
    """Return how regions of a plan differ from the regions of another that run the same nodes, in order.

    Nodes are compared that both plans name; a region that runs other nodes with them is a change of fusion.
    """
    places = {node: region for region in other.regions for node in region.nodes}
    found = []
    for region in first.regions:
        shared = [places[node] for node in region.nodes if node in places]
        if not shared:
            continue
        after = shared[0]
        if {*after.nodes} != {*region.nodes}:
            found.append(PlanChange("fusion", region.nodes, _fused(region), _fused(after)))
        if after.precision != region.precision:
            found.append(PlanChange("precision", region.nodes, region.precision, after.precision))
        if after.implementation != region.implementation:
            found.append(PlanChange("tactic", region.nodes, region.implementation, after.implementation))
    return found


def _fused(region: Region) -> str:
    return f"{len(region.nodes)} ops in one region" if len(region.nodes) > 1 else "alone"


def _told(changes: Sequence[PlanChange] | None, node: Node | None) -> Sequence[PlanChange]:
    """Return the changes to report: those at a node, else the first of each sort."""
    at_node = [change for change in changes or () if node is not None and node.name in change.nodes]
    firsts = {change.what: change for change in reversed(changes or ())}
    return at_node or ([*firsts.values()] if node is None else [])

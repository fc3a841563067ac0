"""The figures of a file that is not the reference's model: its outputs and tensors on the reference engine.

A verdict that two files differ is reached before the target is asked anything. What the reader wants to see is where
they part, and by how much, with no engine in it.
"""

import contextlib
from collections.abc import Mapping

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.floors import fp32_floors
from tensortriage.diagnose.measurements.outputs import Unsound, judge, measured_outputs, output_floors, worst_result
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import Floors
from tensortriage.errors import TriageError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.budget import BudgetSpent


def with_other_file(inv: Investigation, evidence: Evidence) -> Evidence:
    """Return evidence with the figures of the target's own file, where nothing was measured of it yet."""
    if evidence.results or evidence.beside is None:
        return evidence
    with contextlib.suppress(TriageError, BudgetSpent, Unsound):
        return evidence.with_(**_figures(inv, evidence.beside))
    return evidence


def _figures(inv: Investigation, beside: Correspondence) -> Findings:
    reference, file = inv.question.reference, beside.changed
    floors, results = output_floors(inv), []
    for feed in inv.question.feeds:
        fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
        outputs = inv.lab.outputs(reference, file, fed, what=f"the target's file on {reference}")
        measured = measured_outputs(inv, feed, outputs, spec=reference, model=file)
        results.append(judge(inv, feed, measured, floors))
    worst = worst_result(tuple(results)).feed
    fp32 = fp32_floors(inv, worst, inv.values)
    return Findings(
        results=tuple(results),
        in_context=_tensors(inv, beside, worst),
        floors=Floors(fp32, fp32, {}, floors.source),
    )


def _tensors(inv: Investigation, beside: Correspondence, feed: Feed) -> Mapping[str, Metrics]:
    """Return how far each tensor of the file is from that of the original which it stands for."""
    fed = check_feed(feed, beside.changed.inputs, casting=Casting.ROUND)
    shown, golden = set(markable(beside.changed)), inv.golden(feed)
    pairs = {own: theirs for own, theirs in beside.diff.values.items() if own in shown and theirs in golden}
    values = inv.lab.values(inv.question.reference, beside.changed, fed, list(pairs))
    found: dict[str, Metrics] = {}
    for own, theirs in pairs.items():
        was, now = np.asarray(golden[theirs]), np.asarray(values[own])
        if was.shape == now.shape and (was.dtype.kind == "f") == (now.dtype.kind == "f"):
            found[theirs] = measure(was, now)
    return found

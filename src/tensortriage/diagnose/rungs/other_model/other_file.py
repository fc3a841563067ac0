"""Figures of a file that differs from its source: its outputs and tensors on the reference engine.

A verdict that two files differ is reached before the target runs. The figures show the place and the size of the
difference, with no engine in it.
"""

import contextlib
from collections.abc import Mapping, Sequence

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.evidence import Evidence, Findings, WrongPart
from tensortriage.diagnose.measurements.outputs import (
    FeedResult,
    Unsound,
    judge,
    measured_outputs,
    output_floors,
    worst_result,
)
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import fp32_floors
from tensortriage.envelope.setting import Floors
from tensortriage.errors import TriageError
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.budget import BudgetSpent


def with_other_file(inv: Investigation, evidence: Evidence) -> Evidence:
    """Return evidence with the figures of the target's own file, where nothing was measured of it yet."""
    matched, part = evidence.model_diff, evidence.wrong_part
    if evidence.results or (matched is None and part is None):
        return evidence
    with contextlib.suppress(TriageError, BudgetSpent, Unsound):
        return evidence.with_(**(_of_network(inv, part) if matched is None and part else _of_file(inv, matched)))
    return evidence


def _of_network(inv: Investigation, part: WrongPart) -> Findings:
    """Return the difference between PyTorch's network and the exported model's values on the feed that was compared."""
    floors, golden = output_floors(inv), inv.golden.of(part.feed)
    outputs = {spec.name: part.values[spec.name] for spec in inv.model.outputs if spec.name in part.values}
    measured = measured_outputs(inv, part.feed, outputs, spec=inv.question.network)
    pairs = {name: (np.asarray(golden[name]), array) for name, array in part.values.items() if name in golden}
    return _findings(inv, [judge(inv, part.feed, measured, floors)], floors, _measured(pairs))


def _of_file(inv: Investigation, matched: Correspondence | None) -> Findings:
    """Return how far the target's file is from the original, on the reference engine."""
    assert matched is not None, "else there is no file"
    reference, file = inv.question.reference, matched.changed
    floors, results = output_floors(inv), []
    for feed in inv.question.feeds:
        fed = check_feed(feed, file.inputs, casting=Casting.ROUND)
        outputs = inv.lab.outputs(reference, file, fed, what=f"the target's file on {reference}")
        measured = measured_outputs(inv, feed, outputs, spec=reference, model=file)
        results.append(judge(inv, feed, measured, floors))
    worst = worst_result(tuple(results)).feed
    fed = check_feed(worst, file.inputs, casting=Casting.ROUND)
    shown, golden = set(markable(file)), inv.golden.of(worst)
    alike = {own: theirs for own, theirs in matched.diff.values.items() if own in shown and theirs in golden}
    values = inv.lab.values(reference, file, fed, list(alike))
    pairs = {theirs: (np.asarray(golden[theirs]), np.asarray(values[own])) for own, theirs in alike.items()}
    return _findings(inv, results, floors, _measured(pairs))


def _findings(
    inv: Investigation, results: Sequence[FeedResult], floors: Floors, tensors: Mapping[str, Metrics]
) -> Findings:
    fp32 = fp32_floors(inv.setting(worst_result(tuple(results)).feed), inv.question.values)
    return Findings(results=tuple(results), in_context=tensors, floors=Floors(fp32, fp32, {}, floors.source))


def _measured(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Mapping[str, Metrics]:
    """Return the figures of pairs of tensors that can be compared."""
    return {
        name: measure(was, now)
        for name, (was, now) in pairs.items()
        if was.shape == now.shape and (was.dtype.kind == "f") == (now.dtype.kind == "f")
    }

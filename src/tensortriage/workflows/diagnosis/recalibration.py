"""The remedy of quantizers that do not fit, or do not suit the kernels: the model with others, tried on the target."""

import math

import numpy as np

from tensortriage.compare.judgement.relative_error import decibels, error_of
from tensortriage.compare.judgement.thresholds import CURED
from tensortriage.compare.judgement.within import is_too_coarse, within_prediction
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.evidence import Calibrated
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Remedy
from tensortriage.engines.registry import resolve
from tensortriage.errors import EngineError
from tensortriage.values.text import error_size
from tensortriage.workflows.diagnosis.accuracies import WantedFix
from tensortriage.workflows.diagnosis.fix_words import RECALIBRATED


def recalibration(inv: Investigation, calibrated: Calibrated, wanted: WantedFix) -> Remedy | None:
    """Run the calibrated model on the target; where it is as good as on the reference, that is the remedy.

    It helps where the remaining error is the cost of a sound quantization, as the reference computed it, within the gap
    that is allowed to a prediction; or less than half of the error, for integer kernels round more. It is right where
    the rest is good enough for the task, by the user's metric, else less than a tenth of the signal.

    Raises:
        BudgetSpent: When there is no time to try it.
    """
    feed = inv.question.feeds[0]
    golden, output = inv.golden.outputs(feed), calibrated.output
    target = resolve(inv.question.target).builder
    try:
        made = inv.lab.outputs(target, calibrated.model, feed)[output]
    except (EngineError, KeyError) as error:
        inv.record.answered(RECALIBRATED, f"unknown: the target fails: {error}")
        return None
    same = made.shape == golden.spec(output).shape
    figure = measure(np.asarray(golden[output]), made) if same else None
    after = error_of(figure) if figure else math.inf
    count = figure.count if figure else 0
    near = after <= calibrated.after or within_prediction(decibels(after / max(calibrated.after, 1e-30)), count)
    works = (near and after < calibrated.before) or calibrated.before > CURED * after
    if not works:
        answer = (
            f"no: on the target the error of output '{output}' is {error_size(after)}, {error_size(calibrated.after)} "
            "predicted"
        )
        inv.record.answered(RECALIBRATED, answer, error_after=after)
        return None
    written = str(calibrated.model.save(wanted.file)) if wanted.file is not None else ""
    metric, enough = wanted.scored(target, calibrated.model)
    right = not is_too_coarse(after) if enough is None else enough
    falls = f"falls from {error_size(calibrated.before)} to {error_size(after)}"
    summary = f"{calibrated.words}: the error of output '{output}' {falls}"
    summary += "" if right else ", which helps but is not right yet"
    note = f"; written to {written}" if written else ""
    answer = f"{'yes' if right else 'no, but it helps'}: {summary}{note}"
    inv.record.answered(RECALIBRATED, answer, error_before=calibrated.before, error_after=after)
    return Remedy(calibrated.kind, summary, (), str(target), calibrated.before, after, written, metric, right)

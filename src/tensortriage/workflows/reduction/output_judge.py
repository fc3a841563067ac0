"""When does an output of the whole model fail? By the user's tolerance, else by the noise floor of the target's format.

Measuring a floor costs a run in float64; an error that no healthy fp32 engine could make needs none.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping

from tensortriage.compare.judgement.relative_error import LOST, MATCH_FACTOR, error_of, gap_allowance_db, least_floor
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.measurements.floors import emulate, fp32_floors
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.envelope.floors import ROUNDED
from tensortriage.inputs.feed import Feed

CERTAIN = 0.01
"""Relative error at an output that is a failure whatever the floor, on an fp32 engine."""


@dataclasses.dataclass
class OutputJudge:
    """Judges outputs of the whole model.

    Attributes:
        tolerance: The user's own; None to judge by floors.
        measure: Measures the limits of all outputs, as relative errors; called when one is needed for the first time.
        certain: Relative error that fails without measuring.
        limits: Limits known so far.
    """

    tolerance: Tolerance | None
    measure: Callable[[], dict[str, float]]
    certain: float = CERTAIN
    limits: dict[str, float] = dataclasses.field(default_factory=dict)

    def error(self, metrics: Metrics) -> float:
        """Return the relative error of a tensor."""
        return error_of(metrics)

    def failing(self, outputs: Mapping[str, Metrics]) -> frozenset[str]:
        """Return the outputs that fail; of those that may be within their floor only when none fails for sure."""
        if self.tolerance is not None:
            tolerance = self.tolerance
            return frozenset(name for name, figures in outputs.items() if not tolerance.judge(name, figures).within)
        errors = {name: error_of(figures) for name, figures in outputs.items()}
        sure = frozenset(name for name, error in errors.items() if error >= self.certain)
        if sure or not any(errors.values()):
            return sure
        if not self.limits:
            self.limits = self.measure()
        return frozenset(name for name, error in errors.items() if error > self.limits.get(name, 0.0))

    def fails(self, output: str, metrics: Metrics) -> bool:
        """Say whether an output of the model fails."""
        return output in self.failing({output: metrics})

    def excuses(self, output: str, metrics: Metrics) -> bool:
        """Say whether an error is within the tolerance, or within the floor when that is known."""
        if self.tolerance is not None:
            return self.tolerance.judge(output, metrics).within
        return error_of(metrics) <= self.limits.get(output, 0.0)


def judge_of(inv: Investigation, feed: Feed) -> OutputJudge:
    """Return the judge of an investigation; how much a narrow format may err has always to be measured.

    What was measured before is known again, so that a search which goes on later gets the same answers.
    """
    certain = math.inf if inv.precision in ROUNDED else CERTAIN
    key, notes = inv.key(inv.question.target, inv.model, feed, "limits of the outputs"), inv.case.checks

    def measure() -> dict[str, float]:
        limits = output_limits(inv, feed)
        notes.put(key, "what a healthy engine may err at the outputs", limits, seconds=0.0)
        return limits

    return OutputJudge(inv.question.tolerance, measure, certain, notes.get(key, dict[str, float]) or {})


def output_limits(inv: Investigation, feed: Feed) -> dict[str, float]:
    """Return the relative error that a healthy engine of the target's format may make, for every output of the model.

    For fp32 that is `MATCH_FACTOR` times the distance between the reference and float64; for a narrower format the
    error of rounding every result to it, and 3 dB. An output that is `LOST` in the format fails: to know why is what a
    reduction is asked for.
    """
    golden = inv.golden(feed)
    outputs = [spec.name for spec in inv.model.outputs if spec.name in inv.values]
    if inv.precision not in ROUNDED:
        floors, _ = fp32_floors(inv, inv.model, feed, outputs, golden=golden, what="the outputs")
        return {name: MATCH_FACTOR * floor for name, floor in floors.items()}
    figures = emulate(inv, inv.model, feed, outputs, golden=golden, specs=inv.specs(feed), what="the outputs")
    least = least_floor(inv.precision)
    explained = {
        name: max(error_of(figure), 0.0 if figure.exact else least) * 10 ** (gap_allowance_db(figure.count) / 20)
        for name, figure in figures.items()
    }
    return {name: min(error, LOST) for name, error in explained.items()}

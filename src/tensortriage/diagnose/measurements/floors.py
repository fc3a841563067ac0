"""The noise floors of an investigation: those of the envelope, or what can be had where the model cannot be evaluated.

Where the evaluator lacks an operator, or is itself in doubt, *input jitter* takes over: every float input moved by at
most one ulp on the reference, and the format emulated by ONNX Runtime.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, least_floor
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.distances import Distance
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.floors import JITTER, Floors, envelope_floors, jitter
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


def floors_of(
    inv: Investigation,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    golden: TensorStore,
    specs: Mapping[str, ValueSpec],
    judged: Sequence[str] = (),
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed in the target's format.

    Args:
        inv: The investigation.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values whose floors are wanted.
        golden: What the reference computed, which is judged; it enters no floor.
        specs: Dtypes and shapes of all values.
        judged: Values at which the reference is judged by the envelope.
        seen: Told every value of the envelope's centre while it is evaluated.
        what: Said while it takes place, e.g. ``every layer``.
    """
    if inv.question.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            return evaluated_floors(inv, model, feed, values, golden=golden, judged=judged, seen=seen, what=what)
    if model is inv.model and any(name not in specs for name in values):
        specs = inv.specs(feed)
    fp32 = jittered_floors(inv, model, feed, values, what=what)
    if inv.precision not in ROUNDED:
        return Floors(fp32, fp32, {}, JITTER)
    own = inv.lab.values(PLAIN, model, feed, values)
    emulated = emulate(inv, model, feed, values, golden=own, specs=specs, what=what)
    least = least_floor(inv.precision)
    target = dict(fp32)
    for name, metrics in emulated.items():
        target[name] = max(error_of(metrics), fp32.get(name, 0.0), 0.0 if metrics.exact else least)
    figures = {name: Distance.of(metrics) for name, metrics in emulated.items()}
    return Floors(fp32, target, figures, JITTER)


def evaluated_floors(
    inv: Investigation,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    golden: TensorStore,
    judged: Sequence[str] = (),
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of the envelope; see `floors_of`.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    return envelope_floors(
        inv.lab,
        model,
        feed,
        values,
        precision=inv.precision,
        kept=[name for name in inv.question.kept if name in model.graph],
        reference=golden if judged else None,
        reference_name=str(inv.question.reference),
        judged=judged,
        seen=seen,
        what=what,
    )


def emulate(
    inv: Investigation,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    golden: TensorStore,
    specs: Mapping[str, ValueSpec],
    what: str,
    kept: Collection[str] = (),
) -> Mapping[str, Metrics]:
    """Return the figures of a model whose results are rounded to the target's format; ``kept`` nodes stay fp32."""
    always = {name for name in inv.question.kept if name in model.graph}
    rounded = round_results(model, inv.precision, specs=specs, kept=tuple({*always, *kept}))
    label = f"{what} with results rounded to {inv.precision.value}"
    return inv.figures(PLAIN, rounded, feed, values, golden=golden, what=label).figures.metrics


def fp32_floors(inv: Investigation, feed: Feed, values: Sequence[str]) -> Mapping[str, float]:
    """Return the fp32 floors of values of the investigation's model, whatever the target's format."""
    what = "tensors in fp32"
    if inv.question.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            return envelope_floors(inv.lab, inv.model, feed, values, precision=Precision.FP32, what=what).fp32
    return jittered_floors(inv, inv.model, feed, values, what=what)


def jittered_floors(
    inv: Investigation, model: Model, feed: Feed, values: Sequence[str], *, what: str
) -> Mapping[str, float]:
    """Return how far values of a model on an engine of its own move when every float input does by at most one ulp.

    Neither reference nor target has a part in it. Jitter does not see the rounding inside the graph: that is let grow
    like a random walk along it.
    """
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    what = f"{what} with jittered inputs"
    own = inv.lab.values(PLAIN, model, feed, values)
    metrics = inv.figures(PLAIN, model, moved, values, golden=own, what=what).figures.metrics
    least = least_floor(Precision.FP32)
    depth = {value: index for index, value in enumerate(values)}
    floors: dict[str, float] = {}
    for name, figure in metrics.items():
        allowance, error = least * math.sqrt(depth[name] + 1.0), error_of(figure)
        floors[name] = error if figure.exact else max(allowance, error if math.isfinite(error) else allowance)
    return floors

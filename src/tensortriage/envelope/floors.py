"""Noise floors: the relative error that a healthy engine must be allowed at every tensor, by fp32 and by its format.

They are what the first rows of the registry cost, measured together. Where the evaluator lacks an operator, or is
itself in doubt, *input jitter* takes over: every float input moved by at most one ulp on an engine of its own, and the
format emulated by ONNX Runtime.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, least_floor
from tensortriage.compare.judgement.within import is_noise
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.distances import EXTERNAL, Distance, by_value, distances
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.envelope.registry import orders_of
from tensortriage.envelope.setting import ENVELOPE, JITTER, Floors, Setting
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.model.inspect.output_parts import output_parts, whole
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


def floors_of(
    setting: Setting,
    values: Sequence[str],
    *,
    golden: TensorStore | None = None,
    specs: Mapping[str, ValueSpec] | None = None,
    judged: Sequence[str] = (),
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed in the target's format.

    Args:
        setting: The model, the feed, and the target.
        values: Values whose floors are wanted, in topological order.
        golden: What the reference computed, which is judged; it enters no floor.
        specs: Dtypes and shapes of the model's values as far as they are known; None for what the setting says.
        judged: Values at which the reference is judged by the envelope.
        seen: Told every value of the envelope's centre while it is evaluated.
        what: Said while it takes place, e.g. ``every layer``.
    """
    if setting.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            return evaluated_floors(setting, values, golden=golden, judged=judged, seen=seen, what=what)
    fp32 = _jittered(setting, values, what=what)
    if setting.precision not in ROUNDED:
        return Floors(fp32, fp32, {}, JITTER)
    if specs is None or any(name not in specs for name in values):
        specs = setting.specs()
    emulated = emulate(setting, values, golden=_own(setting, values), specs=specs, what=what)
    return in_format(setting, Floors(fp32, fp32, {}, JITTER), emulated)


def evaluated_floors(
    setting: Setting,
    values: Sequence[str],
    *,
    golden: TensorStore | None = None,
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
        setting.lab,
        setting.model,
        setting.feed,
        values,
        precision=setting.precision,
        kept=setting.kept_here,
        reference=golden if judged else None,
        reference_name=str(setting.reference),
        judged=judged,
        seen=seen,
        what=what,
    )


def fp32_floors(setting: Setting, values: Sequence[str]) -> Mapping[str, float]:
    """Return the fp32 floors of values, whatever the target's format."""
    what = "tensors in fp32"
    if setting.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            where = setting.lab, setting.model, setting.feed
            return envelope_floors(*where, values, precision=Precision.FP32, what=what).fp32
    return _jittered(setting, values, what=what)


def envelope_floors(
    lab: Lab,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    precision: Precision,
    kept: Collection[str] = (),
    reference: TensorStore | None = None,
    reference_name: str = "",
    judged: Sequence[str] | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed, from nothing but these two.

    So of the parts of outputs among them, but for those that are noise: a part that healthy engines disagree about, as
    scores that no float32 Sigmoid can tell from 0, is nothing to lose.

    Args:
        lab: Where engines are asked.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values whose floors are wanted, in topological order.
        precision: The target's format.
        kept: Nodes of the model that compute in fp32 whatever the format.
        reference: The reference's values, to be judged by the envelope.
        reference_name: Tells references apart.
        judged: Values at which the reference is judged; None for all.
        seen: Told every value of the centre while it is evaluated.
        what: Said while it takes place, e.g. ``every layer``.

    Raises:
        EngineError: When the model cannot be evaluated, as for an operator without float64 arithmetic.
        UsageError: Likewise.
    """
    healthy = Healthy.of(model, precision, orders=orders_of(model), kept=kept)
    found = distances(
        lab,
        model,
        feed,
        values,
        healthy.all,
        external=reference,
        external_name=reference_name,
        external_values=judged,
        seen=seen,
        what=f"floors of {what}",
    )
    figures = by_value({name: found[name] for name in healthy.all})
    fp32 = {v: healthy.fp32_floor(each) for v, each in figures.items() if not healthy.order.keys().isdisjoint(each)}
    noise = {part.name for part in output_parts(model, feed.tensors) if is_noise(fp32.get(part.name, 0.0))}
    fp32 = {value: floor for value, floor in fp32.items() if value not in noise}
    target = {value: healthy.floor(each) for value, each in figures.items() if value not in noise}
    return Floors(fp32, target, found.get("format", {}), ENVELOPE, found.get(EXTERNAL, {}))


def emulate(
    setting: Setting,
    values: Sequence[str],
    *,
    golden: TensorStore,
    specs: Mapping[str, ValueSpec],
    what: str,
    kept: Collection[str] = (),
) -> Mapping[str, Metrics]:
    """Return the figures of a model whose results are rounded to the target's format.

    Args:
        setting: The model, the feed, and the target.
        values: Values that are compared.
        golden: What they are compared with.
        specs: Dtypes and shapes of the model's values.
        what: Said while it takes place.
        kept: Nodes that stay in fp32, beside those of the setting.
    """
    rounded = round_results(setting.model, setting.precision, specs=specs, kept=tuple({*setting.kept_here, *kept}))
    label = f"{what} with results rounded to {setting.precision.value}"
    return _figures(setting, rounded, setting.feed, values, golden, label)


def in_format(setting: Setting, floors: Floors, emulated: Mapping[str, Metrics]) -> Floors:
    """Return floors with the cost of an emulated format."""
    least = least_floor(setting.precision)
    target = dict(floors.fp32)
    for name, figure in emulated.items():
        target[name] = max(error_of(figure), floors.fp32.get(name, 0.0), 0.0 if figure.exact else least)
    figures = {name: Distance.of(figure) for name, figure in emulated.items()}
    return dataclasses.replace(floors, target=target, emulated=figures)


def _own(setting: Setting, values: Sequence[str]) -> TensorStore:
    return setting.lab.values(PLAIN, setting.model, setting.feed, values)


def _figures(
    setting: Setting, model: Model, feed: Feed, values: Sequence[str], golden: TensorStore, what: str
) -> Mapping[str, Metrics]:
    answer = setting.lab.figures(PLAIN, model, feed, ObservedFigures(values, golden), what=what)
    figures = dict(answer.figures.metrics)
    parts = [part for part in setting.parts if part.output in figures]
    if parts:
        found = setting.lab.values(PLAIN, model, feed, whole([part.name for part in parts], parts))
        figures |= {p.name: measure(p.of(np.asarray(golden[p.output])), p.of(found[p.output])) for p in parts}
    return figures


def _jittered(setting: Setting, values: Sequence[str], *, what: str) -> Mapping[str, float]:
    """Return how far values of a model on an engine of its own move when every float input does by at most one ulp.

    Neither reference nor target has a part in it. Jitter does not see the rounding inside the graph: that is let grow
    like a random walk along it.
    """
    feed = setting.feed
    moved = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
    what = f"{what} with jittered inputs"
    metrics = _figures(setting, setting.model, moved, values, _own(setting, values), what)
    least = least_floor(Precision.FP32)
    depth = {value: index for index, value in enumerate(values)}
    floors: dict[str, float] = {}
    for name, figure in metrics.items():
        allowance, error = least * math.sqrt(depth.get(name, len(depth)) + 1.0), error_of(figure)
        floors[name] = error if figure.exact else max(allowance, error if math.isfinite(error) else allowance)
    return floors

"""Noise floors: the relative error that a healthy engine must be allowed at every tensor, by fp32 and by its format.

They are the cost of the first rows of the registry, measured together. Where the evaluator lacks an operator, or is
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
from tensortriage.envelope.costs import of_freedoms
from tensortriage.envelope.distances import EXTERNAL, Distance, EvaluatedModel, StoredValues, by_value, distances
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import ROUNDED, Usual
from tensortriage.envelope.limits import Limit
from tensortriage.envelope.registry import freedoms_of_target, orders_of
from tensortriage.envelope.setting import ENVELOPE, JITTER, Floors, Setting
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.model.inspect.output_parts import output_parts, whole
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.runs.observation.experiment import ObservedFigures
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


def floors_of(
    setting: Setting,
    values: Sequence[str],
    *,
    judged: StoredValues | None = None,
    specs: Mapping[str, ValueSpec] | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed in the target's format.

    Args:
        setting: The model, the feed, and the target.
        values: Values whose floors are wanted, in topological order.
        judged: The reference's values, to be judged by the envelope; they enter no floor.
        specs: Dtypes and shapes of the model's values as far as they are known; None for the setting's.
        seen: Receives every value of the envelope's centre while it is evaluated.
        what: Completes the progress line, e.g. ``every layer``.
    """
    if setting.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            return evaluated_floors(setting, values, judged=judged, seen=seen, what=what)
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
    judged: StoredValues | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of the envelope; see `floors_of`.

    Raises:
        EngineError: When the model cannot be evaluated.
        UsageError: Likewise.
    """
    healthy = healthy_in(setting.model, setting.precision, setting.kept_here)
    return envelope_floors(setting, values, healthy, judged=judged, seen=seen, what=what)


def healthy_in(model: Model, precision: Precision = Precision.FP32, kept: Collection[str] = ()) -> Healthy:
    """Return the evaluations that floors are found by: other orders of sums, and results rounded to a format.

    Args:
        model: The model.
        precision: The target's format.
        kept: Nodes of the model that compute in fp32 whatever the format.
    """
    return Healthy.of(model, precision, orders=orders_of(model), kept=kept)


def fp32_floors(setting: Setting, values: Sequence[str]) -> Mapping[str, float]:
    """Return the fp32 floors of values, whatever the target's format."""
    what = "tensors in fp32"
    if setting.trusts_float64:
        with contextlib.suppress(EngineError, UsageError):
            return envelope_floors(setting, values, healthy_in(setting.model), what=what).fp32
    return _jittered(setting, values, what=what)


def envelope_floors(
    evaluated: EvaluatedModel,
    values: Sequence[str],
    healthy: Healthy,
    *,
    judged: StoredValues | None = None,
    seen: Callable[[str, np.ndarray], None] | None = None,
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed, from nothing but these two.

    So of the parts of outputs among them, but for those that are noise: a part on which healthy engines disagree, such
    as scores that are 0 for any float32 Sigmoid, is nothing to lose.

    Args:
        evaluated: The model and the feed.
        values: Values whose floors are wanted, in topological order.
        healthy: The evaluations that they are found by.
        judged: The reference's values, to be judged by the envelope.
        seen: Receives every value of the centre while it is evaluated.
        what: Completes the progress line, e.g. ``every layer``.

    Raises:
        EngineError: When the model cannot be evaluated, as for an operator without float64 arithmetic.
        UsageError: Likewise.
    """
    found = distances(evaluated, values, healthy.all, stored=judged, seen=seen, what=f"floors of {what}")
    figures = by_value({name: found[name] for name in healthy.all})
    fp32 = {v: healthy.fp32_floor(each) for v, each in figures.items() if not healthy.order.keys().isdisjoint(each)}
    noise = {
        part.name
        for part in output_parts(evaluated.model, evaluated.feed.tensors)
        if is_noise(fp32.get(part.name, 0.0))
    }
    fp32 = {value: floor for value, floor in fp32.items() if value not in noise}
    target = {value: healthy.floor(each) for value, each in figures.items() if value not in noise}
    signal = {value: max(each.reference_rms for each in figures[value].values()) for value in fp32}
    return Floors(fp32, target, found.get("format", {}), ENVELOPE, found.get(EXTERNAL, {}), signal)


def expected_limits(setting: Setting, floors: Floors, counts: Mapping[str, int]) -> dict[str, Limit]:
    """Return the errors that healthy engines of a target's class may have, whatever the target computed.

    Args:
        setting: The model, the feed, and the target.
        floors: Floors of the examined values.
        counts: Their elements, by name.
    """
    chosen: Mapping[str, float] = {}
    freedoms = freedoms_of_target(setting.target, Usual.EXPECTED, op_types=setting.op_types)
    if counts and freedoms and setting.trusts_float64:
        with contextlib.suppress(
            EngineError, UsageError
        ):  # an operator without an exact kernel: the floor alone counts
            chosen = of_freedoms(setting, floors, freedoms, list(counts))
    names = tuple(each.name for each in freedoms)
    return {name: floors.limit(name, count, chosen.get(name), names) for name, count in counts.items()}


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
        golden: The values to compare with.
        specs: Dtypes and shapes of the model's values.
        what: Progress line.
        kept: Nodes that stay in fp32, in addition to those of the setting.
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

    Neither reference nor target has a part in it. Jitter does not see the rounding inside the graph: that is assumed to
    grow like a random walk along it.
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

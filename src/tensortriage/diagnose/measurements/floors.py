"""Noise floors: the error a healthy engine must be allowed, per tensor, measured instead of assumed.

For fp32 the floor is the distance between the reference's fp32 result and the same computation in float64 (the rule of
PyTorch's accuracy checks: RMSE(result, fp64) against RMSE(fp32, fp64)). For a narrower format it is the error that
remains when every op is computed exactly as the reference does and only its result is rounded to the format.
"""

import contextlib
import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, least_floor
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.runs.lab import FLOAT64, PLAIN
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore

ROUNDED = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats whose rounding can be emulated result by result."""


@dataclasses.dataclass(frozen=True, slots=True)
class Floors:
    """Relative noise floors by value name.

    Attributes:
        fp32: Floor of a healthy fp32 engine.
        target: Floor of a healthy engine in the target's format; equals ``fp32`` for fp32.
        emulated: Figures of the emulated format against the golden values, where a format was emulated; with their
            NaN and Inf counts they tell what the format cannot hold.
        source: How the fp32 floor was found: ``float64`` or ``input jitter``.
    """

    fp32: Mapping[str, float]
    target: Mapping[str, float]
    emulated: Mapping[str, Metrics]
    source: str


def floors_of(
    inv: Investigation,
    model: Model,
    feed: Feed,
    values: Sequence[str],
    *,
    golden: TensorStore,
    specs: Mapping[str, ValueSpec],
    what: str,
) -> Floors:
    """Measure the floors of values of a model on one feed.

    Args:
        inv: The investigation.
        model: The model (whole, or exploded).
        feed: Its inputs.
        values: Values whose floors are wanted.
        golden: What the reference computed.
        specs: Dtypes and shapes of all values.
        what: Said while it takes place, e.g. ``every layer``.
    """
    fp32, source = fp32_floors(inv, model, feed, values, golden=golden, what=what)
    if inv.precision not in ROUNDED:
        return Floors(fp32, fp32, {}, source)
    emulated = emulate(inv, model, feed, values, golden=golden, specs=specs, what=what)
    least = least_floor(inv.precision)
    target = dict(fp32)
    for name, metrics in emulated.items():
        error = error_of(metrics)
        target[name] = max(error, fp32.get(name, 0.0), 0.0 if metrics.exact else least)
    return Floors(fp32, target, emulated, source)


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
    rounded = round_results(model, inv.precision, specs=specs, kept=tuple(kept))
    label = f"{what} with results rounded to {inv.precision.value}"
    return inv.measured(PLAIN, rounded, feed, values, golden=golden, what=label).metrics


def fp32_floors(
    inv: Investigation, model: Model, feed: Feed, values: Sequence[str], *, golden: TensorStore, what: str
) -> tuple[Mapping[str, float], str]:
    """Return fp32 floors and how they were found.

    Where the float64 evaluator lacks an op, or is itself in doubt, *input jitter* takes over: every float input moved
    by at most one ulp.
    """
    metrics: Mapping[str, Metrics] | None = None
    source = "float64"
    if not inv.doubts_float64:
        with contextlib.suppress(EngineError, UsageError):
            metrics = inv.measured(FLOAT64, model, feed, values, golden=golden, what=f"{what} in float64").metrics
    if metrics is None:
        jittered = Feed(f"{feed.name} jittered", jitter(feed.tensors), feed.origin)
        metrics = inv.measured(
            PLAIN, model, jittered, values, golden=golden, what=f"{what} with jittered inputs"
        ).metrics
        source = "input jitter"
    least = least_floor(Precision.FP32)
    depth = {value: index for index, value in enumerate(values)}
    floors: dict[str, float] = {}
    for name, figure in metrics.items():
        # Jitter does not see the rounding inside the graph: let it grow like a random walk along the graph.
        allowance = least * (math.sqrt(depth[name] + 1.0) if source == "input jitter" else 1.0)
        error = error_of(figure)
        floors[name] = error if figure.exact else max(allowance, error if math.isfinite(error) else allowance)
    return floors, source


def jitter(tensors: Mapping[str, np.ndarray], *, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a copy of a feed with every floating-point element moved by -1, 0 or +1 ulp, reproducibly."""
    rng = np.random.default_rng(seed)
    moved: dict[str, np.ndarray] = {}
    for name, array in tensors.items():
        if array.dtype not in (np.float32, np.float64):
            moved[name] = array
            continue
        direction = rng.integers(-1, 2, array.shape)
        towards = np.where(direction > 0, np.inf, -np.inf).astype(array.dtype)
        moved[name] = np.where(direction == 0, array, np.nextafter(array, towards)).astype(array.dtype)
    return moved

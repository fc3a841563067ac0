"""Quantize: an 8-bit model with Q/DQ pairs, its ranges chosen by what they do to samples that did not choose them.

Every calibration that is asked for is tried; the one with the smallest output error on the held-out samples is written,
with its figures, and with the tensors whose held-out values leave their ranges: those say on what to recalibrate.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.figures import error_of, say, sqnr_db
from tensortriage.compare.metrics import measure
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import ModelError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.selecting import NodeChoice, choose_nodes
from tensortriage.model.shapes import value_specs
from tensortriage.precision.coverage import outgrown, range_uses
from tensortriage.precision.goal import ErrorGoal, Goal, MetricGoal, Sample
from tensortriage.precision.quantizing import Calibration, QuantizeOptions, Quantizer
from tensortriage.precision.unquantized import QuantizedNodes
from tensortriage.runs.capture import capture
from tensortriage.runs.runner import Runner, Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.values.spec import ValueSpec
from tensortriage.workflows.feeding import FeedRequest, feeds
from tensortriage.workflows.premises import require_numbers
from tensortriage.workflows.surgery import Source, Target

PLAIN = EngineSpec("onnxruntime", {"optimization": "none"})

FOLD = 4
"""Without held-out samples every fourth one is held out, where there are so many."""

LOST = 0.5
"""Relative RMS error from which an output is lost: half of its signal. Such a model is not written unless asked to."""

BATCH_BYTES = 1 << 28

Metric = Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeRequest:
    """What to quantize, on what.

    Attributes:
        source: The float model.
        target: What to write.
        options: How; ``calibration`` is that of each try.
        calibrations: The calibrations to try, at least one.
        kept: Nodes that stay float.
        feeding: Calibration samples.
        holdout: Samples to judge by; None to hold out a part of the others.
        metric: Task metric of outputs and feed, larger is better.
        sqnr_db: Least signal to noise ratio of every output in dB; nodes that prevent it stay float.
        metric_min: Least mean of the task metric, likewise.
        accept_lost: Whether a model that has lost an output is written all the same.
    """

    source: Source
    target: Target
    options: QuantizeOptions = dataclasses.field(default_factory=QuantizeOptions)
    calibrations: Sequence[Calibration] = tuple(Calibration)
    kept: NodeChoice = dataclasses.field(default_factory=NodeChoice)
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    holdout: FeedRequest | None = None
    metric: Metric | None = None
    sqnr_db: float | None = None
    metric_min: float | None = None
    accept_lost: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """What one calibration does to the outputs on the held-out samples.

    Attributes:
        calibration: Its word.
        relative_rms_errors: Largest over the samples, by output.
        metric: Mean of the task metric; None without one.
    """

    calibration: str
    relative_rms_errors: Mapping[str, float]
    metric: float | None

    @property
    def worst(self) -> float:
        """Largest error of an output."""
        return max(self.relative_rms_errors.values(), default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Outgrown:
    """A tensor whose held-out values leave its calibrated range.

    Attributes:
        value: Its name.
        range: Largest magnitude that the range holds.
        largest: Largest magnitude of the held-out samples.
        clipped_share: Share of its elements beyond the range.
        clipping_over_rounding: Noise of clipping over noise of rounding (powers).
    """

    value: str
    range: float
    largest: float
    clipped_share: float
    clipping_over_rounding: float


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizeResult:
    """What became of a model.

    Attributes:
        model: The file that was read.
        output: The file that was written.
        precision: ``int8`` or ``fp8e4m3``.
        calibration: The calibration that was chosen.
        quantized: Nodes whose operands are quantized.
        kept: Nodes that could be and stay float.
        sensitive: Those of them that the search left float, most influential first.
        tried: Every calibration, best first.
        sqnr_db: Signal to noise ratio of every output in dB, on the worst held-out sample.
        metric_before: Task metric of the float model; None without one.
        metric_after: That of the model written.
        samples: Names of the calibration samples.
        held_out: Names of the samples it was judged by; the same ones when there were too few to hold any out.
        inputs: ``real`` or ``random``.
        outgrown: Ranges that clip more than they round, worst first.
        notices: What else the user should know.
    """

    model: str
    output: str
    precision: str
    calibration: str
    quantized: tuple[str, ...]
    kept: tuple[str, ...]
    sensitive: tuple[str, ...]
    tried: tuple[Tried, ...]
    sqnr_db: Mapping[str, float]
    metric_before: float | None
    metric_after: float | None
    samples: tuple[str, ...]
    held_out: tuple[str, ...]
    inputs: str
    outgrown: tuple[Outgrown, ...]
    notices: tuple[str, ...]
    format: str = "tensortriage.quantize/1"


def quantize(request: QuantizeRequest, *, progress: Callable[[str], None] = lambda text: None) -> QuantizeResult:
    """Quantize a model by the best calibration and write it.

    Args:
        request: What, and how.
        progress: Told what takes a while.

    Raises:
        ModelError: When nothing can be quantized, the quantizer refuses, or an output is lost (``quantize-lossy``).
        TriageError: For bad samples or a model that does not run.
    """
    model = request.source.load()
    samples, held_out = split(request, model)
    kept = choose_nodes(model.graph, request.kept)
    with Workspace() as workspace:
        golden, before = _run(model, held_out, request.metric, workspace)
        require_numbers((feed.name, outputs) for feed, outputs in zip(held_out, golden, strict=True))
        known = [Sample(feed, outputs) for feed, outputs in zip(held_out, golden, strict=True)]
        tries = calibrated(
            model, samples, known, options=request.options, calibrations=request.calibrations, kept=kept,
            metric=request.metric, workspace=workspace, progress=progress,
        )  # fmt: skip
        best, quantizer, made = tries[0]
        sensitive: tuple[str, ...] = ()
        if goal := _goal(request, golden):
            progress("looking for the nodes that do not stand 8 bits")
            sensitive = _sensitive(quantizer, kept, known, goal, workspace)
        if sensitive:
            made = quantizer.quantized({*kept, *sensitive})
            outputs, metric = _run(made, held_out, request.metric, workspace)
            best = Tried(best.calibration, _errors(golden, outputs), metric)
        grown = _outgrown(model, quantizer, held_out, workspace)
        _check(request, best, grown)
        request.target.write(made)
    left = {*kept, *sensitive}
    return QuantizeResult(
        model=str(request.source.path),
        output=str(request.target.path),
        precision=request.options.precision.value,
        calibration=best.calibration,
        quantized=tuple(name for name in quantizer.nodes if name not in left),
        kept=tuple(name for name in quantizer.nodes if name in left),
        sensitive=sensitive,
        tried=tuple(item[0] for item in tries),
        sqnr_db={name: sqnr_db(error) for name, error in best.relative_rms_errors.items()},
        metric_before=before,
        metric_after=best.metric,
        samples=tuple(feed.name for feed in samples),
        held_out=tuple(feed.name for feed in held_out),
        inputs="real" if any(feed.origin.value == "real" for feed in samples) else "random",
        outgrown=grown,
        notices=tuple(_notices(request, samples, held_out)),
    )


def calibrated(
    model: Model,
    samples: Sequence[Feed],
    judges: Sequence[Sample],
    *,
    options: QuantizeOptions,
    workspace: Workspace,
    calibrations: Sequence[Calibration] = tuple(Calibration),
    kept: Collection[str] = (),
    metric: Metric | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> list[tuple[Tried, Quantizer, Model]]:
    """Return what every calibration makes of a model, the best first: by the task metric, else by the output error.

    Args:
        model: The float model.
        samples: What calibrates.
        judges: Samples to judge by, with the outputs of the float model.
        options: How; ``calibration`` is that of each try.
        workspace: For the files of the quantizers, which live as long.
        calibrations: The calibrations to try.
        kept: Nodes that stay float.
        metric: Task metric of outputs and feed, larger is better.
        progress: Told what takes a while.

    Raises:
        ModelError: When nothing can be quantized, or the quantizer refuses.
    """
    tries = []
    for calibration in calibrations:
        progress(f"calibrating on {len(samples)} samples: {calibration.value}")
        folder = workspace.folder / calibration.value
        folder.mkdir()
        chosen = dataclasses.replace(options, calibration=calibration)
        quantizer = Quantizer(model, samples, chosen, folder=folder)
        made = quantizer.quantized(kept)
        outputs, score = _run(made, [sample.feed for sample in judges], metric, workspace)
        errors = _errors([sample.outputs for sample in judges], outputs)
        tries.append((Tried(calibration.value, errors, score), quantizer, made))
    return sorted(tries, key=lambda item: (-(item[0].metric or 0.0), item[0].worst))


def _goal(request: QuantizeRequest, golden: Sequence[Mapping[str, np.ndarray]]) -> Goal | None:
    """Return what is asked of the outputs; None when nothing is."""
    if request.metric is not None and request.metric_min is not None:
        return MetricGoal(request.metric, request.metric_min, f"metric >= {request.metric_min:g}")
    if request.sqnr_db is None:
        return None
    limit = 10.0 ** (-request.sqnr_db / 20.0)
    return ErrorGoal(dict.fromkeys(golden[0], limit), f"SQNR >= {request.sqnr_db:g} dB")


def _sensitive(
    quantizer: Quantizer, kept: Collection[str], samples: Sequence[Sample], goal: Goal, workspace: Workspace
) -> tuple[str, ...]:
    """Return the fewest nodes to leave float.

    Raises:
        ModelError: When not even leaving all of them float is good enough (``quantize-goal-unreachable``).
    """
    with QuantizedNodes(quantizer.quantized(kept, float_weights=True), samples, goal, workspace=workspace) as nodes:
        found = nodes.fewest()
    if found is None:
        raise ModelError(
            f"the float model itself does not reach {goal.words}", slug="quantize-goal-unreachable",
            cure="ask for less",
        )  # fmt: skip
    return found.kept


def split(request: QuantizeRequest, model: Model) -> tuple[list[Feed], list[Feed]]:
    """Return the samples that calibrate and those that judge."""
    samples = list(feeds(request.feeding, model))
    if request.holdout is not None:
        return samples, list(feeds(request.holdout, model))
    if len(samples) < FOLD:
        return samples, samples
    held = samples[FOLD - 1 :: FOLD]
    return [feed for index, feed in enumerate(samples, 1) if index % FOLD], held


def _run(
    model: Model, samples: Sequence[Feed], metric: Metric | None, workspace: Workspace
) -> tuple[list[dict[str, np.ndarray]], float | None]:
    with Runner(PLAIN, model, workspace=workspace) as runner:
        outputs = [{name: np.array(array) for name, array in runner.run(feed).items()} for feed in samples]
    if metric is None:
        return outputs, None
    scores = [metric(found, feed.tensors) for found, feed in zip(outputs, samples, strict=True)]
    return outputs, sum(scores) / len(scores)


def _errors(golden: Sequence[Mapping[str, np.ndarray]], found: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
    errors: dict[str, float] = {}
    for reference, target in zip(golden, found, strict=True):
        for name, array in reference.items():
            same = name in target and target[name].shape == array.shape
            error = error_of(measure(array, target[name])) if same else math.inf
            errors[name] = max(errors.get(name, 0.0), error)
    return errors


def _outgrown(
    model: Model, quantizer: Quantizer, samples: Sequence[Feed], workspace: Workspace
) -> tuple[Outgrown, ...]:
    ranges = dict(quantizer.ranges)
    inputs = {spec.name for spec in model.inputs}

    def arrays() -> Iterator[tuple[str, np.ndarray]]:
        for feed in samples:
            yield from ((name, array) for name, array in feed.tensors.items() if name in ranges)
            specs = value_specs(model, {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()})
            wanted = [name for name in ranges if name not in inputs and model.graph.producer(name) is not None]
            yield from capture(
                PLAIN, model, feed, wanted, workspace=workspace, specs=specs, limits=Limits(), tally=Tally(),
                batch_bytes=BATCH_BYTES,
            )  # fmt: skip

    return tuple(
        Outgrown(use.value, use.half_width, use.largest, use.clipped_share, use.clipping_over_rounding)
        for use in outgrown(range_uses(ranges, arrays()))
    )


def _check(request: QuantizeRequest, best: Tried, grown: Sequence[Outgrown]) -> None:
    """Refuse a model that has lost an output.

    Raises:
        ModelError: Then (``quantize-lossy``).
    """
    if request.accept_lost or best.worst < LOST:
        return
    name = max(best.relative_rms_errors, key=lambda n: best.relative_rms_errors[n])
    why = ""
    if grown:
        first = grown[0]
        why = f"; '{first.value}' reaches {first.largest:.3g} but was calibrated to {first.range:.3g}"
    raise ModelError(
        f"in {request.options.precision.value}, output '{name}' is off by {say(best.worst)} (relative RMS) on the "
        f"held-out samples{why}",
        slug="quantize-lossy",
        cure="calibrate on samples like those of the task (--inputs)"
        if grown
        else "leave the sensitive nodes float: --sqnr DB, or --metric-script with --metric-min; or --no-verify",
    )


def _notices(request: QuantizeRequest, samples: Sequence[Feed], held_out: Sequence[Feed]) -> Iterator[str]:
    if all(feed.origin.value == "random" for feed in samples):
        yield "calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs"
    if held_out is samples or list(held_out) == list(samples):
        yield f"judged by the {len(samples)} calibration sample(s) themselves: give more, or others with --holdout"

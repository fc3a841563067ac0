"""Quantize: an 8-bit model with Q/DQ pairs, its ranges chosen by their effect on held-out samples.

Every requested calibration is tried; the one with the smallest output error on the held-out samples is written, with
its figures, and with the tensors whose held-out values leave their ranges: those show which samples are missing.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from tensortriage.api import Feed, FeedRequest, Model, Source, Target
from tensortriage.precision.sdk import (
    ErrorGoal,
    GoalSample,
    Lab,
    MetricGoal,
    NodeChoice,
    Precision,
    PrecisionGoal,
    TaskMetric,
    choose_nodes,
    decibels,
    feeds_that_run,
    is_lost,
    mean_metric,
    near_prediction,
    origin_of,
    require_numbers,
    sqnr_db,
)
from tensortriage.sdk import DataError, ModelError, count, error_size, magnitude, model_to_edit
from tensortriage_quantize.calibration.calibrated_model import (
    Calibration,
    ModelQuantizer,
    QuantizeOptions,
)
from tensortriage_quantize.calibration.calibration_search import (
    FOLD,
    Judging,
    Tried,
    Way,
    Ways,
    calibrated,
    hold_out,
    outputs_of,
)
from tensortriage_quantize.calibration.operand_ranges import (
    Outgrown,
    outgrown_ranges,
    require_finite,
    require_numbers_in,
)
from tensortriage_quantize.int8_kernels import kernel_notices
from tensortriage_quantize.search.on_engine import DeployedEngine, Judges, fewest_kept


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeRequest:
    """The model to quantize, its samples and the required accuracy.

    Attributes:
        source: The float model.
        target: The file to write.
        options: How; ``calibration`` is that of each try.
        calibrations: The calibrations to try, at least one.
        kept: Nodes that stay float.
        feeding: Calibration samples.
        holdout: Samples to judge by; None to hold out a part of the others.
        metric: Task metric, larger is better; in place of it a function or a name, see `TaskMetric.of`.
        sqnr_db: Least signal to noise ratio of every output in dB; nodes that prevent it stay float.
        metric_min: Least mean of the task metric; None for no requirement.
        accept_lost: Whether a model that has lost an output is written all the same.
    """

    source: Source
    target: Target
    options: QuantizeOptions = dataclasses.field(default_factory=QuantizeOptions)
    calibrations: Collection[Calibration] = tuple(Calibration)
    kept: NodeChoice = dataclasses.field(default_factory=NodeChoice)
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    holdout: FeedRequest | None = None
    metric: TaskMetric | None = None
    sqnr_db: float | None = None
    metric_min: float | None = None
    accept_lost: bool = False

    def __post_init__(self) -> None:
        if self.metric is not None:
            object.__setattr__(self, "metric", TaskMetric.of(self.metric))


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizeResult:
    """Result of quantizing a model.

    Attributes:
        model: The file that was read.
        output: The file that was written.
        precision: ``int8`` or ``fp8e4m3``.
        calibration: The calibration that was chosen.
        quantized: Nodes whose operands are quantized.
        kept: Nodes that could be quantized and stay float.
        sensitive: Nodes that the search left float, most influential first.
        tried: Every calibration, best first.
        sqnr_db: Signal to noise ratio of every output of the written file in dB, on the worst held-out sample.
        metric_before: Task metric of the float model; None without one.
        metric_after: Metric of the written file.
        judged_on: The engine that ran the written file.
        goal: The required accuracy; empty without a requirement.
        reached: Whether the written file does it there; None without a requirement.
        samples: Names of the calibration samples.
        held_out: Names of the samples it was judged by; the same ones when there were too few to hold any out.
        inputs: ``real`` or ``random``.
        outgrown: Ranges that clip more than they round, worst first.
        notices: Further notices to the user.
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
    judged_on: str
    goal: str
    reached: bool | None
    samples: tuple[str, ...]
    held_out: tuple[str, ...]
    inputs: str
    outgrown: tuple[Outgrown, ...]
    notices: tuple[str, ...]
    format: str = "tensortriage.quantize/1"

    @property
    def exit_code(self) -> int:
        """4 where the written file misses the goal, as for a search that finds nothing."""
        return 4 if self.reached is False else 0


def quantize(request: QuantizeRequest, *, progress: Callable[[str], None] = lambda text: None) -> QuantizeResult:
    """Quantize a model by the best calibration and write it.

    Args:
        request: The model, its samples and the options.
        progress: Receives lines about slow steps.

    Raises:
        ModelError: When nothing can be quantized, the quantizer refuses, or an output is lost (``quantize-lossy``).
        TriageError: For bad samples or a model that does not run.
    """
    model = model_to_edit(request.source, request.target)
    samples, held_out = split(request, model)
    require_numbers_in([*samples, *held_out])
    kept = choose_nodes(model.graph, request.kept)
    deployed = DeployedEngine.of(request.options.engine)
    with Lab(progress=progress) as lab:
        golden = outputs_of(model, held_out, lab)
        try:
            require_numbers((feed.name, outputs) for feed, outputs in zip(held_out, golden, strict=True))
        except DataError:  # from the user's data, if they are the reason
            require_finite(model, request.options.op_types, held_out, lab)
            raise
        known = [GoalSample(feed, outputs) for feed, outputs in zip(held_out, golden, strict=True)]
        before = None if request.metric is None else mean_metric(request.metric, known, golden)
        judges = Judges(deployed, known, _goal(request, known[0].outputs), request.metric, lab)
        tries = [dataclasses.replace(request.options, calibration=each) for each in request.calibrations]
        ways = calibrated(model, samples, Judging(known, request.metric), tries=tries, lab=lab, kept=kept)
        progress("searching for the nodes that lose most in 8 bits")
        chosen = _chosen(request, model, ways.best, kept, judges)
        grown = outgrown_ranges(model, chosen.quantizer, held_out, lab)
        _check(request, chosen.tried, grown)
        notices = [*_notices(ways, samples, held_out), *filter(None, [deployed.doubt])]
        if request.options.precision is Precision.INT8:
            notices += kernel_notices(chosen.model, chosen.tried.worst, held_out, golden, lab)
        request.target.write(_calibrated_on_all(request, model, chosen, kept, samples, judges))
        progress(f"running the written file on {deployed.spec}")
        written = judges.on_file(request.target.path)
    left = {*kept, *chosen.sensitive}
    return QuantizeResult(
        model=str(request.source.path),
        output=str(request.target.path),
        precision=request.options.precision.value,
        calibration=chosen.tried.calibration,
        quantized=tuple(name for name in chosen.quantizer.nodes if name not in left),
        kept=tuple(name for name in chosen.quantizer.nodes if name in left),
        sensitive=chosen.sensitive,
        tried=tuple(way.tried for way in ways.found),
        sqnr_db={name: sqnr_db(error) for name, error in written.errors.items()},
        metric_before=before,
        metric_after=written.metric,
        judged_on=str(deployed.spec),
        goal="" if judges.goal is None else judges.goal.words,
        reached=written.within,
        samples=tuple(feed.name for feed in samples),
        held_out=tuple(feed.name for feed in held_out),
        inputs=origin_of(samples),
        outgrown=grown,
        notices=tuple(notices),
    )


def _calibrated_on_all(
    request: QuantizeRequest,
    model: Model,
    chosen: "_Chosen",
    kept: Collection[str],
    samples: Sequence[Feed],
    judges: Judges,
) -> Model:
    """Return the chosen model with ranges from the judging samples as well, where those were held out.

    A calibration that misses the goal for the outputs, or is clearly worse (by 3 dB), is not taken.
    """
    calibration = Calibration(chosen.tried.calibration)
    if request.holdout is not None or len(samples) < FOLD - 1:
        return chosen.model
    folder = judges.lab.workspace.folder / "all-samples"
    folder.mkdir()
    options = dataclasses.replace(request.options, calibration=calibration)
    feeds = [*samples, *(sample.feed for sample in judges.samples)]
    made = ModelQuantizer(model, feeds, options, folder=folder, lab=judges.lab).quantized({*kept, *chosen.sensitive})
    before, after = judges.on(chosen.model), judges.on(made)
    worst = [max(each.errors.values(), default=0.0) for each in (before, after)]
    worse = after.metric is not None and before.metric is not None and after.metric < before.metric
    close = worst[1] == 0.0 or near_prediction(decibels(worst[1] / max(worst[0], 1e-30)))
    return made if close and not worse and after.within is not False else chosen.model


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """The model to write: the best way, with the nodes left float that the required accuracy needs."""

    tried: Tried
    quantizer: ModelQuantizer
    model: Model
    sensitive: tuple[str, ...]


def _chosen(request: QuantizeRequest, model: Model, best: Way, kept: Collection[str], judges: Judges) -> _Chosen:
    sensitive = fewest_kept(model, request.options.precision, best.quantizer, kept, judges)
    if not sensitive:
        return _Chosen(best.tried, best.quantizer, best.model, ())
    made = best.quantizer.quantized({*kept, *sensitive})
    outputs = outputs_of(made, [sample.feed for sample in judges.samples], judges.lab)
    left = sum(model.graph.node(name).op_type in request.options.op_types for name in sensitive)
    found = judges.of(outputs)
    tried = Tried(best.tried.calibration, best.tried.quantized - left, found.errors, found.metric)
    return _Chosen(tried, best.quantizer, made, sensitive)


def _goal(request: QuantizeRequest, outputs: Collection[str]) -> PrecisionGoal | None:
    """Return the required accuracy; None without a requirement."""
    if request.metric is not None and request.metric_min is not None:
        return MetricGoal(request.metric, request.metric_min, f"{request.metric.words} >= {request.metric_min:g}")
    if request.sqnr_db is None:
        return None
    limit = 10.0 ** (-request.sqnr_db / 20.0)
    return ErrorGoal(dict.fromkeys(outputs, limit), f"SQNR >= {request.sqnr_db:g} dB")


def split(request: QuantizeRequest, model: Model) -> tuple[list[Feed], list[Feed]]:
    """Return the samples that calibrate and those that judge."""
    samples = list(feeds_that_run(request.feeding, model))
    if request.holdout is not None:
        return samples, list(feeds_that_run(request.holdout, model))
    return hold_out(samples)


def _check(request: QuantizeRequest, best: Tried, grown: Sequence[Outgrown]) -> None:
    """Refuse a model that has lost an output.

    Raises:
        ModelError: Then (``quantize-lossy``).
    """
    if request.accept_lost or not is_lost(best.worst):
        return
    name = max(best.relative_rms_errors, key=lambda n: best.relative_rms_errors[n])
    why = ""
    if grown:
        first = grown[0]
        why = f"; '{first.value}' reaches {magnitude(first.largest)} but was calibrated to {magnitude(first.range)}"
    raise ModelError(
        f"in {request.options.precision.value}, output '{name}' is off by {error_size(best.worst)} (relative RMS) on "
        f"the held-out samples{why}",
        slug="quantize-lossy",
        cure="calibrate on samples like those of the task (--inputs)"
        if grown
        else "keep the sensitive nodes in float: --sqnr DB, or --metric with --metric-min; or --no-verify",
    )


def _notices(ways: Ways, samples: Sequence[Feed], held_out: Sequence[Feed]) -> Iterator[str]:
    if all(feed.origin.value == "random" for feed in samples):
        yield "calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs"
    if held_out is samples or list(held_out) == list(samples):
        yield f"judged by what calibrates it, {count(len(samples), 'sample')}: give more, or others with --holdout"
    yield from (f"{word} was left out: {why}" for word, why in ways.refused.items())

"""Quantize: an 8-bit model with Q/DQ pairs, its ranges chosen by their effect on held-out samples.

Every requested calibration is tried; the one with the smallest output error on the held-out samples is written,
with its figures, and with the tensors whose held-out values leave their ranges: those say on what to recalibrate.
"""

import contextlib
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
    choose_nodes,
    decibels,
    errors_of,
    feeds_that_run,
    is_lost,
    near_prediction,
    origin_of,
    require_numbers,
    sqnr_db,
)
from tensortriage.sdk import DataError, ModelError, TriageError, error_size, magnitude, model_to_edit
from tensortriage_quantize.calibration.calibrated_model import (
    ALWAYS,
    MODELOPT_METHODS,
    Calibration,
    ModelQuantizer,
    QuantizeOptions,
)
from tensortriage_quantize.calibration.calibration_search import (
    FOLD,
    Metric,
    Tried,
    Ways,
    calibrated,
    hold_out,
    outputs_of,
    quantizer_of,
)
from tensortriage_quantize.calibration.operand_ranges import (
    Outgrown,
    outgrown_ranges,
    require_finite,
    require_numbers_in,
)
from tensortriage_quantize.int8_kernels import kernel_notices
from tensortriage_quantize.search.pair_emulation import of_quantizers

MOST_NAMED = 3


class NothingQuantizedError(TriageError):
    """The required accuracy leaves no node in 8 bits: there is no such model."""

    exit_code = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeRequest:
    """The model to quantize, its samples and the required accuracy.

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
        metric_min: Least mean of the task metric; None for no requirement.
        accept_lost: Whether a model that has lost an output is written all the same.
    """

    source: Source
    target: Target
    options: QuantizeOptions = dataclasses.field(default_factory=QuantizeOptions)
    calibrations: Sequence[Calibration] = ALWAYS
    kept: NodeChoice = dataclasses.field(default_factory=NodeChoice)
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    holdout: FeedRequest | None = None
    metric: Metric | None = None
    sqnr_db: float | None = None
    metric_min: float | None = None
    accept_lost: bool = False


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
        sqnr_db: Signal to noise ratio of every output in dB, on the worst held-out sample.
        metric_before: Task metric of the float model; None without one.
        metric_after: Metric of the written model.
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
        progress: Receives lines about slow steps.

    Raises:
        ModelError: When nothing can be quantized, the quantizer refuses, or an output is lost (``quantize-lossy``).
        TriageError: For bad samples or a model that does not run.
    """
    model = model_to_edit(request.source, request.target)
    samples, held_out = split(request, model)
    require_numbers_in([*samples, *held_out])
    kept = choose_nodes(model.graph, request.kept)
    with Lab(progress=progress) as lab:
        golden, before = outputs_of(model, held_out, request.metric, lab)
        try:
            require_numbers((feed.name, outputs) for feed, outputs in zip(held_out, golden, strict=True))
        except DataError:  # from the user's data, if they are the reason
            require_finite(model, request.options.op_types, held_out, lab)
            raise
        known = [GoalSample(feed, outputs) for feed, outputs in zip(held_out, golden, strict=True)]
        ways = calibrated(
            model, samples, known, options=request.options, calibrations=request.calibrations, kept=kept,
            metric=request.metric, lab=lab,
        )  # fmt: skip
        progress("searching for the nodes that lose most in 8 bits")
        chosen = _chosen(request, model, ways, kept, known, lab)
        grown = outgrown_ranges(model, chosen.quantizer, held_out, lab)
        _check(request, chosen.tried, grown)
        notices = [*_notices(request, model, ways, samples, held_out)]
        if request.options.precision is Precision.INT8:
            notices += kernel_notices(chosen.model, chosen.tried.worst, held_out, golden, lab)
        request.target.write(_calibrated_on_all(request, model, chosen, kept, samples, known, lab))
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
        sqnr_db={name: sqnr_db(error) for name, error in chosen.tried.relative_rms_errors.items()},
        metric_before=before,
        metric_after=chosen.tried.metric,
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
    known: Sequence[GoalSample],
    lab: Lab,
) -> Model:
    """Return the chosen model with ranges from the judging samples as well, where those were held out.

    The figures stay those of ranges that had not seen them. What no longer does what is asked of the outputs, or does
    clearly worse (by 3 dB), is not taken.
    """
    calibration = Calibration(chosen.tried.calibration)
    if request.holdout is not None or len(samples) < FOLD - 1 or calibration in MODELOPT_METHODS:
        return chosen.model
    folder = lab.workspace.folder / "all-samples"
    folder.mkdir()
    options = dataclasses.replace(request.options, calibration=calibration)
    judges = [sample.feed for sample in known]
    made = quantizer_of(model, [*samples, *judges], options, folder, lab).quantized({*kept, *chosen.sensitive})
    outputs, metric = outputs_of(made, judges, request.metric, lab)
    worst = max(errors_of([sample.outputs for sample in known], outputs).values(), default=0.0)
    goal = _goal(request, known[0].outputs)
    fails = goal is not None and not goal.judge(known, outputs).within
    worse = metric is not None and metric < (chosen.tried.metric or metric)
    close = worst == 0.0 or near_prediction(decibels(worst / max(chosen.tried.worst, 1e-30)))
    return made if close and not worse and not fails else chosen.model


@dataclasses.dataclass(frozen=True, slots=True)
class _Chosen:
    """Return the model to write: the best way, with the nodes left float that the required accuracy needs."""

    tried: Tried
    quantizer: ModelQuantizer
    model: Model
    sensitive: tuple[str, ...]


def _chosen(
    request: QuantizeRequest,
    model: Model,
    ways: Ways,
    kept: Collection[str],
    known: Sequence[GoalSample],
    lab: Lab,
) -> _Chosen:
    best = ways.best
    sensitive = _sensitive(request, best.quantizer, kept, known, lab)
    if not sensitive:
        return _Chosen(best.tried, best.quantizer, best.model, ())
    made = best.quantizer.quantized({*kept, *sensitive})
    outputs, metric = outputs_of(made, [sample.feed for sample in known], request.metric, lab)
    count = sum(model.graph.node(name).op_type in request.options.op_types for name in sensitive)
    errors = errors_of([sample.outputs for sample in known], outputs)
    tried = Tried(best.tried.calibration, best.tried.quantized - count, errors, metric)
    return _Chosen(tried, best.quantizer, made, sensitive)


def _goal(request: QuantizeRequest, outputs: Collection[str]) -> PrecisionGoal | None:
    """Return the required accuracy; None without a requirement."""
    if request.metric is not None and request.metric_min is not None:
        return MetricGoal(request.metric, request.metric_min, f"metric >= {request.metric_min:g}")
    if request.sqnr_db is None:
        return None
    limit = 10.0 ** (-request.sqnr_db / 20.0)
    return ErrorGoal(dict.fromkeys(outputs, limit), f"SQNR >= {request.sqnr_db:g} dB")


def _sensitive(
    request: QuantizeRequest,
    quantizer: ModelQuantizer,
    kept: Collection[str],
    samples: Sequence[GoalSample],
    lab: Lab,
) -> tuple[str, ...]:
    """Return the fewest nodes to leave float.

    Raises:
        ModelError: When not even leaving all of them float is good enough (``quantize-goal-unreachable``).
        NothingQuantizedError: When none is left in 8 bits (``quantize-none-left``).
    """
    goal = _goal(request, samples[0].outputs)
    if goal is None:
        return ()
    with contextlib.closing(
        of_quantizers(quantizer.quantized(kept, float_weights=True), samples, goal, lab=lab)
    ) as nodes:
        found = nodes.fewest()
    if found is None:
        raise ModelError(
            f"even the float model does not reach {goal.words}", slug="quantize-goal-unreachable",
            cure="lower the goal",
        )  # fmt: skip
    if len(found.kept) == len(nodes.items):
        raise NothingQuantizedError(
            f"{goal.words} leaves none of {len(nodes.items)} nodes in {request.options.precision.value}",
            slug="quantize-none-left",
            cure="lower the goal, or keep the float model",
        )
    return found.kept


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
        else "keep the sensitive nodes in float: --sqnr DB, or --metric-script with --metric-min; or --no-verify",
    )


def _notices(
    request: QuantizeRequest, model: Model, ways: Ways, samples: Sequence[Feed], held_out: Sequence[Feed]
) -> Iterator[str]:
    if all(feed.origin.value == "random" for feed in samples):
        yield "calibrated on random data: the ranges mean nothing for real inputs; give samples with --inputs"
    if held_out is samples or list(held_out) == list(samples):
        yield f"judged by the {len(samples)} calibration sample(s) themselves: give more, or others with --holdout"
    yield from (f"{word} was left out: {why}" for word, why in ways.refused.items())
    best = ways.best
    others = {name for way in ways.found for name in way.quantizer.nodes}.difference(best.quantizer.nodes)
    heavy = [node for node in model.graph.nodes if node.name in others and node.op_type in request.options.op_types]
    if heavy:
        names = ", ".join(node.name for node in heavy[:MOST_NAMED]) + (", ..." if len(heavy) > MOST_NAMED else "")
        yield f"{best.tried.calibration} leaves {len(heavy)} nodes in float that other ways quantize: {names}"

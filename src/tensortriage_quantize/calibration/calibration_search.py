"""Ways to choose the ranges of an 8-bit model, tried on the same samples and judged by others."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np

from tensortriage.api import Feed, Model
from tensortriage.precision.sdk import PLAIN, GoalSample, Lab, TaskMetric, mean_metric
from tensortriage.sdk import EngineSpec, ModelError
from tensortriage_quantize.calibration.calibrated_model import (
    ModelQuantizer,
    QuantizeOptions,
)
from tensortriage_quantize.calibration.operand_ranges import require_finite
from tensortriage_quantize.output_errors import errors_of

FOLD = 4
"""Without held-out samples every fourth one is held out, where there are so many."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """Effect of one calibration on the outputs of the judging samples.

    Attributes:
        calibration: Name of the calibration.
        quantized: Number of nodes of the requested types whose operands it quantizes.
        relative_rms_errors: Largest over the samples, by output.
        metric: Mean of the task metric; None without one.
    """

    calibration: str
    quantized: int
    relative_rms_errors: Mapping[str, float]
    metric: float | None

    @property
    def worst(self) -> float:
        """Largest error of an output."""
        return max(self.relative_rms_errors.values(), default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Judged:
    """Judgement of a model on the judging samples: the errors of outputs, and the mean of the metric."""

    errors: Mapping[str, float]
    metric: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """One calibration that worked.

    Attributes:
        tried: The calibration, in words.
        quantizer: Makes the model for any choice of nodes.
        model: The model with every node quantized that may be.
    """

    tried: Tried
    quantizer: ModelQuantizer
    model: Model


@dataclasses.dataclass(frozen=True, slots=True)
class Ways:
    """Results of all calibrations.

    Attributes:
        found: The working ones, the best first; at least one.
        refused: Why others did not, by their words.
    """

    found: tuple[Way, ...]
    refused: Mapping[str, str]

    @property
    def best(self) -> Way:
        """The best one."""
        return self.found[0]


def hold_out(samples: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the samples that calibrate and those that judge: every fourth one, or all where there are too few."""
    if len(samples) < FOLD:
        return list(samples), list(samples)
    return [feed for index, feed in enumerate(samples, 1) if index % FOLD], list(samples[FOLD - 1 :: FOLD])


@dataclasses.dataclass(frozen=True, slots=True)
class Judging:
    """Samples that judge calibrations.

    Attributes:
        samples: They, with the outputs of the float model.
        metric: Task metric, larger is better; None for the output error.
        identity: Digest of the samples, and of the metric.
    """

    samples: Sequence[GoalSample]
    metric: TaskMetric | None = None
    identity: str = ""


def calibrated(
    model: Model,
    samples: Sequence[Feed],
    judging: Judging,
    *,
    tries: Sequence[QuantizeOptions],
    lab: Lab,
    kept: Collection[str] = (),
) -> Ways:
    """Return the model of every calibration, the best first: by the task metric, else by the output error.

    A metric above that of the float model is luck on these samples, and counts as equal to it.

    Args:
        model: The float model.
        samples: Samples to calibrate with.
        judging: Chooses the best calibration.
        tries: How; they differ in the calibration alone.
        lab: Runs the models; the files of the quantizers live in its workspace.
        kept: Nodes that stay float.

    Raises:
        ModelError: When nothing can be quantized, or every quantizer refuses.
        DataError: When a quantizer refuses because an operand is no number on a sample (``quantize-not-finite``).
    """
    judges, metric, op_types = judging.samples, judging.metric, tries[0].op_types
    found: list[Way] = []
    refused: dict[str, ModelError] = {}
    for options in tries:
        calibration = options.calibration
        lab.progress(f"calibrating on {len(samples)} samples: {calibration.value}")
        folder = lab.workspace.folder / calibration.value
        folder.mkdir()
        try:
            quantizer = ModelQuantizer(model, samples, options, folder=folder, lab=lab)
            _require_choice(quantizer, kept)
            made = quantizer.quantized(kept)
            _require_ranges(quantizer)
        except ModelError as error:
            refused[calibration.value] = error
            continue

        def judge(made: Model = made) -> _Judged:
            outputs = outputs_of(made, [sample.feed for sample in judges], lab)
            score = None if metric is None else mean_metric(metric, judges, outputs)
            return _Judged(errors_of([sample.outputs for sample in judges], outputs), score)

        known = lab.derived(_Judged, f"judged: {calibration.value}", PLAIN, made, judging.identity).of(judge)
        count = sum(model.graph.node(name).op_type in op_types for name in {*quantizer.nodes}.difference(kept))
        found.append(Way(Tried(calibration.value, count, known.errors, known.metric), quantizer, made))
    if refused:
        require_finite(model, op_types, samples, lab)
    if not found:
        raise next(iter(refused.values()))
    most = math.inf if metric is None else mean_metric(metric, judges, [one.outputs for one in judges])
    found.sort(key=lambda way: (-min(_number(way.tried.metric), most), way.tried.worst))
    return Ways(tuple(found), {word: error.message for word, error in refused.items()})


def _require_choice(quantizer: ModelQuantizer, kept: Collection[str]) -> None:
    if set(quantizer.nodes) <= set(kept):
        raise ModelError(
            f"all {len(quantizer.nodes)} nodes that could be quantized are excluded",
            slug="quantize-nothing",
            cure="keep fewer nodes: --keep-nodes, --keep-op-types, --keep-scopes",
        )


def _require_ranges(quantizer: ModelQuantizer) -> None:
    for name, (low, high) in quantizer.ranges.items():
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ModelError(
                f"the calibrated range of '{name}' is {low:g} to {high:g}",
                slug="quantize-failed",
                cure="calibrate on samples on which this value is finite",
            )


def outputs_of(
    model: Model, samples: Sequence[Feed], lab: Lab, engine: EngineSpec = PLAIN
) -> list[dict[str, np.ndarray]]:
    """Return the outputs of a model on given samples."""
    with lab.session(engine, model, sequence=True) as run:
        return [run(feed) for feed in samples]


def _number(metric: float | None) -> float:
    """Return a metric to sort by: 0 where there is none, the worst of all where it is NaN."""
    return 0.0 if metric is None else -math.inf if math.isnan(metric) else metric

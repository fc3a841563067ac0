"""The request of a precision search, and the listener to its progress."""

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tensortriage.compare.judgement.tolerance_options import ToleranceOptions, atol_field
from tensortriage.engines.cpu_features import where_it_runs
from tensortriage.engines.spec import EngineSpec, spec_text
from tensortriage.errors import UsageError
from tensortriage.runs.elsewhere import NamedCluster
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.options.check_options import (
    CheckOptions,
    artifact_field,
    keep_artifact_field,
    load_replay_field,
    save_replay_field,
)
from tensortriage.runs.options.request_fields import (
    BATCH_BYTES,
    LimitOptions,
    MetricOptions,
    case_field,
    cluster_field,
    external_data_field,
    fresh_field,
    metric_field,
    model_field,
    reference_field,
    samples_field,
)
from tensortriage.values.options import flag, flags, option, part, request
from tensortriage.values.output_files import Place, check_output

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.engines.base import Limits
    from tensortriage.model.model import Model
    from tensortriage.runs.commands.check import CheckSpec
    from tensortriage.runs.task_metric import TaskMetric
    from tensortriage.values.dtype import Precision


FEEDS = 8
"""Feeds to search on, unless another format is requested."""
ENGINES, GOAL, SEARCH = "Engines (instead of --check)", "Good enough", "Search"


class PrecisionMode(enum.Enum):
    """Ways to choose nodes; the value is the word on the command line."""

    AUTO = "auto"
    BISECT = "bisect"
    LINEAR = "linear"


class PrecisionListener(Protocol):
    """A receiver of a search's progress."""

    def progress(self, text: str) -> None:
        """Something that takes a while begins."""

    def tell(self, text: str) -> None:
        """A text to show unchanged."""


@request
class GoalRequest:
    """Requirements on the outputs; the strictest given one counts. Without any: 10 roundings of the format."""

    # fmt: off
    tolerance: "Tolerance | None" = part(
        factory=ToleranceOptions, group=GOAL,
        atol=atol_field("Absolute tolerance of the outputs  [default: 10 roundings to the format]."))
    sqnr_db: float | None = option(
        "--sqnr", "DB", "Signal-to-noise ratio that every output must reach, in dB.", default=None)
    floor_factor: float | None = option(
        "--floor-factor", "N", "Largest error, as a multiple of the fp32 noise floor.", default=None, above=0)
    metric: "TaskMetric | None" = part(
        factory=MetricOptions, script=metric_field("; its mean over the samples is judged"))
    metric_min: float | None = option(
        "--metric-min", "X", "Smallest mean of the metric  [default: that of the reference].",
        default=None, group=GOAL)
    # fmt: on

    def __post_init__(self) -> None:
        given = [self.tolerance is not None, self.sqnr_db is not None, self.floor_factor is not None, bool(self.metric)]
        if sum(given) > 1:
            raise UsageError(
                "several goals are given for the outputs",
                slug="precision-goals-many",
                cure="give one of --atol/--rtol, --sqnr, --floor-factor and --metric",
            )
        if self.metric_min is not None and self.metric is None:
            raise UsageError("--metric-min without --metric", slug="precision-goals-many", cure="add --metric SCRIPT")


@request
class PrecisionRequest:
    """A request to search for a precision.

    Attributes:
        model: ONNX file assumed to be right.
        check: The command that judges; None when the engine does.
        low: The lower format; None for the one the target computes in.
        batch_bytes: Largest amount of captured tensors held at once.
    """

    # fmt: off
    model: Path = model_field()
    output: Path | None = option(
        "--output -o", "FILE", "File for the mixed-precision model; precision.json is written next to it.",
        default=None, writes=Place.FILE, group="Result")
    case: Path = case_field()
    fresh: bool = fresh_field()
    latency: bool = flag("--latency", "Also measure the latency of the engine at every point of the curve.")
    remedies: bool = flag(
        "--remedies", "Also try fixes other than fp32, such as equivalent rewrites and other formats.")
    target: str = option(
        "--target -t", "ENGINE", "Engine that computes in the lower format, NAME:precision=FORMAT[,key=value...].",
        default="", accepts=spec_text, group=ENGINES)
    reference: str = reference_field()
    goal: GoalRequest = part(factory=GoalRequest)
    low: "Precision | None" = flags(
        ("--fp16", "fp16", "Compute in fp16, if --target names no format."),
        ("--bf16", "bf16", "Compute in bf16, if --target names no format."),
        ("--int8", "int8", "Compute in int8, with Q/DQ pairs that are calibrated on the feeds; needs --sqnr, --atol, "
         "--metric or --check."),
        ("--fp8", "fp8e4m3", "Compute in fp8, with Q/DQ pairs as for --int8."),
        default=None, read="tensortriage.values.dtype:Precision.parse", group=SEARCH)
    mode: PrecisionMode = option(
        "--mode", "", "auto: as few nodes as possible; bisect, linear: the first N nodes, as Polygraphy does.",
        default=PrecisionMode.AUTO)
    reverse: bool = option(
        "--direction --dir", "", "For bisect and linear: the first nodes, or the last  [default: forward].",
        default=False, choices=("forward", "reverse"), read="reverse".__eq__)
    max_builds: int = option(
        "--max-builds", "N", "Number of builds after which the search stops improving the result.", default=10, least=1)
    budget_seconds: float | None = option(
        "--budget", "SECONDS", "Time for measuring the influence of each node, in emulation.", default=300.0, least=0)
    cluster: NamedCluster | None = cluster_field("Run checks of --check there: ")
    artifact: Path = artifact_field(
        "polygraphy_debug.onnx", "File in which the check finds the typed model to judge.")
    keep_artifact: bool = keep_artifact_field()
    external_data_dir: Path | None = external_data_field()
    check: "CheckSpec | None" = part(factory=CheckOptions)
    save_replay: Path | None = save_replay_field()
    load_replay: Path | None = load_replay_field()
    feeding: FeedRequest = part(factory=FeedRequest, most=samples_field(
        FEEDS, "Largest number of feeds to run; with a metric, all are.", group=GOAL))
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on
    batch_bytes: int | None = BATCH_BYTES

    def __post_init__(self) -> None:
        if bool(self.target) == (self.check is not None):
            raise UsageError(
                "either an engine (--target) or a command (--check) must judge the outputs",
                slug="precision-judge",
                cure=where_it_runs(
                    "add --target ENGINE, e.g. --target openvino:precision=bf16; or --check CMD with --fp16"
                ),
            )


def load_model(request: PrecisionRequest) -> "Model":
    """Load the model.

    Raises:
        UsageError: When the result would overwrite a file that holds its weights (``output-is-input``).
        ModelError: When it cannot be loaded.
    """
    from tensortriage.model.model import Model

    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    check_output(request.output, *model.files)
    return model


def low_precision(request: PrecisionRequest, target: EngineSpec | None) -> "Precision":
    """Return the lower format.

    Raises:
        UsageError: When neither option nor target names one (``precision-low-missing``).
    """
    from tensortriage.engines.registry import resolve
    from tensortriage.values.dtype import Precision

    found = request.low or (resolve(target).precision if target is not None else None)
    if found is None or found in (Precision.FP32, Precision.TF32, Precision.FP64):
        raise UsageError(
            f"{target} computes in {found.value}, which is no lower format than fp32"
            if target is not None and found is not None
            else "no lower format is named for the nodes that are not kept in fp32",
            slug="precision-low-missing",
            cure="name it: --target ENGINE:precision=fp16, or --fp16, --bf16, --int8, --fp8",
        )
    return found

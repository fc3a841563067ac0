"""The request of a precision search, and the listener to its progress."""

import dataclasses
import enum
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from tensortriage.cluster.cluster_spec import ClusterSpec
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.runs.capture import BATCH_BYTES
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.engine_specs import REFERENCE
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.runner import precision_of
from tensortriage.values.dtype import Precision
from tensortriage.values.output_files import check_output

Metric = Callable[[dict[str, np.ndarray], dict[str, np.ndarray]], float]
MAX_BUILDS = 10


class PrecisionMode(enum.Enum):
    """How nodes are chosen; the value is the word on the command line."""

    AUTO = "auto"
    BISECT = "bisect"
    LINEAR = "linear"


class PrecisionListener(Protocol):
    """Who wants to hear how a search goes on."""

    def progress(self, text: str) -> None:
        """Something that takes a while begins."""

    def tell(self, text: str) -> None:
        """Something to be shown as it is."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class GoalRequest:
    """What is asked of the outputs; the strictest of what is given. None of it: 10 roundings of the format.

    Attributes:
        tolerance: The user's own tolerance.
        sqnr_db: Least signal to noise ratio.
        floor_factor: Most error, as a multiple of the fp32 noise floor.
        metric: Task metric of outputs and feed, higher is better.
        metric_words: Its script, for people and the cache.
        metric_min: Least mean of it; None for the reference's own.
    """

    tolerance: Tolerance | None = None
    sqnr_db: float | None = None
    floor_factor: float | None = None
    metric: Metric | None = None
    metric_words: str = ""
    metric_min: float | None = None

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


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PrecisionRequest:
    """What to search.

    Attributes:
        model: ONNX file taken as right.
        output: File for the mixed model; None for none.
        target: Spec of the engine that has to do with less; empty when a command judges.
        check: The command that judges; None when the engine is asked.
        reference: Spec of the engine taken as right.
        low: The lower format; None for the one the target computes in.
        mode: How nodes are chosen.
        reverse: Whether Polygraphy's modes keep the last nodes instead of the first.
        goal: What is asked of the outputs.
        feeding: Where samples come from.
        case: Directory of the case; a case that is already there is resumed.
        limits: Time and memory limits of isolated engines.
        max_builds: Builds of the target after which no further improvement is tried.
        budget_seconds: Time for the emulation; None for no limit.
        latency: Whether to time the engine.
        remedies: Whether to look for other ways out.
        artifact: The model of the current iteration, for the command.
        keep_artifact: Do not remove the last one.
        save_replay: Where verdicts of the command are written as they come.
        load_replay: Verdicts of an earlier run.
        external_data_dir: Directory of the external data, if they do not lie beside the model.
        batch_bytes: Largest amount of captured tensors held at once.
        cluster: Where the command runs; None for this machine.
    """

    model: Path
    output: Path | None
    target: str = ""
    check: CheckSpec | None = None
    reference: str = REFERENCE
    low: Precision | None = None
    mode: PrecisionMode = PrecisionMode.AUTO
    reverse: bool = False
    goal: GoalRequest = dataclasses.field(default_factory=GoalRequest)
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    case: Path = Path("triage-case")
    limits: Limits = dataclasses.field(default_factory=Limits)
    max_builds: int = MAX_BUILDS
    budget_seconds: float | None = None
    latency: bool = False
    remedies: bool = False
    artifact: Path = Path("polygraphy_debug.onnx")
    keep_artifact: bool = False
    save_replay: Path | None = None
    load_replay: Path | None = None
    external_data_dir: Path | None = None
    batch_bytes: int | None = BATCH_BYTES
    cluster: ClusterSpec | None = None

    def __post_init__(self) -> None:
        if self.cluster is not None and self.check is None:
            raise UsageError(
                "a cluster runs the checks of a command; an engine is asked about one build after the other",
                slug="cluster-without-check",
                cure="leave it out, let a command judge, or run triage debug precision there with --cluster",
            )
        if bool(self.target) == (self.check is not None):
            raise UsageError(
                "either an engine (--target) or a command (--check) must judge the outputs",
                slug="precision-judge",
                cure="add --target ENGINE, e.g. --target openvino:precision=bf16; or --check CMD with --fp16",
            )


def load_model(request: PrecisionRequest) -> Model:
    """Load the model.

    Raises:
        UsageError: When the result would overwrite a file that holds its weights (``output-is-input``).
        ModelError: When it cannot be loaded.
    """
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    check_output(request.output, *model.files)
    return model


def low_precision(request: PrecisionRequest, target: EngineSpec | None) -> Precision:
    """Return the lower format.

    Raises:
        UsageError: When nobody names one (``precision-low-missing``).
    """
    found = request.low or (precision_of(target) if target is not None else None)
    if found is None or found in (Precision.FP32, Precision.TF32, Precision.FP64):
        raise UsageError(
            f"{target} computes in {found.value}, which is no lower format than fp32"
            if target is not None and found is not None
            else "no lower format is named for the nodes that are not kept in fp32",
            slug="precision-low-missing",
            cure="name it: --target ENGINE:precision=fp16, or --fp16, --bf16, --int8, --fp8",
        )
    return found

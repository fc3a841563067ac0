"""What commands are asked for, each field with its option; light to import, for help is made of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.builds.goal import BuildGoal
from tensortriage.compare.judgement.tolerance_options import ToleranceOptions
from tensortriage.engines.spec import spec_text
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.options.check_options import CheckOptions, artifact_field, keep_artifact_field
from tensortriage.runs.options.request_fields import (
    BATCH_BYTES,
    LIMITS,
    LOW_MEMORY_BATCH_BYTES,
    MODEL_FILE,
    RESULT,
    LimitOptions,
    MetricOptions,
    case_field,
    external_data_field,
    fresh_field,
    metric_field,
    model_field,
    reference_field,
    samples_field,
    target_field,
)
from tensortriage.values.options import flag, option, part, request
from tensortriage.values.output_files import Place

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.engines.base import Limits
    from tensortriage.runs.commands.check import CheckSpec
    from tensortriage.runs.task_metric import TaskMetric

ENGINE, ENGINES, INPUTS = "Engine", "Engines", "Inputs"


@request
class DiagnoseRequest:
    """A request to diagnose.

    Attributes:
        model: ONNX file taken as right.
        network: Spec of the PyTorch network that the model was exported from, ``torch:...``; empty without one.
        in_blocks: Whether a model that does not fit into memory is cut.
    """

    # fmt: off
    model: Path = model_field()
    target: str = target_field(group=ENGINES)
    against: str = option(
        "--against", "ENGINE", "A second version, precision or engine: where do the two diverge first, and which of "
        "them is wrong?", default="", accepts=spec_text)
    reference: str = reference_field()
    target_model: Path | None = option(
        "--target-model", "FILE", "ONNX file that the target runs, if it is not MODEL.", default=None,
        accepts=MODEL_FILE)
    network: str = option(
        "--torch", "FILE.py:FUNCTION", "PyTorch network that MODEL was exported from, to tell a fault of the export "
        "from one of the engine. Without MODEL, the network is exported first.", default="",
        read="tensortriage.engines.spec:network_text")
    external_data_dir: Path | None = external_data_field()
    feeding: FeedRequest = part(factory=FeedRequest, most=samples_field(8))
    sweep: Mapping[str, tuple[int, ...]] = option(
        "--sweep", "DIM=SIZE[,SIZE]", "Sizes of a dynamic dimension to run as well, to learn at which shapes the "
        "target fails, e.g. batch=1,2,8.",
        default_factory=dict, several=True, read="tensortriage.inputs.synthetic.size_sweep:parse_sweep", group=INPUTS)
    random_too: bool = flag("--no-random-data", "Do not try random data when real data pass.", default=True, rare=True)
    case: Path = case_field("--case --output -o")
    fresh: bool = fresh_field()
    emit_breakers: Path | None = option(
        "--emit-breakers", "FILE", "Write the model with the extra outputs that keep the engine from fusing, if they "
        "cure the fault.", default=None, writes=Place.FILE)
    fix: Path | None = option(
        "--fix", "FILE", "Write the model with a fix that was verified on the target.",
        default=None, writes=Place.FILE)
    repro: bool = flag("--no-repro", "Do not write the culprit as a reproducer of its own.", default=True, rare=True)
    tolerance: "Tolerance | None" = part(factory=ToleranceOptions, group="Judgement")
    metric: "TaskMetric | None" = part(
        factory=MetricOptions, script=metric_field("; measured on all inputs", group="Judgement"))
    metric_min: float | None = option(
        "--metric-min", "X", "Smallest mean of the metric that will do: a fix is right from there on.", default=None)
    builds: int | None = option(
        "--builds", "N", "How often to build the target again; default: 1 if it fails or its builds may differ (2 if "
        "cheap).", default=None, least=0)
    limits: "Limits" = part(factory=LimitOptions)
    budget_seconds: float | None = option(
        "--budget", "SECONDS", "Time limit of the whole diagnosis; questions that are left out for lack of time are "
        "listed.", default=None, above=0, group=LIMITS)
    batch_bytes: int | None = flag(
        "--low-memory", "Capture tensors in small batches.", default=BATCH_BYTES, value=LOW_MEMORY_BATCH_BYTES)
    # fmt: on
    in_blocks: bool = True


@request
class BuildRequest:
    """A request to study builds, and the judge.

    Attributes:
        model: ONNX file.
        target: Spec of the engine.
        check: Command that judges; None to compare with the reference.
        save_tactics: Where the tactics of every build go for the check, and those of the good engine at the end.
        load_tactics: Tactics that every build is given.
        record: Whether builds tell their tactics, where the engine can: some engines then build differently.
    """

    # fmt: off
    model: Path = model_field()
    target: str = target_field("Engine to build, NAME[:key=value,...].", default="", group=ENGINES)
    reference: str = reference_field("Engine taken as right (without --check).")
    tolerance: "Tolerance | None" = part(factory=ToleranceOptions)
    external_data_dir: Path | None = external_data_field()
    goal: BuildGoal = part(factory=BuildGoal)
    record: bool = flag(
        "--no-tactics", "Build exactly as deployed: recording tactics may change what an engine builds.", default=True)
    check: "CheckSpec | None" = part(factory=CheckOptions)
    output: Path | None = option(
        "--output -o", "FILE", "File for the good engine, which can be built again.",
        default=None, writes=Place.FILE, group=RESULT)
    case: Path = case_field()
    fresh: bool = fresh_field()
    artifact: Path = artifact_field("polygraphy_debug.engine", "File in which the check finds the engine to judge.")
    keep_artifact: bool = keep_artifact_field()
    feeding: FeedRequest = part(
        factory=FeedRequest, most=samples_field(2, "Largest number of feeds to run every build on.", group=ENGINES))
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on
    save_tactics: Path | None = None
    load_tactics: Path | None = None

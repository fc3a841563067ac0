"""The requests of commands, each field with its option; light to import, since help needs them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.compare.judgement.tolerance_options import ToleranceOptions
from tensortriage.engines.spec import spec_text
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.options.request_fields import (
    BATCH_BYTES,
    LIMITS,
    LOW_MEMORY_BATCH_BYTES,
    MODEL_FILE,
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
    from tensortriage.runs.task_metric import TaskMetric

ENGINE, ENGINES, INPUTS = "Engine", "Engines", "Inputs"


@request
class DiagnoseRequest:
    """A request to diagnose.

    Attributes:
        model: ONNX file assumed to be right.
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
        "--emit-breakers", "FILE", "Write the model with the extra outputs that stop the fusion, if they cure the "
        "fault.", default=None, writes=Place.FILE)
    fix: Path | None = option(
        "--fix", "FILE", "Write the model with a fix that was verified on the target.",
        default=None, writes=Place.FILE)
    repro: bool = flag("--no-repro", "Do not write the culprit as a reproducer of its own.", default=True, rare=True)
    tolerance: "Tolerance | None" = part(factory=ToleranceOptions, group="Judgement")
    metric: "TaskMetric | None" = part(
        factory=MetricOptions, script=metric_field("; measured on all inputs", group="Judgement"))
    metric_min: float | None = option(
        "--metric-min", "X", "Smallest acceptable mean of the metric: a fix that reaches it is right.", default=None)
    builds: int | None = option(
        "--builds", "N", "How often to build the target again; default: 1 if it fails or its builds may differ (2 if "
        "cheap).", default=None, least=0)
    limits: "Limits" = part(factory=LimitOptions)
    budget_seconds: float | None = option(
        "--budget", "SECONDS", "Time limit of the whole diagnosis; questions that are skipped for lack of time are "
        "listed.", default=None, above=0, group=LIMITS)
    batch_bytes: int | None = flag(
        "--low-memory", "Capture tensors in small batches.", default=BATCH_BYTES, value=LOW_MEMORY_BATCH_BYTES)
    # fmt: on
    in_blocks: bool = True

    @property
    def can_be_cut(self) -> bool:
        """Whether no question needs the whole model."""
        of_the_whole = (self.target_model, self.tolerance, self.metric, self.fix, self.emit_breakers)
        return self.in_blocks and not any((*of_the_whole, self.network, self.against, self.sweep))

    @property
    def goal(self) -> tuple[str, ...]:
        """Options for the user's goal by a metric."""
        if self.metric is None:
            return ()
        least = () if self.metric_min is None else ("--metric-min", f"{self.metric_min:g}")
        return ("--metric", self.metric.words, *least)

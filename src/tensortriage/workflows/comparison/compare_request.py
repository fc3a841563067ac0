"""The request of a comparison: participants and limits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.compare.judgement.tolerance_options import tolerance_list
from tensortriage.engines.spec import EngineSpec, spec_list
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.options.request_fields import (
    LOW_MEMORY_BATCH_BYTES,
    MODEL_FILE,
    LimitOptions,
    MetricOptions,
    external_data_field,
    metric_field,
    model_field,
)
from tensortriage.values.given import field
from tensortriage.values.options import flag, option, part, request

if TYPE_CHECKING:
    import numpy as np

    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.engines.base import Limits
    from tensortriage.runs.task_metric import TaskMetric
    from tensortriage.workflows.common.output_selection import OutputChoice
    from tensortriage.workflows.comparison.participants import Saved

    Arrays = dict[str, np.ndarray]

ENGINES, JUDGE, OUTPUTS, RUNS = "Engines", "Judgement", "Outputs", "Runs"


@request
class PostprocessOptions:
    """Processing of every participant's outputs before they are compared."""

    # fmt: off
    rules: tuple[str, ...] = option(
        "--postprocess --postprocess-func", "[OUT:]top-K[,axis=A]...", "Replace outputs by the indices of their K "
        "largest.", default=(), rare=True, group=JUDGE)
    script: str = option(
        "--postprocess-func-script", "FILE.py[:FUNC]", "postprocess_outputs(outputs) -> outputs, for every engine.",
        default="", rare=True)
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on

    def value(self) -> "Callable[[Arrays], Arrays] | None":
        """Return the function; None where nothing is done."""
        if self.script:
            from tensortriage.runs.scripts import POSTPROCESS, ScriptFunction

            return ScriptFunction(self.script, POSTPROCESS, self.limits).arrays
        if not self.rules:
            return None
        from tensortriage.compare.postprocess import parse_top_k, top_k

        rules = parse_top_k(self.rules)
        return lambda outputs: top_k(outputs, rules)


@request
class CompareRequest:
    """A request to compare engines.

    Attributes:
        model: ONNX file; None when saved results alone are compared.
        reference: Engine assumed to be right; None when saved results are, or when nothing is compared.
        targets: Engines compared with it.
        saved: Results saved earlier; the first is the reference when there is no reference engine.
        tolerances: All must accept; none means the noise floor.
        batch_bytes: Largest amount of captured values held at once per participant; None for no limit.
        strict: Whether a tolerance for an output that is not compared is an error; else it is warned about.
        in_blocks: Whether a model that does not fit into memory is cut.
    """

    # fmt: off
    model: Path | None = model_field(default=None)
    target_model: Path | None = option(
        "--target-model", "FILE", "ONNX file that the targets run, if it is not MODEL.", default=None,
        accepts=MODEL_FILE, group=ENGINES)
    external_data_dir: Path | None = external_data_field()
    outputs: "OutputChoice" = part(
        factory="tensortriage.workflows.common.output_selection:OutputChoice", group=OUTPUTS,
        mark=option("--onnx-outputs", "NAME...", "Tensors to compare instead of the model's outputs: names, modules, "
                    "patterns, '*' or 'mark all'.", default=()),
        exclude=option("--onnx-exclude-outputs", "NAME...", "Tensors to leave out.", default=()),
        by_type=option("--onnx-outputs-by-type", "OP...", "Compare the results of every node of these op types.",
                       default=()))
    metric: "TaskMetric | None" = part(
        factory=MetricOptions, script=metric_field("; reported per engine", group=JUDGE))
    validate: bool = flag("--validate", "NaN or Inf in any output is a failure.", group=JUDGE)
    postprocess: "Callable[[Arrays], Arrays] | None" = part(factory=PostprocessOptions)
    flatten: bool = flag(
        "--no-shape-check", "Compare outputs of equal size and different shape as flat arrays.", rare=True, group=JUDGE)
    fail_fast: bool = flag("--fail-fast", "Stop at the first failing comparison.", rare=True, group=RUNS)
    warm_up: int = option("--warm-up", "N", "Warm-up runs before the measured run.", default=0, least=0, rare=True)
    batch_bytes: int | None = flag(
        "--low-memory", "Capture and compare tensors in small batches.", default=None, value=LOW_MEMORY_BATCH_BYTES)
    feeding: FeedRequest = part(factory=FeedRequest)
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on
    reference: EngineSpec | None = field(EngineSpec.of, default=None)
    targets: Sequence[EngineSpec] = field(spec_list, default=())
    saved: "Sequence[Saved]" = ()
    tolerances: "Sequence[Tolerance]" = field(tolerance_list, default=())
    strict: bool = True
    in_blocks: bool = True

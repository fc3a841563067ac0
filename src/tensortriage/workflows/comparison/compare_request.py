"""What is to be compared with what, and how it is judged."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.participants import Saved

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CompareRequest:
    """What to run and how to judge.

    Attributes:
        model: ONNX file; None when saved results alone are compared.
        reference: Engine taken as right; None when saved results are, or when nothing is compared.
        targets: Engines compared with it.
        saved: Results saved earlier; the first is the reference when there is no reference engine.
        target_model: What the targets run, when that is another file.
        feeding: Where the samples come from.
        outputs: Which tensors are compared.
        tolerances: All must accept; none means the noise floor.
        validate: Whether a NaN or Inf is a failure.
        fail_fast: Whether to stop at the first failure.
        warm_up: Warm-up runs before the run that counts.
        postprocess: Applied to every participant's outputs before they are compared.
        metric: Task metric of outputs and feed, larger is better.
        flatten: Whether outputs of equal size and other shape are compared flattened.
        batch_bytes: Largest amount of captured values held at once per participant; None for no limit.
        limits: For isolated engines.
        external_data_dir: Directory of the external data, if they do not lie beside the model.
        strict: Whether a tolerance for an output that is not compared is an error; else it is warned about.
        in_blocks: Whether a model that does not fit into memory is cut.
    """

    model: Path | None
    reference: EngineSpec | None = None
    targets: Sequence[EngineSpec] = ()
    saved: Sequence[Saved] = ()
    target_model: Path | None = None
    feeding: FeedRequest = dataclasses.field(default_factory=FeedRequest)
    outputs: OutputChoice = dataclasses.field(default_factory=OutputChoice)
    tolerances: Sequence[Tolerance] = ()
    validate: bool = False
    fail_fast: bool = False
    warm_up: int = 0
    postprocess: Callable[[Arrays], Arrays] | None = None
    metric: Callable[[Mapping[str, np.ndarray], Mapping[str, np.ndarray]], float] | None = None
    flatten: bool = False
    batch_bytes: int | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    external_data_dir: Path | None = None
    strict: bool = True
    in_blocks: bool = True


Recorder = Callable[[str, int, Mapping[str, np.ndarray]], None]
"""Called with participant name, feed number and outputs, before they are compared."""

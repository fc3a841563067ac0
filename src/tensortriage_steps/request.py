"""The request of ``triage steps``, each field with its option; light to import, for help is made of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.api import FeedRequest
from tensortriage.sdk import (
    LimitOptions,
    case_field,
    external_data_field,
    flag,
    fresh_field,
    model_field,
    option,
    part,
    reference_field,
    request,
    target_field,
)

if TYPE_CHECKING:
    from tensortriage.api import Limits


@request
class StepsRequest:
    """The model to run step by step, and its settings.

    Attributes:
        model: ONNX file.
    """

    # fmt: off
    model: Path = model_field()
    target: str = target_field(group="Engines")
    reference: str = reference_field()
    external_data_dir: Path | None = external_data_field()
    steps: int | None = option(
        "--steps", "N", "Number of steps  [default: one per sample of --inputs; 16 if there is one or none].",
        default=None, least=1, group="Steps")
    carry: Sequence[str] = option(
        "--carry", "OUTPUT=INPUT", "Output that is an input of the next step, with one * on both sides for several; "
        "repeatable; 'none' for nothing  [default: found by name].", default=())
    between: str = option(
        "--between", "FILE.py[:FUNCTION]", "Function next_feed(outputs, feed, step) that returns the inputs of the "
        "next step, as a diffusion scheduler does.", default="")
    logits: str = option(
        "--logits", "OUTPUT", "Output of scores over the vocabulary  [default: the one called logits].", default="")
    free_running: bool = flag(
        "--free-running", "Also let both engines generate alone, and judge the first token that differs.")
    drift: bool = flag("--no-drift", "Do not run the target on its own states as well.", default=True, rare=True)
    diagnosis: bool = flag(
        "--no-diagnosis", "Do not diagnose the first wrong step; print the command that would.",
        default=True, rare=True)
    feeding: FeedRequest = part(factory=FeedRequest)
    case: Path = case_field("--case --output -o")
    fresh: bool = fresh_field()
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on

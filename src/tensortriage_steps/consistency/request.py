"""The request of ``triage check consistency``, each field with its option; light to import, since help needs it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.api import FeedRequest
from tensortriage.sdk import (
    LimitOptions,
    external_data_field,
    flag,
    model_field,
    option,
    part,
    request,
    target_field,
)

if TYPE_CHECKING:
    from tensortriage.api import Limits


@request
class ConsistencyRequest:
    """The request of a consistency check.

    Attributes:
        model: ONNX file.
    """

    # fmt: off
    model: Path = model_field()
    target: str = target_field(group="Engine")
    streams: bool = flag(
        "--no-streams", "Do not run two sessions at the same time.", default=True, rare=True)
    external_data_dir: Path | None = external_data_field()
    rows: int | None = option(
        "--rows", "N", "Number of rows in a batch  [default: 8, or that of the first feed if larger].",
        default=None, least=2, group="Rows")
    batch_dimension: str = option(
        "--batch-dimension", "NAME", "Dynamic dimension that is the batch  [default: the first axis].", default="")
    feeding: FeedRequest = part(factory=FeedRequest)
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on

"""The request of a lint, each field with its option; light to import, since help needs it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import FeedRequest, LimitOptions, external_data_field, model_field, option, part, request

if TYPE_CHECKING:
    from tensortriage.api import Limits
    from tensortriage.sdk import Precision

ENGINE = "Engine"


@request
class LintRequest:
    """The request of a lint.

    Attributes:
        model: ONNX file.
    """

    # fmt: off
    model: Path = model_field()
    target: str | None = option(
        "--target -t", "ENGINE", "Engine on which every node is tried alone.",
        default="onnxruntime", group=ENGINE)
    formats: "tuple[Precision, ...]" = option(
        "--precision", "WORD...", "Formats that the model is meant for (fp16, bf16, ...); their traps are problems, "
        "not hints.", default=(), each="tensortriage.values.dtype:Precision.parse", group="Aims")
    external_data_dir: Path | None = external_data_field(group="Files")
    feeding: FeedRequest = part(factory=FeedRequest, most=1)
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on

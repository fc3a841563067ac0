"""The requests of ``triage baseline``, each field with its option; light to import, since help needs them."""

from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import (
    FeedRequest,
    LimitOptions,
    Place,
    argument,
    case_field,
    cluster_field,
    flag,
    model_field,
    option,
    part,
    request,
)
from tensortriage_fleet.cluster.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from tensortriage.api import Limits

FOLDER = Path(".triage-baseline")
"""Where baselines are kept unless another format is requested; to be committed."""
FAIL = ("output", "verdict", "model", "data", "missing")
"""Changes that fail a baseline by default."""
MAY_FAIL = (*FAIL, "engine", "version")
"""All that it can fail by."""


@request
class BaselineRequest:
    """Models, targets, and where their baselines are.

    Attributes:
        paths: Model files, and folders of them; none for all that have a baseline.
        targets: Engines; none for those of the baselines.
        inputs: Data for every model; none for those next to it, or of its baseline.
        folder: Folder of the baselines.
        fail: The kinds of change that fail a check.
        name: Name of the baseline of the only model, in place of its path.
        alone: Whether a model that is another is kept without its baselines on other targets.
    """

    # fmt: off
    paths: tuple[Path, ...] = argument("FOLDER_OR_FILES...", default=())
    targets: tuple[str, ...] = option("--targets --target -t", "ENGINE...", "Engines  [default: those of the "
                                      "baselines].", default=())
    inputs: tuple[str, ...] = option("--inputs", "PATH...", "Data for every model  [default: those that its baseline "
                                     "names, else NAME.npz or test_data_set_* next to it, else made up].", default=())
    folder: Path = option("--baseline", "DIR", "Folder of the baselines, to be committed; paths in it are relative to "
                          "the folder that holds it.", default=FOLDER)
    fail: tuple[str, ...] = option("--fail", "WORD...", f"Changes that make it fail, of {', '.join(MAY_FAIL)}.",
                                   default=FAIL, choices=MAY_FAIL)
    arrays: bool = flag("--arrays", "Save the outputs themselves too, as --load-outputs of triage run takes them.")
    fresh: bool = flag("--fresh", "Run every engine again.")
    jobs: int = option("--jobs -j", "N", "Number of parallel processes.", default=1, least=1, group="Limits")
    cluster: ClusterSpec | None = cluster_field("Run them there: ", read=ClusterSpec.parse)
    timeout_seconds: float | None = option("--timeout", "SECONDS", "Time limit of each process.", default=None, above=0)
    memory_limit: str = option("--memory-limit", "BYTES", "Memory limit of each process, e.g. 8G.", default="")
    case: Path = case_field(
        default="triage-baseline", text="Directory of answers, documents and reports, not to be committed.")
    # fmt: on
    name: str = ""
    alone: bool = False


@request
class MeasureRequest:
    """A model, a target, and data.

    Attributes:
        model: The model.
        target: The engine.
        envelope: Whether healthy evaluations run in its place.
        output: File for the target's outputs; None for none.
    """

    # fmt: off
    model: Path = model_field()
    target: str = option("--target", "ENGINE", "The engine.", needed=True)
    envelope: bool = flag("--envelope", "Evaluate the model as healthy engines do.")
    output: Path | None = option("--output -o", "FILE", "File for the outputs.", default=None, writes=Place.FILE)
    feeding: FeedRequest = part(factory=FeedRequest)
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on

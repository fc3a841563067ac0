"""The request of a reduction, and the words that its options take."""

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tensortriage.compare.judgement.tolerance_options import ToleranceOptions, atol_field
from tensortriage.engines.spec import spec_text
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
    case_field,
    cluster_field,
    external_data_field,
    fresh_field,
    model_field,
    reference_field,
    samples_field,
)
from tensortriage.search.search_result import SearchBudget
from tensortriage.values.options import flags, option, part, request
from tensortriage.values.output_files import Place

if TYPE_CHECKING:
    from tensortriage.compare.judgement.tolerance import Tolerance
    from tensortriage.engines.base import Limits
    from tensortriage.inputs.syntax import Shape
    from tensortriage.runs.commands.check import CheckSpec

ENGINES, SEARCH, SHAPES = "Engines (instead of --check)", "Search", "Shapes"


class ReduceMode(enum.Enum):
    """Ways to choose pieces, two of them Polygraphy's; the value is the word on the command line."""

    AUTO = "auto"
    BLOCKS = "blocks"
    BISECT = "bisect"
    LINEAR = "linear"

    @property
    def is_polygraphys(self) -> bool:
        """Whether it does as Polygraphy does."""
        return self in (ReduceMode.BISECT, ReduceMode.LINEAR)

    def ends(self, ends: "Ends") -> "Ends":
        """Return how candidates are completed: the modes of Polygraphy choose theirs complete."""
        return Ends.BOTH if self.is_polygraphys else ends


class Ends(enum.Enum):
    """Which ends of the model a reduction may cut off."""

    BOTH = "both"
    KEEP_INPUTS = "keep-inputs"
    """Pieces start at the inputs of the model: with a node they hold all that leads to it."""
    KEEP_OUTPUTS = "keep-outputs"
    """Pieces end at the outputs of the model: with a node they hold all that follows from it."""


class ShapeSource(enum.Enum):
    """The source of types and shapes; the value is the word in files."""

    INFERENCE = "inference"
    """By shape inference; by running the model where that leaves a type open."""
    RUN = "run"
    """By running the model; nothing stays dynamic."""
    DECLARED = "declared"
    """As the model declares them."""


class Person(Protocol):
    """A judge of whether a model fails."""

    def judge(self, model: Path, nodes: int) -> bool | None:
        """Return whether a model fails; None when that is undecided.

        Raises:
            UndoError: To take the last answer back.
            KeyboardInterrupt: To end with the result so far.
        """
        ...


@request
class ReduceRequest:
    """A request to reduce a model.

    Attributes:
        model: ONNX file that fails.
        target: Spec of the engine that fails; empty when a command or a person judges.
        check: The command that judges; None when engines or a person do.
        tolerance: The user's own tolerance for the model's outputs; None to judge by the noise floor.
        person: Asks a person for judgements, when there is neither engine nor command.
        batch_bytes: Largest amount of captured tensors held at once.
    """

    # fmt: off
    model: Path = model_field()
    output: Path | None = option(
        "--output -o", "FILE", "ONNX file for the smallest piece that fails.",
        default=None, writes=Place.FILE, group="Result")
    min_good: Path | None = option(
        "--min-good --minimal-good", "FILE", "ONNX file for a passing piece of about that size.",
        default=None, writes=Place.FILE)
    case: Path = case_field()
    fresh: bool = fresh_field()
    target: str = option(
        "--target -t", "ENGINE", "Engine that fails, NAME[:key=value,...]; pieces are fed with golden values.",
        default="", accepts=spec_text, group=ENGINES)
    reference: str = reference_field()
    tolerance: "Tolerance | None" = part(factory=ToleranceOptions, atol=atol_field(
        "Absolute tolerance of the model's outputs instead of the noise floor."))
    shrink_seconds: float | None = option(
        "--shrink-budget", "SECONDS", "Time for shrinking sizes, inputs and weights as well  [default: 60; with "
        "--check 0, because every step takes a check and the inputs belong to the check].",
        default=None, least=0, group=ENGINES)
    check: "CheckSpec | None" = part(factory=CheckOptions)
    save_replay: Path | None = save_replay_field()
    load_replay: Path | None = load_replay_field()
    mode: ReduceMode = option(
        "--mode", "", "auto: until no single node can be left out; blocks: until no block of nodes can; bisect, "
        "linear: as Polygraphy does.", default=ReduceMode.AUTO, group=SEARCH)
    ends: Ends = flags(
        ("--no-reduce-inputs", Ends.KEEP_INPUTS, "Keep the inputs; cut at the end only."),
        ("--no-reduce-outputs", Ends.KEEP_OUTPUTS, "Keep the outputs; cut at the beginning only."),
        default=Ends.BOTH, slug="reduce-nothing-left")
    jobs: int = option(
        "--jobs -j", "N", "Number of checks at once; each command then runs in a folder of its own.",
        default=1, least=1)
    cluster: NamedCluster | None = cluster_field("Run checks of --check there: ")
    premise: int = option(
        "--premise", "N", "Runs of the whole model before the search; give more for a fault that rarely shows.",
        default=3, least=1)
    budget: SearchBudget = part(
        factory=SearchBudget,
        checks=option("--max-checks", "N", "End after N checks, with the smallest piece so far.",
                      default=None, least=1),
        seconds=option("--budget", "SECONDS", "End after this time, with the smallest piece so far.",
                       default=None, least=0))
    artifact: Path = artifact_field(
        "polygraphy_debug.onnx", "File in which the check, or you, find the piece to judge.")
    keep_artifact: bool = keep_artifact_field()
    input_shapes: "Mapping[str, Shape]" = option(
        "--model-input-shapes --model-inputs", "NAME:SHAPE...", "Shapes to give to the model's inputs.",
        default_factory=dict, read="tensortriage.inputs.syntax:parse_shapes", group=SHAPES)
    shape_source: ShapeSource = flags(
        ("--force-fallback-shape-inference", ShapeSource.RUN,
         "Take shapes from running the model in ONNX Runtime; nothing stays dynamic."),
        ("--no-shape-inference", ShapeSource.DECLARED, "Use only the shapes that the model declares."),
        default=ShapeSource.INFERENCE, rare=True)
    external_data_dir: Path | None = external_data_field()
    feeding: FeedRequest = part(factory=FeedRequest, most=samples_field(8, group=ENGINES))
    limits: "Limits" = part(factory=LimitOptions)
    # fmt: on
    person: Person | None = None
    batch_bytes: int | None = BATCH_BYTES

    def __post_init__(self) -> None:
        if self.output is None and self.min_good is None:
            raise UsageError(
                "no file is named for the result",
                slug="reduce-no-output",
                cure="give -o FILE, --min-good FILE or both",
            )
        if self.target and self.check is not None:
            raise UsageError(
                "--target and --check exclude each other: either an engine or a command judges the pieces",
                slug="reduce-two-judges",
                cure="give one of them",
            )

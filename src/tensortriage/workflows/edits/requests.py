"""The requests of edits, each field with its option; light to import, since help needs them."""

import enum
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.feeds.feed_request import FEED_FORMATS, FeedRequest
from tensortriage.runs.options.request_fields import MODEL_FILE, external_data_field
from tensortriage.values.given import resolved
from tensortriage.values.options import argument, flag, option, part, request
from tensortriage.values.output_files import Place
from tensortriage.values.text import parse_bytes

if TYPE_CHECKING:
    import numpy as np

    from tensortriage.compare.judgement.judgement import Judgement
    from tensortriage.compare.metrics.tensor_metrics import Metrics
    from tensortriage.inputs.feed import Feed
    from tensortriage.model.model import ExternalData, ExternalLayout, Model

FILES, PROOF, SHAPES = "Files", "Verification", "Shape inference"
FORMAT, OUTPUTS = "Format", "Outputs"
NODES = "tensortriage.model.cutting.node_selection:NodeChoice"
CHOICE = "tensortriage.workflows.common.output_selection:OutputChoice"
FEED_NAMES = "--load-inputs --load-input-data"


class Verify(enum.Enum):
    """When to prove an edit: when possible, always (else it is an error), or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    @classmethod
    def of(cls, word: bool) -> "Verify":
        """Return the choice by ``--verify`` or ``--no-verify``."""
        return cls.ALWAYS if word else cls.NEVER


@frozen_dataclass
class Source:
    """A model to edit.

    Attributes:
        path: ONNX file.
        mend_names: Whether to rename values that several nodes make under one name.
    """

    # fmt: off
    path: Path = argument("MODEL")
    external_data_dir: Path | None = external_data_field(group=FILES)
    ignore_external_data: bool = flag(
        "--ignore-external-data", "Do not read external data; OUT refers to them as MODEL does. The weights are then "
        "unknown, and nothing is verified.", rare=True)
    # fmt: on
    mend_names: bool = False

    @classmethod
    def of(cls, given: object) -> "Source":
        """Return a source, which may be given as a file or as a model in memory.

        Raises:
            TypeError: For anything else.
        """
        return given if isinstance(given, cls) else cls(resolved(MODEL_FILE)(given))

    def load(self) -> "Model":
        """Load the model; one with its weights elsewhere has no path, because engines cannot load that file."""
        from tensortriage.model.model import Model

        model = Model.load(
            self.path,
            external_data_dir=self.external_data_dir,
            ignore_external_data=self.ignore_external_data,
            mend_names=self.mend_names,
        )
        return model if self.external_data_dir is None else Model.from_ir(model.ir)


@request
class LayoutOptions:
    """Where the weights of a written model go.

    Attributes:
        embed: Whether they go into its own file.
        usual: Their default place, a name of `tensortriage.model.model.ExternalData`.
    """

    # fmt: off
    location: str | None = option(
        "--save-external-data --external-data-path", "[FILE]", "Write the weights to one file next to the model  "
        "[default name: OUT.data]. Without this option they stay where they are: embedded, or in their files when OUT "
        "lies in the same directory.", default=None, empty="")
    threshold: str = option(
        "--external-data-size-threshold", "BYTES", "Smaller weights stay in the model file, e.g. 1K  [default: 1024].",
        default="", rare=True)
    apart: bool = flag("--no-save-all-tensors-to-one-file", "One file per weight, in a directory.", rare=True)
    # fmt: on
    embed: bool = False
    usual: str = "LEAVE"

    def value(self) -> "ExternalData | ExternalLayout":
        """Return where the weights go.

        Raises:
            UsageError: When an option refines --save-external-data without it (``option-needs-another``), or they
                would go to two places (``usage``).
        """
        from tensortriage.model.model import ExternalData, ExternalLayout

        threshold = parse_bytes(self.threshold) if self.threshold != "0" else 0
        if self.location is not None:
            if self.embed:
                message = "--embed-weights and --save-external-data contradict each other"
                raise UsageError(message, slug="usage", cure="give one of them")
            return ExternalLayout(self.location, 1024 if threshold is None else threshold, not self.apart)
        if threshold is not None or self.apart:
            raise UsageError(
                "--external-data-size-threshold and --no-save-all-tensors-to-one-file apply only to weights that are "
                "saved in files of their own",
                slug="option-needs-another",
                cure="add --save-external-data",
            )
        return ExternalData.AUTO if self.embed else ExternalData[self.usual]


@frozen_dataclass
class Target:
    """Where an edited model goes.

    Attributes:
        external_data: Place of its weights.
    """

    path: Path = option("--output -o", "OUT", "ONNX file to write.", writes=Place.FILE, group=FILES)
    external_data: "ExternalData | ExternalLayout" = part(factory=LayoutOptions)

    @classmethod
    def of(cls, given: object) -> "Target":
        """Return a target, which may be given as the file.

        Raises:
            TypeError: For anything else.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, (str, Path)):
            return cls(Path(given))
        raise TypeError("give the path of the ONNX file to write")

    def write(self, model: "Model") -> None:
        """Write the model."""
        model.save(self.path, external_data=self.external_data)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The model file, and the data file that may be written with it."""
        location = getattr(self.external_data, "location", "")
        return self.path, self.path.parent / (location or f"{self.path.name}.data")


def feeding_field(names: str = FEED_NAMES, *, shapes: Any = None) -> FeedRequest:
    """Declare real data for the proof; ``--inputs`` means something else in some commands."""
    paths = option(names, "PATH...", f"Real data for the verification: {FEED_FORMATS}", default=(), reads=True)
    return part(factory=FeedRequest, group=PROOF, limits=None, paths=paths, shapes=shapes)


def verify_field(text: str = "") -> Verify:
    """Declare whether the result is proven."""
    usual = (
        "Run the model before and after the edit on ONNX Runtime, and refuse the edit if outputs moved beyond the "
        "noise floor  [default: when the model can be run and its weights are below 2 GiB]."
    )
    return option("--verify/--no-verify", "", text or usual, default=Verify.AUTO, read=Verify.of, group=PROOF)


class EditJudge(Protocol):
    """Decides how far outputs may move."""

    def judge(
        self, feed: "Feed", metrics: "Mapping[str, Metrics]", references: "Mapping[str, np.ndarray]"
    ) -> "Mapping[str, Judgement]":
        """Judge outputs of one feed; see `tensortriage.workflows.common.judged.HealthyJudge`."""
        ...


@request
class ProofRequest:
    """A request to prove an edit.

    Attributes:
        feeding: The source of the samples; at most 8 are used.
        outputs: The outputs that must not move; None for all. With none, only that the edited model runs is proven.
        engines: Engines that can run the edited model; the first usable one does.
        judge: Makes the judge of an edit from the model before it; by default fp32 floors.
    """

    verify: Verify = verify_field()
    feeding: FeedRequest = feeding_field()
    outputs: Sequence[str] | None = None
    engines: Sequence[EngineSpec] = (PLAIN,)
    judge: "Callable[[Model], EditJudge] | None" = None


def outputs_field(prefix: str, **more: Any) -> Any:
    """Declare which values become outputs."""
    return part(
        factory=CHOICE,
        mark=option(f"--{prefix}outputs", "NAME...", "New outputs, instead of the model's own: names, patterns, '*' or "
                    "'mark all'.", default=(), **more),
        exclude=option(f"--{prefix}exclude-outputs", "NAME...", "Outputs to leave out.", default=(), **more),
        by_type=option(f"--{prefix}outputs-by-type", "OP...", "Results of every node of these op types become outputs.",
                       default=(), **more),
    )  # fmt: skip


def infer_field(text: str = "Infer shapes and declare them.") -> bool:
    """Declare whether shapes are inferred."""
    return flag("--shape-inference --do-shape-inference", text, rare=True, group=SHAPES)

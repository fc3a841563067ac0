"""Requests to edit models, each field with its option; light to import, since help is made of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensortriage.api import FeedRequest, Source, Target
from tensortriage.sdk import (
    FEED_NAMES,
    NODES,
    SHAPES,
    LayoutOptions,
    ProofRequest,
    UsageError,
    Verify,
    feeding_field,
    flag,
    infer_field,
    option,
    outputs_field,
    parse_bytes,
    part,
    request,
    shapes_field,
    verify_field,
)

if TYPE_CHECKING:
    from tensortriage.envelope.sdk import ValueSpec
    from tensortriage.model.sdk import FoldOptions, NodeChoice
    from tensortriage.sdk import DType, OutputChoice, Shape

CUT, EDITS, FOLDING = "What to cut out", "Edits", "Constant folding"


def no_inference_field() -> bool:
    """Declare whether no shapes are inferred."""
    return flag("--no-shape-inference", "Declare no inferred shapes.", default=True, group=SHAPES)


@request
class FoldArguments:
    """Options of constant folding."""

    # fmt: off
    fold: bool = flag("--fold-constants", "Compute nodes that do not depend on the inputs.", group=FOLDING)
    limit: str = option(
        "--fold-size-threshold", "BYTES", "Do not fold results larger than this, e.g. 16M  [default: 1G].", default="")
    passes: int | None = option(
        "--num-passes --num-const-fold-passes", "N", "Folding passes  [default: until nothing changes].",
        default=None, least=1, rare=True)
    shapes: bool = flag(
        "--no-fold-shapes", "Do not fold Shape nodes and the nodes that depend on them.", default=True, rare=True)
    infer: bool = no_inference_field()
    infer_each: bool = flag(
        "--no-per-pass-shape-inference", "No shape inference before each folding pass.",
        default=True, rare=True, group=FOLDING)
    # fmt: on

    def value(self) -> "FoldOptions | None":
        """Return how constants are folded; None when they are not.

        Raises:
            UsageError: When an option refines --fold-constants without it (``option-needs-another``).
        """
        from tensortriage.model.sdk import FoldOptions

        limit = parse_bytes(self.limit)
        if self.fold:
            most = {} if limit is None else {"max_result_bytes": limit}
            return FoldOptions(
                passes=self.passes, shapes=self.shapes, infer_shapes=self.infer and self.infer_each, **most
            )
        if limit is not None or self.passes or not self.shapes or not self.infer_each:
            raise UsageError(
                "options of constant folding without --fold-constants",
                slug="option-needs-another",
                cure="add --fold-constants",
            )
        return None


_WITH_SHAPES = feeding_field(f"--inputs {FEED_NAMES}", shapes=shapes_field(rare=True, group=SHAPES))


@request
class SanitizeRequest:
    """A request to sanitize a model.

    Attributes:
        source: The model.
        target: The file to write.
        fold: How to fold constants; None not to.
        feeding: Data for running the model.
        proof: How to prove the result.
        strict: Whether a shape for a name that is no input is an error; else it is a warning.
    """

    # fmt: off
    input_shapes: "Mapping[str, Shape]" = option(
        "--override-input-shapes --override-inputs", "NAME:SHAPE...",
        "New shapes of the inputs, e.g. x:[1,3,224,224] ids:[batch,128].",
        default_factory=dict, read="tensortriage.sdk:parse_shapes", group=EDITS)
    outputs: "OutputChoice" = outputs_field("")
    clean: bool = flag("--cleanup", "Remove nodes and weights that no output depends on.")
    bounds: Mapping[str, int] = option(
        "--set-unbounded-dds-upper-bound", "[NAME:]N...", "Limit data-dependent sizes by a Min node; without NAME all "
        "those that 'inspect model' lists.",
        default_factory=dict, read="tensortriage_surgeon.syntax:parse_bounds", rare=True)
    to_fp16: bool = flag("--fp-to-fp16", "Convert to fp16; see triage convert.", rare=True)
    infer_shapes: bool = no_inference_field()
    run_for_shapes: bool = flag(
        "--force-fallback-shape-inference", "Run the model and declare the shapes of that run; all become static.",
        rare=True)
    fold: "FoldOptions | None" = part(factory=FoldArguments)
    source: Source = part(factory=Source, mend_names=True)
    target: Target = part(factory=Target)
    feeding: FeedRequest = _WITH_SHAPES
    proof: ProofRequest = part(factory=ProofRequest, feeding=_WITH_SHAPES)
    # fmt: on
    strict: bool = True


@request
class ExtractRequest:
    """A request to extract a part.

    Attributes:
        source: The model.
        target: The file to write.
        nodes: Nodes to cut out; with none, the cut lies between `inputs` and `outputs`.
        inputs: Values at which the cut starts, with type and shape as far as given; None for the model's inputs.
        outputs: Values at which it ends, with type as far as given; None for the model's outputs, or for values that
            leave the chosen nodes.
        feeding: Data for running the model.
        keep_data: Whether the data that reach the cut, and its right outputs, are written next to it.
    """

    # fmt: off
    inputs: "Mapping[str, ValueSpec] | None" = option(
        "--inputs", "NAME:SHAPE:TYPE...", "Values at which the cut starts, e.g. x:[1,3]:float32 or x:auto:auto  "
        "[default: the inputs].", default=None, read="tensortriage_surgeon.syntax:parse_metadata", group=CUT)
    outputs: "Mapping[str, DType | None] | None" = option(
        "--outputs", "NAME:TYPE...", "Values at which the cut ends, e.g. y:float32 or y:auto  [default: the outputs].",
        default=None, read="tensortriage_surgeon.syntax:parse_outputs")
    nodes: "NodeChoice" = part(
        factory=NODES,
        names=option("--nodes", "NAME...", "Nodes to cut out: names and patterns.", default=()),
        ranges=option("--node-range", "FIRST LAST", "Nodes from FIRST to LAST in topological order: names or "
                      "positions.", default=(), several=True, words=2),
        op_types=option("--op-types", "OP...", "Every node of these op types.", default=()),
        scopes=option("--scope", "MODULE...", "Every node of a module of the network, e.g. encoder.layer.3 or "
                      "encoder.layer.*.mlp.", default=()))
    body: str = option(
        "--body", "NODE[:BRANCH]", "Cut inside the body of this If, Loop or Scan; alone: the whole body.", default="")
    infer_shapes: bool = infer_field("Infer shapes even where types and ranks are declared.")
    run_for_shapes: bool = flag(
        "--force-fallback-shape-inference", "Take types and shapes from a run of the model; all become static.",
        rare=True)
    source: Source = part(factory=Source)
    target: Target = part(factory=Target, external_data=part(factory=LayoutOptions, usual="AUTO"))
    verify: Verify = verify_field()
    feeding: FeedRequest = feeding_field(
        shapes=shapes_field("--model-input-shapes --model-inputs", rare=True, group=SHAPES))
    # fmt: on
    keep_data: bool = False

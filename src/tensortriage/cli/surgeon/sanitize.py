"""``triage surgeon sanitize``: fold constants, choose outputs and input shapes, infer shapes, clean up."""

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.options import READ, GuideCommand, common, option, shapes_option, together
from tensortriage.cli.surgeon.edit_values import FoldValues, SanitizeValues
from tensortriage.cli.surgeon.options import (
    FEED_LISTS,
    OWN_INFERENCE,
    SHAPES,
    feed_option,
    feeding_of,
    file_options,
    layout_of,
    proof_options,
    source_of,
    verify_of,
)
from tensortriage.errors import UsageError
from tensortriage.values.text import parse_bytes

if TYPE_CHECKING:
    from tensortriage.model.transforms.constant_folding import FoldOptions

EPILOG = """\b
Examples:
  triage surgeon sanitize model.onnx --fold-constants -o folded.onnx
  triage surgeon sanitize model.onnx --fold-constants --load-inputs real.npz -o folded.onnx
  triage surgeon sanitize model.onnx --override-input-shapes x:[1,3,224,224] --cleanup -o static.onnx
  triage surgeon sanitize model.onnx --outputs hidden logits --cleanup -o cut.onnx
"""
EDITS, FOLDING = "Edits", "Constant folding"
LISTS = (
    *FEED_LISTS, "--inputs", "--override-input-shapes", "--override-inputs", "--outputs", "--exclude-outputs",
    "--outputs-by-type", "--set-unbounded-dds-upper-bound", "--input-shapes",
)  # fmt: skip


options = together(
    option(
        "--fold-constants",
        "fold",
        is_flag=True,
        heading=FOLDING,
        help="Compute what does not depend on the inputs.",
    ),
    option(
        "--fold-size-threshold",
        default="",
        metavar="BYTES",
        heading=FOLDING,
        help="Do not fold results larger than this, e.g. 16M  [default: 1G].",
    ),
    option(
        "--num-passes",
        "--num-const-fold-passes",
        "passes",
        type=click.IntRange(1),
        metavar="N",
        heading=FOLDING,
        rare=True,
        help="Folding passes  [default: until nothing changes].",
    ),
    option(
        "--no-fold-shapes",
        is_flag=True,
        heading=FOLDING,
        rare=True,
        help="Do not fold Shape nodes and what depends on them.",
    ),
    option(
        "--no-per-pass-shape-inference",
        is_flag=True,
        heading=FOLDING,
        rare=True,
        help="No shape inference before each folding pass.",
    ),
    option(
        "--partitioning",
        type=click.Choice(["basic", "recursive"]),
        expose_value=False,
        heading=FOLDING,
        rare=True,
        help="Accepted; a node that cannot be folded never keeps another from being folded.",
    ),
    option(
        "--override-input-shapes",
        "--override-inputs",
        "override",
        multiple=True,
        metavar="NAME:SHAPE...",
        heading=EDITS,
        help="New shapes of the inputs, e.g. x:[1,3,224,224] ids:[batch,128].",
    ),
    option(
        "--outputs",
        "mark",
        multiple=True,
        metavar="NAME...",
        heading=EDITS,
        help="New outputs, instead of the model's own: names, patterns, '*' or 'mark all'.",
    ),
    option(
        "--exclude-outputs",
        "exclude",
        multiple=True,
        metavar="NAME...",
        heading=EDITS,
        help="Outputs to leave out.",
    ),
    option(
        "--outputs-by-type",
        "by_type",
        multiple=True,
        metavar="OP...",
        heading=EDITS,
        help="Results of every node of these op types become outputs.",
    ),
    option("--cleanup", is_flag=True, heading=EDITS, help="Remove nodes and weights that no output depends on."),
    option("--toposort", is_flag=True, expose_value=False, heading=EDITS, help="Accepted; nodes are always sorted."),
    option(
        "--set-unbounded-dds-upper-bound",
        "bounds",
        multiple=True,
        metavar="[NAME:]N...",
        heading=EDITS,
        rare=True,
        help="Limit data-dependent sizes by a Min node; without NAME all those that 'inspect model' lists.",
    ),
    option(
        "--fp-to-fp16",
        "to_fp16",
        is_flag=True,
        heading=EDITS,
        rare=True,
        help="Convert to fp16; see triage convert.",
    ),
    option("--no-shape-inference", is_flag=True, heading=SHAPES, help="Declare no inferred shapes."),
    option(
        "--force-fallback-shape-inference",
        "run_for_shapes",
        is_flag=True,
        heading=SHAPES,
        rare=True,
        help="Run the model and declare the shapes of that run; all become static.",
    ),
    OWN_INFERENCE,
    shapes_option("--input-shapes", heading=SHAPES, rare=True),
)
"""The options of ``surgeon sanitize``."""


@click.command(cls=GuideCommand, value_lists=LISTS, epilog=EPILOG)
@click.argument("model", type=READ)
@options
@file_options
@proof_options
@feed_option("--inputs")
@common
def sanitize(model: Path, as_json: bool, **given: Unpack[SanitizeValues]) -> None:
    """Write MODEL cleaner than it was: constants folded, shapes inferred, other outputs or input shapes.

    The result is run against MODEL before it is written; an edit that moves an output is refused by name.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.inputs.syntax import parse_named, parse_shapes
    from tensortriage.model.model import ExternalData
    from tensortriage.workflows.common.output_selection import OutputChoice
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.sanitize import SanitizeRequest, sanitize
    from tensortriage.workflows.edits.verify_edit import ProofRequest

    feeding = feeding_of(given, given["feeds"], shapes=given["input_shapes"])
    strict = not click.get_current_context().meta.get(COMPATIBLE)
    result = sanitize(
        SanitizeRequest(
            source=source_of(model, given, mend_names=True),
            target=Target(given["output"], layout_of(given, ExternalData.LEAVE)),
            outputs=OutputChoice(given["mark"], given["exclude"], given["by_type"], strict=strict),
            input_shapes=parse_shapes(given["override"]),
            strict=strict,
            fold=fold_options(given),
            clean=given["cleanup"],
            infer_shapes=not given["no_shape_inference"],
            run_for_shapes=given["run_for_shapes"],
            bounds=parse_named(given["bounds"], bound),
            to_fp16=given["to_fp16"],
            feeding=feeding,
            proof=ProofRequest(verify=verify_of(given["verify"]), feeding=feeding),
        )
    )
    show(result, as_json=as_json)


def fold_options(given: FoldValues) -> "FoldOptions | None":
    """Return how constants are folded; None when they are not.

    Raises:
        UsageError: When an option refines --fold-constants without it (slug ``option-needs-another``).
    """
    from tensortriage.model.transforms.constant_folding import FoldOptions

    limit = parse_bytes(given["fold_size_threshold"])
    infer = not (given["no_shape_inference"] or given["no_per_pass_shape_inference"])
    if given["fold"]:
        options = FoldOptions(passes=given["passes"], shapes=not given["no_fold_shapes"], infer_shapes=infer)
        return options if limit is None else FoldOptions(
            max_result_bytes=limit, passes=given["passes"], shapes=not given["no_fold_shapes"], infer_shapes=infer
        )  # fmt: skip
    if limit is not None or given["passes"] or given["no_fold_shapes"] or given["no_per_pass_shape_inference"]:
        raise UsageError(
            "options of constant folding without --fold-constants",
            slug="option-needs-another",
            cure="add --fold-constants",
        )
    return None


def bound(text: str) -> int:
    """Return a bound on a size.

    Raises:
        UsageError: For anything but a positive integer (slug ``value-malformed``).
    """
    if not text.isdigit() or not int(text):
        raise UsageError(
            f"'{text}' is not a bound on a size", slug="value-malformed", cure="write [NAME:]N, e.g. 1000 or boxes:300"
        )
    return int(text)

"""Options that the commands which edit a model share, and what they mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.cli.option_values import LayoutValues, MadeUpValues
from tensortriage.cli.options import (
    FEED_FORMATS,
    READ_WORD,
    WRITTEN_FILE,
    Adds,
    external_data_option,
    made_up_options,
    model_type_option,
    option,
    own_inference,
    together,
)
from tensortriage.cli.surgeon.edit_values import FileValues
from tensortriage.errors import UsageError
from tensortriage.values.text import parse_bytes

if TYPE_CHECKING:
    from tensortriage.model.model import ExternalData, ExternalLayout
    from tensortriage.runs.feeds.feed_request import FeedRequest
    from tensortriage.workflows.edits.edit_pipeline import Source
    from tensortriage.workflows.edits.verify_edit import Verify

FILES, PROOF, DATA, SHAPES = "Files", "Verification", "Data", "Shape inference"
FEED_LISTS = ("--load-inputs", "--load-input-data", "--val-range")


def layout_options(heading: str) -> Adds:
    """Declare where the weights of a written model go."""
    return together(
        option(
            "--save-external-data",
            "--external-data-path",
            "external_location",
            is_flag=False,
            flag_value="",
            metavar="[FILE]",
            heading=heading,
            help="Write the weights to one file beside the model  [default name: OUT.data]. Without this option they "
            "stay where they are: embedded, or in their files when OUT lies in the same directory.",
        ),
        option(
            "--external-data-size-threshold",
            "external_threshold",
            default="",
            metavar="BYTES",
            heading=heading,
            rare=True,
            help="Smaller weights stay in the model file, e.g. 1K  [default: 1024].",
        ),
        option(
            "--no-save-all-tensors-to-one-file",
            "apart",
            is_flag=True,
            heading=heading,
            rare=True,
            help="One file per weight, in a directory.",
        ),
    )


file_options = together(
    option(
        "--output",
        "-o",
        type=WRITTEN_FILE,
        required=True,
        metavar="OUT",
        heading=FILES,
        help="ONNX file to write.",
    ),
    layout_options(FILES),
    external_data_option(FILES),
    option(
        "--ignore-external-data",
        "ignore_external_data",
        is_flag=True,
        heading=FILES,
        rare=True,
        help="Do not read external data; OUT refers to them as MODEL does. The weights are then unknown, and nothing "
        "is verified.",
    ),
    model_type_option(FILES),
)
"""What says where the model and its weights are read from and written to."""


def feed_option(*names: str) -> Adds:
    """Declare the option that names real data for the proof; ``--inputs`` means something else in some commands."""
    return option(
        *names,
        "--load-inputs",
        "--load-input-data",
        "feeds",
        multiple=True,
        metavar="PATH...",
        heading=PROOF,
        type=READ_WORD,
        help=f"Real data for the verification: {FEED_FORMATS}",
    )


proof_options = together(
    option(
        "--verify/--no-verify",
        "verify",
        default=None,
        heading=PROOF,
        help="Run the model before and after the edit on ONNX Runtime, and refuse the edit if outputs moved beyond "
        "the noise floor  [default: when the model can be run and its weights are below 2 GiB].",
    ),
    made_up_options(PROOF),
)
"""What says whether the result is proven, and how data for it are made up."""


def source_of(model: Path, given: FileValues, *, mend_names: bool = False) -> "Source":
    """Return the model to edit; with ``mend_names`` values of one name are told apart while it is loaded."""
    from tensortriage.workflows.edits.edit_pipeline import Source

    return Source(model, given["external_data_dir"], given["ignore_external_data"], mend_names)


def layout_of(given: LayoutValues, default: "ExternalData") -> "ExternalData | ExternalLayout":
    """Return where the weights go.

    Raises:
        UsageError: When an option refines --save-external-data without it (slug ``option-needs-another``).
    """
    from tensortriage.model.model import ExternalLayout

    threshold = parse_bytes(given["external_threshold"]) if given["external_threshold"] != "0" else 0
    if given["external_location"] is None:
        if threshold is not None or given["apart"]:
            raise UsageError(
                "--external-data-size-threshold and --no-save-all-tensors-to-one-file apply only to weights that are "
                "saved in files of their own",
                slug="option-needs-another",
                cure="add --save-external-data",
            )
        return default
    return ExternalLayout(given["external_location"], 1024 if threshold is None else threshold, not given["apart"])


OWN_INFERENCE = own_inference(SHAPES)
INFER_SHAPES = option(
    "--shape-inference",
    "--do-shape-inference",
    "infer_shapes",
    is_flag=True,
    heading=SHAPES,
    rare=True,
    help="Infer shapes and declare them.",
)


def verify_of(word: bool | None) -> "Verify":
    """Return whether the result is proven, of what ``--verify`` says."""
    from tensortriage.workflows.edits.verify_edit import Verify

    return Verify.AUTO if word is None else Verify.ALWAYS if word else Verify.NEVER


def feeding_of(given: MadeUpValues, paths: Sequence[str], *, shapes: tuple[str, ...] = ()) -> "FeedRequest":
    """Return where the data for the proof come from.

    Args:
        given: How data are made up.
        paths: Files of real data.
        shapes: Shapes of dynamic inputs, ``NAME:SHAPE``.
    """
    from tensortriage.inputs.syntax import parse_ranges, parse_shapes
    from tensortriage.runs.feeds.feed_request import FeedRequest

    return FeedRequest(
        paths=tuple(paths),
        script=given["data_loader_script"],
        seed=given["seed"],
        iterations=given["iterations"],
        value_ranges=parse_ranges(given["val_range"]),
        shapes=parse_shapes(shapes),
    )

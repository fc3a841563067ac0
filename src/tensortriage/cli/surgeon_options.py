"""Options that the commands which edit a model share, and what they mean."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tensortriage.cli.options import F, option, parse_bytes
from tensortriage.errors import UsageError

if TYPE_CHECKING:
    from tensortriage.model.model import ExternalData, ExternalLayout
    from tensortriage.workflows.feeding import FeedRequest
    from tensortriage.workflows.proving import Verify
    from tensortriage.workflows.surgery import Source

FILES, PROOF, DATA, SHAPES = "Files", "Proof", "Data", "Shape inference"
FEED_LISTS = ("--load-inputs", "--load-input-data", "--val-range")


def file_options(function: F) -> F:
    """Add what says where the model and its weights are read from and written to."""
    for add in reversed(
        (
            option(
                "--output",
                "-o",
                type=click.Path(path_type=Path),
                required=True,
                metavar="OUT",
                heading=FILES,
                help="ONNX file to write.",
            ),
            option(
                "--save-external-data",
                "--external-data-path",
                "external_location",
                is_flag=False,
                flag_value="",
                metavar="[FILE]",
                heading=FILES,
                help="Weights go into one file beside the model  [default name: OUT.data]. Without it they stay as "
                "they are: embedded, or in their files when OUT lies in the same directory.",
            ),
            option(
                "--external-data-size-threshold",
                "external_threshold",
                default="",
                metavar="BYTES",
                heading=FILES,
                rare=True,
                help="Weights below it stay in the model file, e.g. 1K  [default: 1024].",
            ),
            option(
                "--no-save-all-tensors-to-one-file",
                "apart",
                is_flag=True,
                heading=FILES,
                rare=True,
                help="One file per weight, in a directory.",
            ),
            option(
                "--external-data-dir",
                "--load-external-data",
                "--ext",
                "external_data_dir",
                type=click.Path(path_type=Path),
                metavar="DIR",
                heading=FILES,
                rare=True,
                help="Where external data are when not beside the model.",
            ),
            option(
                "--ignore-external-data",
                "ignore_external_data",
                is_flag=True,
                heading=FILES,
                rare=True,
                help="Never look for external data; OUT refers to them as MODEL did. Numbers are not known then, and "
                "nothing is proven.",
            ),
            option(
                "--model-type",
                type=click.Choice(["onnx"]),
                expose_value=False,
                heading=FILES,
                rare=True,
                help="Accepted; only ONNX models are edited.",
            ),
        )
    ):
        function = add(function)
    return function


def feed_option(*names: str) -> Callable[[F], F]:
    """Declare the option that names real data for the proof; ``--inputs`` means something else in some commands."""
    return option(
        *names,
        "--load-inputs",
        "--load-input-data",
        "feeds",
        multiple=True,
        metavar="PATH...",
        heading=PROOF,
        help="Real data for it: npz, directory of npy, ONNX test_data_set, Polygraphy JSON, safetensors.",
    )


def proof_options(function: F) -> F:
    """Add what says whether the result is proven, and how data for it are made up."""
    for add in reversed(
        (
            option(
                "--verify/--no-verify",
                "verify",
                default=None,
                heading=PROOF,
                help="Run before and after on ONNX Runtime and refuse when outputs moved beyond the noise floor  "
                "[default: when the model can be run and its weights are below 2 GiB].",
            ),
            option("--seed", type=int, heading=PROOF, rare=True, help="Seed of random data, numbers as Polygraphy's."),
            option(
                "--val-range",
                "val_range",
                multiple=True,
                metavar="[NAME:][LOW,HIGH]...",
                heading=PROOF,
                rare=True,
                help="Range of random data, numbers as Polygraphy's.",
            ),
            option(
                "--iterations",
                "--iters",
                "iterations",
                type=click.IntRange(1),
                heading=PROOF,
                rare=True,
                help="Number of random feeds, numbers as Polygraphy's.",
            ),
            option(
                "--data-loader-script",
                default="",
                metavar="FILE.py[:FUNCTION]",
                heading=PROOF,
                rare=True,
                help="Python file whose load_data (or FUNCTION) yields dicts of arrays.",
            ),
            option(
                "--data-loader-backend-module",
                type=click.Choice(["numpy"]),
                expose_value=False,
                heading=PROOF,
                rare=True,
                help="Accepted; data are made with numpy.",
            ),
        )
    ):
        function = add(function)
    return function


def source_of(model: Path, given: Mapping[str, Any]) -> "Source":
    """Return the model to edit."""
    from tensortriage.workflows.surgery import Source

    return Source(model, given["external_data_dir"], given["ignore_external_data"])


def layout_of(given: Mapping[str, Any], default: "ExternalData") -> "ExternalData | ExternalLayout":
    """Return where the weights go.

    Raises:
        UsageError: When an option refines --save-external-data without it (slug ``option-needs-another``).
    """
    from tensortriage.model.model import ExternalLayout

    threshold = parse_bytes(given["external_threshold"]) if given["external_threshold"] != "0" else 0
    if given["external_location"] is None:
        if threshold is not None or given["apart"]:
            raise UsageError(
                "--external-data-size-threshold and --no-save-all-tensors-to-one-file say how weights are saved apart "
                "from the model, which is not asked for",
                slug="option-needs-another",
                cure="add --save-external-data",
            )
        return default
    return ExternalLayout(given["external_location"], 1024 if threshold is None else threshold, not given["apart"])


def verify_of(given: Mapping[str, Any]) -> "Verify":
    """Return whether the result is proven."""
    from tensortriage.workflows.proving import Verify

    return Verify.AUTO if given["verify"] is None else Verify.ALWAYS if given["verify"] else Verify.NEVER


def feeding_of(given: Mapping[str, Any], *, shapes: tuple[str, ...] = ()) -> "FeedRequest":
    """Return where the data for the proof come from."""
    from tensortriage.inputs.syntax import parse_ranges, parse_shapes
    from tensortriage.workflows.feeding import FeedRequest

    return FeedRequest(
        paths=tuple(given["feeds"]),
        script=given["data_loader_script"],
        seed=given["seed"],
        iterations=given["iterations"],
        value_ranges=parse_ranges(given["val_range"]),
        shapes=parse_shapes(shapes),
    )

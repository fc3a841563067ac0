"""``triage surgeon weight-strip``: take the values of the weights out of a model."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.options import READ, GuideCommand, common, option
from tensortriage.cli.surgeon.edit_values import StripValues
from tensortriage.cli.surgeon.options import file_options, layout_of, source_of

EPILOG = """\b
Examples:
  triage surgeon weight-strip model.onnx -o stripped.onnx
  triage surgeon weight-strip model.onnx --exclude-list keep.txt -o stripped.onnx
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("model", type=READ)
@option("--exclude-list", type=READ, metavar="FILE", heading="What to strip",
        help="Text file with the names of initializers to keep, one per line.")  # fmt: skip
@file_options
@common
def weight_strip(model: Path, as_json: bool, **given: Unpack[StripValues]) -> None:
    """Write MODEL without the values of its weights: small, and free of secrets. Fold its constants first.

    TensorRT can build an engine from the result and fill in the real weights later.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.model.model import ExternalData
    from tensortriage.workflows.edits import small_edits
    from tensortriage.workflows.edits.edit_pipeline import Target

    result = small_edits.weight_strip(
        source_of(model, given),
        Target(given["output"], layout_of(given, ExternalData.LEAVE)),
        exclude_list=given["exclude_list"],
        needs_weights=not click.get_current_context().meta.get(COMPATIBLE),
    )
    show(result, as_json=as_json)

"""``triage surgeon weight-strip``: take the values of the weights out of a model."""

from pathlib import Path

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.declared import command
from tensortriage.cli.options import model_type_option
from tensortriage.values.options import option
from tensortriage.workflows.edits.requests import FILES, Source, Target

EPILOG = """\b
Examples:
  triage surgeon weight-strip model.onnx -o stripped.onnx
  triage surgeon weight-strip model.onnx --exclude-list keep.txt -o stripped.onnx
"""


@command(epilog=EPILOG, accepted=[model_type_option(FILES)])
def weight_strip(
    source: Source,
    target: Target,
    exclude_list: Path | None = option(
        "--exclude-list", "FILE", "Text file with the names of initializers to keep, one per line.", default=None,
        group="What to strip"),
    *,
    as_json: bool,
) -> None:  # fmt: skip
    """Write MODEL without the values of its weights: small, and free of secrets. Fold its constants first.

    TensorRT can build an engine from the result and fill in the real weights later.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.workflows.edits import small_edits

    needs_weights = not click.get_current_context().meta.get(COMPATIBLE)
    done = small_edits.weight_strip(source, target, exclude_list=exclude_list, needs_weights=needs_weights)
    show(done, as_json=as_json)

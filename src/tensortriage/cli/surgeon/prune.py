"""``triage surgeon prune``: make the weights 2:4 sparse."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.options import READ, GuideCommand, common
from tensortriage.cli.surgeon.edit_values import EditValues
from tensortriage.cli.surgeon.options import (
    FEED_LISTS,
    feed_option,
    feeding_of,
    file_options,
    layout_of,
    proof_options,
    source_of,
    verify_of,
)

EPILOG = """\b
Example:
  triage surgeon prune model.onnx -o sparse.onnx
"""


@click.command(cls=GuideCommand, value_lists=(*FEED_LISTS, "--inputs"), epilog=EPILOG)
@click.argument("model", type=READ)
@file_options
@proof_options
@feed_option("--inputs")
@common
def prune(model: Path, as_json: bool, **given: Unpack[EditValues]) -> None:
    """Set the two smallest of every four weights of MODEL to zero, for 2:4 sparsity of engines. Accuracy is lost.

    This is meant for testing whether an engine uses sparsity, not for deployment.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.model.model import ExternalData
    from tensortriage.workflows.edits import small_edits
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.verify_edit import ProofRequest

    result = small_edits.prune(
        source_of(model, given),
        Target(given["output"], layout_of(given, ExternalData.LEAVE)),
        request=ProofRequest(verify=verify_of(given["verify"]), feeding=feeding_of(given, given["feeds"])),
    )
    show(result, as_json=as_json)

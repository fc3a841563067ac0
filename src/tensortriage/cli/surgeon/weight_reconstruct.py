"""``triage surgeon weight-reconstruct``: fill stripped weights with made-up values."""

from pathlib import Path
from typing import Unpack

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.options import READ, GuideCommand, common, option
from tensortriage.cli.surgeon.edit_values import ReconstructValues
from tensortriage.cli.surgeon.options import PROOF, file_options, layout_of, source_of, verify_of

EPILOG = """\b
Example:
  triage surgeon weight-reconstruct stripped.onnx -o filled.onnx
"""


@click.command(cls=GuideCommand, epilog=EPILOG)
@click.argument("model", type=READ)
@option("--seed", type=click.IntRange(0), default=0, metavar="N", heading="Numbers",
        help="Seed of the made-up weights  [default: 0].")  # fmt: skip
@option("--verify/--no-verify", "verify", default=None, heading=PROOF, help="Whether to verify that the result runs.")
@file_options
@common
def weight_reconstruct(model: Path, as_json: bool, **given: Unpack[ReconstructValues]) -> None:
    """Write MODEL, from weight-strip, with made-up weights of the right type, shape and sparsity."""
    from tensortriage.cli.surgeon.show import show
    from tensortriage.model.model import ExternalData
    from tensortriage.workflows.edits import small_edits
    from tensortriage.workflows.edits.edit_pipeline import Target
    from tensortriage.workflows.edits.verify_edit import ProofRequest

    result = small_edits.weight_reconstruct(
        source_of(model, given),
        Target(given["output"], layout_of(given, ExternalData.LEAVE)),
        seed=given["seed"],
        request=ProofRequest(verify=verify_of(given["verify"])),
        needs_weights=not click.get_current_context().meta.get(COMPATIBLE),
    )
    show(result, as_json=as_json)

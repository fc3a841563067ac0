"""``triage surgeon weight-reconstruct``: fill stripped weights with made-up values."""

import click

from tensortriage.cli.compatible import KEY as COMPATIBLE
from tensortriage.cli.declared import command
from tensortriage.cli.options import model_type_option
from tensortriage.values.options import option
from tensortriage.workflows.edits.requests import FILES, ProofRequest, Source, Target, Verify, verify_field

EPILOG = """\b
Example:
  triage surgeon weight-reconstruct stripped.onnx -o filled.onnx
"""


@command(epilog=EPILOG, accepted=[model_type_option(FILES)])
def weight_reconstruct(
    source: Source,
    target: Target,
    seed: int = option("--seed", "N", "Seed of the made-up weights.", default=0, least=0, group="Numbers"),
    verify: Verify = verify_field("Whether to verify that the result runs."),
    *,
    as_json: bool,
) -> None:
    """Write MODEL, from weight-strip, with made-up weights of the right type, shape and sparsity."""
    from tensortriage.cli.surgeon.show import show
    from tensortriage.workflows.edits import small_edits

    needs_weights = not click.get_current_context().meta.get(COMPATIBLE)
    done = small_edits.weight_reconstruct(
        source, target, seed=seed, request=ProofRequest(verify=verify), needs_weights=needs_weights
    )
    show(done, as_json=as_json)

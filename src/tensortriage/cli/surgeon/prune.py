"""``triage surgeon prune``: make the weights 2:4 sparse."""

from tensortriage.cli.declared import command
from tensortriage.cli.options import model_type_option
from tensortriage.values.options import part
from tensortriage.workflows.edits.requests import FEED_NAMES, FILES, ProofRequest, Source, Target, feeding_field

EPILOG = """\b
Example:
  triage surgeon prune model.onnx -o sparse.onnx
"""


@command(epilog=EPILOG, accepted=[model_type_option(FILES)])
def prune(
    source: Source,
    target: Target,
    proof: ProofRequest = part(factory=ProofRequest, feeding=feeding_field(f"--inputs {FEED_NAMES}")),
    *,
    as_json: bool,
) -> None:
    """Set the two smallest of every four weights of MODEL to zero, for 2:4 sparsity of engines. Accuracy is lost.

    This is meant for testing whether an engine uses sparsity, not for deployment.
    """
    from tensortriage.cli.surgeon.show import show
    from tensortriage.workflows.edits import small_edits

    show(small_edits.prune(source, target, request=proof), as_json=as_json)

"""Commands that a verdict suggests to run next."""

from tensortriage.diagnose.state.investigation import Investigation


def reduce_command(inv: Investigation) -> str:
    """Return the command that finds the smallest piece that still fails."""
    return inv.command("debug reduce", "-o", "reduced.onnx", "--target", str(inv.question.target))

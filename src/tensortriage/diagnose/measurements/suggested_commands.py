"""Commands that a verdict suggests to run next."""

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.values.dtype import Precision


def reduce_command(inv: Investigation) -> str:
    """Return the command that finds the smallest piece that still fails."""
    return inv.command("debug reduce", "-o", "reduced.onnx", "--target", str(inv.question.target))


def layers_command(inv: Investigation) -> str:
    """Return the command that compares every tensor."""
    return inv.command("run", "--target", str(inv.question.target), "--onnx-outputs", "mark", "all")


def precision_command(inv: Investigation) -> list[str]:
    """Return the command that finds the nodes to keep in more bits, where a model can be typed in the format."""
    if inv.precision not in (Precision.FP16, Precision.BF16):
        return []
    return [inv.command("debug precision", "--target", str(inv.question.target), "-o", "mixed.onnx")]

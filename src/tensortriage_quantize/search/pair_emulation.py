"""Effect of float nodes in an 8-bit model, measured by one session in which each node has a switch."""

from collections.abc import Sequence

from tensortriage.api import Model
from tensortriage.precision.sdk import Emulation, GoalSample, Lab, PrecisionGoal, Switches
from tensortriage_quantize.pairs.switched_pairs import switch_quantizers


def of_quantizers(
    model: Model, samples: Sequence[GoalSample], goal: PrecisionGoal, *, lab: Lab, seconds: float | None = None
) -> Emulation:
    """Return the effect of unquantized nodes on a model with float weights behind pairs of their own."""
    switched = switch_quantizers(model)
    switches = Switches(switched.model, switched.feed, switched.nodes)
    return Emulation(switches, samples, goal, lab=lab, seconds=seconds)

"""Effect of float nodes in an 8-bit model, measured by one session in which each node has a switch."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.api import Model
from tensortriage.precision.sdk import Emulation, GoalSample, Lab, PrecisionGoal, Switches
from tensortriage_quantize.pairs.switched_pairs import switch_quantizers


def of_quantizers(
    model: Model,
    samples: Sequence[GoalSample],
    goal: PrecisionGoal,
    *,
    lab: Lab,
    seconds: float | None = None,
    nodes: Collection[str] | None = None,
) -> Emulation:
    """Return the effect of unquantized nodes, or of given ones, on a model with float weights behind pairs."""
    switched = switch_quantizers(model)
    items = tuple(name for name in switched.nodes if nodes is None or name in nodes)

    def feed(kept: Collection[str]) -> Mapping[str, np.ndarray]:
        """Return the switches; where all nodes that can be chosen stay float, so do the operators that follow them."""
        return switched.feed(switched.nodes if {*items} <= {*kept} else kept)

    switches = Switches(switched.model, feed, items)
    return Emulation(switches, samples, goal, lab=lab, seconds=seconds)

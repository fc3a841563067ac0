"""The weights that a quantizer would change: the range of their elements, and the size of all weights."""

from collections.abc import Collection

import numpy as np

from tensortriage.model.model import Model


def largest_weights(model: Model, nodes: Collection[str]) -> dict[str, float]:
    """Return the largest magnitude in every weight of two axes or more that some of the nodes read, by its name."""
    found = {}
    for name, value in model.ir.graph.initializers.items():
        weight = value.const_value
        if weight is not None and len(weight.shape) > 1 and any(use.node.name in nodes for use in value.uses()):
            found[name] = float(np.abs(weight.numpy()).max(initial=0.0))
    return found


def weight_bytes(model: Model) -> int:
    """Return the size of all weights of the main graph in bytes."""
    return sum(int(v.const_value.nbytes) for v in model.ir.graph.initializers.values() if v.const_value is not None)

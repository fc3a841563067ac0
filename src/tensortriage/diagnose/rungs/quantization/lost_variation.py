"""How much of what varies in an output is lost? Its constant part is no signal: it says the same of all data.

Scores around -20, of which a class gains or loses 2, lose little by their size where nothing of these 2 is left. What
varies is what is left of each channel without its mean over samples and places, as in the coefficient of determination:
``sqrt(1 - R2)``, of several outputs weighted by their variances (scikit-learn, `r2_score`, ``variance_weighted``).
"""

import math

import numpy as np

from tensortriage.model.ir.graph import Graph

FEWEST = 16
"""Samples and places of a channel from which its deviation is known: to a fifth, 1 / sqrt(2 (n - 1))."""

_CHANNELS_FIRST = ("Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GroupNormalization")
_CHANNELS_LAST = ("MatMul", "Gemm", "LayerNormalization")


def lost_variation(reference: np.ndarray, target: np.ndarray, axis: int | None) -> float:
    """Return the error of a tensor over the deviation of its channels from their own means; 0 where it is not known.

    Args:
        reference: The right output, in floating point.
        target: The other one, of the same shape.
        axis: That of the channels; None where it is not known.
    """
    if (
        axis is None
        or reference.shape != target.shape
        or reference.dtype.kind != "f"
        or not -2 <= axis < reference.ndim
    ):
        return 0.0
    channels = reference.shape[axis]
    if not channels or reference.size // channels < FEWEST:
        return 0.0
    right, found = (np.moveaxis(each, axis, 0).reshape(channels, -1).astype(np.float64) for each in (reference, target))
    varies = float(np.square(right - right.mean(axis=1, keepdims=True)).sum())
    lost = float(np.square(found - right).sum())
    return math.sqrt(lost / varies) if varies > 0.0 and math.isfinite(lost) else 0.0


def channel_axis(graph: Graph, output: str) -> int | None:
    """Return the axis of an output's channels: that of the last op before it that has some; None without any."""
    node = graph.producer(output)
    while node is not None:
        if node.op_type in _CHANNELS_FIRST:
            return 1
        if node.op_type in _CHANNELS_LAST:
            return -1
        if node.op_type in ("Transpose", "Reshape", "Flatten", "Concat", "Split", "Gather"):
            return None
        node = graph.producer(node.inputs[0]) if node.inputs else None
    return None

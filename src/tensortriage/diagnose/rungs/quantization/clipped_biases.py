"""Biases that int32 cannot hold: a bias is stored in steps of its channel's weights times those of the input.

Where a channel's weights are near 0 (a BatchNormalization that silenced it was folded), its steps are so small that the
bias lies beyond int32, whose end is stored instead: that channel loses its whole signal.
"""

import numpy as np

from tensortriage.model.ir.graph import Graph
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.values.dtype import DType

_MOST_NAMED = 6


def at_the_ends(graph: Graph, value: str) -> str:
    """Return which numbers of a dequantized bias are ends of int32, and why, as ``has ...``; empty where none is.

    Args:
        graph: The file, its quantizers written as pairs.
        value: The dequantized bias.
    """
    pair = next((pair for pair in quantizers(graph) if pair.result == value), None)
    if pair is None or not pair.stored or pair.dtype is not DType.INT32 or pair.stored not in graph.constants:
        return ""
    stored = graph.weight(pair.stored).ravel()
    ends = np.flatnonzero((stored == np.iinfo(np.int32).min) | (stored == np.iinfo(np.int32).max))
    if not ends.size:
        return ""
    shown = ", ".join(map(str, ends[:_MOST_NAMED])) + (", ..." if ends.size > _MOST_NAMED else "")
    return (
        f"has {ends.size} of {stored.size} biases of '{value}' cut off at the end of int32 (channels {shown}): their "
        "steps are those of their channels' weights, which are near 0; quantize these weights per tensor, or by a "
        "quantizer that widens such steps (ONNX Runtime's does from 1.20 on)"
    )

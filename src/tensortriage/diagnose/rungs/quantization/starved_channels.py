"""Channels of a weight that one scale for all leaves too few steps."""

import numpy as np

from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import Quantizer

FEW_STEPS = 2
"""Steps on either side of zero that are two bits of eight: numbers spread over so many lose a quarter by rounding."""


def starved_channels(file: Model, pair: Quantizer) -> str:
    """Return how many channels of a weight are left few steps of the one scale that all share; empty for none."""
    graph = file.graph
    whole, zero = (graph.weight(name) if name in graph.constants else None for name in (pair.stored, pair.zero_point))
    if whole is None or whole.ndim < 2 or np.size(graph.weight(pair.scale)) > 1:
        return ""
    return starved(np.abs(whole.astype(np.int64) - (0 if zero is None else int(np.ravel(zero)[0]))))


def starved(steps: np.ndarray) -> str:
    """Return the same for a weight in steps of its scale, magnitudes, ``[channel, ...]``."""
    largest = steps.reshape(len(steps), -1).max(axis=1)
    few = int(((largest <= FEW_STEPS) & (largest < largest.max())).sum())
    if not few:
        return ""
    return (
        f"its channels share one scale, of which {few} of {len(largest)} have {FEW_STEPS} steps at most: quantize it "
        "per channel (per_channel=True)"
    )

"""A tensor in an engine's layout of blocks (NC4HW4, nChw16c): some channels lie next to each other, the rest behind.

Engines store activations this way for their vector units, and fill the last block up; whoever reads such memory as a
plain tensor has the right numbers in wrong places, and padding between them.
"""

import math
from collections.abc import Iterator

import numpy as np

from tensortriage.compare.patterns.finding import PatternFinding
from tensortriage.compare.patterns.misplaced import Probe

_LANES = (4, 8, 16, 32, 2, 64)
"""Channels in a block: of 128 to 512 bits in fp32, fp16 and int8 (MNN, ncnn, QNN, oneDNN, TensorRT's CHW2 to CHW32)."""


def blocked(probe: Probe) -> PatternFinding | None:
    """Does the target hold the reference in blocks of an axis, read as if it were plain, or the other way round?"""
    quick = probe.first()
    best: tuple[float, int, int, bool] = (0.0, 0, 0, False)
    for axis, lanes, is_read in _layouts(probe.shape):
        if quick.support(*_sources(quick, axis, lanes, is_read)):
            share = probe.support(*_sources(probe, axis, lanes, is_read))
            best = max(best, (share, axis, lanes, is_read), key=lambda each: each[0])
    share, axis, lanes, is_read = best
    if not share:
        return None
    plain = "NCHW" if len(probe.shape) == 4 and axis == 1 else "the model's layout"
    name = f"NC{lanes}HW{lanes}" if plain == "NCHW" else "such blocks"
    how = f"{name} data read as {plain}" if is_read else f"{plain} data read as {name}"
    sentence = f"the target holds the reference's values in blocks of {lanes} along axis {axis} ({how})"
    return PatternFinding("layout", sentence, share, {"axis": axis, "block": lanes, "explained": share})


def _layouts(shape: tuple[int, ...]) -> Iterator[tuple[int, int, bool]]:
    """Yield the axis, the size of a block, and whether blocks are read as plain, of layouts that move elements."""
    for axis, size in enumerate(shape[:-1]):
        if size > 1 and math.prod(shape[axis + 1 :]) > 1:
            for lanes in _LANES:
                if lanes < 2 * size:
                    yield axis, lanes, True
                    yield axis, lanes, False


def _sources(probe: Probe, axis: int, lanes: int, is_read: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the source of every place, and where there is one: some places hold padding, or lie behind the end."""
    size, inner = probe.shape[axis], math.prod(probe.shape[axis + 1 :])
    blocks = -(-size // lanes)
    if is_read:
        rest, lane = np.divmod(probe.places, lanes)
        rest, within = np.divmod(rest, inner)
        outer, block = np.divmod(rest, blocks)
        channel = block * lanes + lane
        valid = channel < size
        return (outer * size + np.minimum(channel, size - 1)) * inner + within, valid
    rest, within = np.divmod(probe.places, inner)
    outer, channel = np.divmod(rest, size)
    block, lane = np.divmod(channel, lanes)
    address = ((outer * blocks + block) * inner + within) * lanes + lane
    return np.minimum(address, probe.reference.size - 1), address < probe.reference.size

"""The pass over pairs of one floating-point type as one compiled loop, where the package was built with a compiler.

Numpy takes some fifteen sweeps of a block; `_compiled_pass.c` takes one, in a third of the time and without Python's
lock. It is an optional part of the package: everything works without, and both ways give the same counts, maxima,
samples and worst elements. Sums differ by rounding: numpy's are of float32 in short runs, the compiled ones of float64.
"""

import os
from typing import Any

import numpy as np

from tensortriage.compare.metrics import blocks
from tensortriage.compare.metrics.block_totals import BlockTotals
from tensortriage.compare.metrics.dtype_pairs import F32, SAFE, Lane
from tensortriage.values.dtype import DType

SWITCH = "TRIAGE_PURE_PYTHON"
"""Environment variable that switches the compiled pass off when it is set to anything."""

try:
    from tensortriage.compare.metrics import _compiled_pass
except ImportError:
    _add_run = None
else:
    _add_run = None if os.environ.get(SWITCH) else _compiled_pass.add_run

RUN = 4 * blocks.BLOCK
"""Elements per call: a call and Python's work around it cost some 10 microseconds, a run 200 and more."""

_TYPES: dict[np.dtype[Any], int] = {
    kind.numpy: number for number, kind in enumerate((DType.FLOAT16, DType.BFLOAT16, DType.FLOAT, DType.DOUBLE))
}


def takes(way: Lane) -> bool:
    """Return whether the pass computes pairs of a lane: built, not switched off, both sides of one type."""
    return _add_run is not None and way.bits is not None and way.ulp in _TYPES


def is_used() -> bool:
    """Return whether the compiled pass was built and is not switched off."""
    return _add_run is not None


def totals(way: Lane, reference: np.ndarray, target: np.ndarray, start: int, stride: int) -> BlockTotals:
    """Return the totals over a run of elements of a supported lane.

    Args:
        way: Lane of both sides.
        reference: Flat, contiguous, aligned, native.
        target: Likewise, of the same type and size.
        start: Flat index of the first element.
        stride: As in `BlockTotals`.
    """
    assert _add_run is not None
    assert way.ulp is not None
    assert way.bits is not None
    sample = np.empty(reference.size // stride + 1)
    sides = reference.view(way.bits), target.view(way.bits)  # numpy lends no memory of types that are not its own
    sampled, worst, counts, sums = _add_run(_TYPES[way.ulp], *sides, sample, start, stride, blocks.BLOCK, SAFE[F32])
    return BlockTotals(stride, *counts, *sums, samples=[sample[:sampled]], worst=worst)

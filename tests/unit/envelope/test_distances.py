"""The few figures of a member are those that the full comparison gives."""

import dataclasses

import numpy as np
import pytest

from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.envelope.distances import distance_between

RNG = np.random.default_rng(5)
BASE = RNG.standard_normal((3, 90000)).astype(np.float32)
NOISY = BASE * np.float32(1.001) + RNG.standard_normal(BASE.shape).astype(np.float32) * np.float32(1e-4)
BROKEN = NOISY.copy()
BROKEN[1, 7], BROKEN[2, 8] = np.nan, np.inf
FEW = BASE.copy()
FEW[0, ::5000] += 1.0

PAIRS = {
    "noise": (BASE, NOISY),
    "double": (BASE.astype(np.float64), NOISY.astype(np.float64)),
    "few": (BASE, FEW),
    "equal": (BASE, BASE),
    "not finite": (BASE, BROKEN),
    "equally not finite": (BROKEN, BROKEN),
    "strided": (BASE.T[::3], np.ascontiguousarray(NOISY.T[::3])),
    "transposed": (BASE.T, NOISY.T),
    "tiny errors": (BASE * 0, BASE * np.float32(1e-30)),
    "tiny": (BASE * np.float32(1e-30), NOISY * np.float32(1e-30)),
    "huge": (BASE * np.float32(1e25), NOISY * np.float32(1e25)),
    "zeros": (BASE * 0, BASE * 0),
    "half": (BASE.astype(np.float16), NOISY.astype(np.float16)),
    "whole numbers": (np.arange(9), np.arange(9) // 2),
    "nothing": (np.zeros((0, 3), np.float32),) * 2,
    "a number": (np.float32([2.0]).reshape(()), np.float32([2.5]).reshape(())),
}

IN_MEMORY = {"transposed": (BASE, NOISY)}
"""The same numbers in the order in which they lie in memory, of which medians are sampled."""


@pytest.mark.parametrize("case", PAIRS)
def test_figures_are_those_of_the_full_comparison(case):
    centre, member = PAIRS[case]
    found, expected = (
        dataclasses.asdict(distance_between(centre, member)),
        measure(*IN_MEMORY.get(case, (centre, member))),
    )
    assert found == pytest.approx({name: getattr(expected, name) for name in found}, rel=1e-5, nan_ok=True)

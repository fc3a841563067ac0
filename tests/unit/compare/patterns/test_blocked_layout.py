"""Blocked layouts, written by numpy's reshape and transpose as the engines' documents define them."""

import numpy as np
import pytest

from tensortriage.compare.patterns.anatomy import dissect
from tensortriage.diagnose.measurements.moved_values import moved

RNG = np.random.default_rng(7)


def in_blocks(array, lanes):
    """Return [N, C, H, W] as it lies in memory as [N, C / lanes, H, W, lanes], the last block filled up with zeros."""
    n, c, h, w = array.shape
    blocks = -(-c // lanes)
    filled = np.zeros((n, blocks * lanes, h, w), array.dtype)
    filled[:, :c] = array
    return filled.reshape(n, blocks, lanes, h, w).transpose(0, 1, 3, 4, 2)


@pytest.mark.parametrize(("channels", "lanes"), [(8, 4), (32, 16), (16, 2), (6, 4), (3, 4), (40, 32)])
def test_memory_in_blocks_that_is_read_as_plain_is_told(channels, lanes):
    right = RNG.standard_normal((2, channels, 6, 5)).astype(np.float32)
    memory = in_blocks(right, lanes).ravel()[: right.size]
    made = (memory * (1 + 1e-3 * RNG.standard_normal(right.size))).astype(np.float32).reshape(right.shape)
    told = f"in blocks of {lanes} along axis 1 (NC{lanes}HW{lanes} data read as NCHW)"
    sentence = f"the target holds the reference's values {told}"
    assert moved(right, made).sentence == sentence
    assert dissect(right, made).findings[0].sentence == sentence


def test_plain_memory_that_is_read_in_blocks_is_told():
    right = RNG.standard_normal((1, 8, 6, 5)).astype(np.float32)
    made = right.reshape(1, 2, 6, 5, 4).transpose(0, 1, 4, 2, 3).reshape(right.shape)
    assert "blocks of 4 along axis 1 (NCHW data read as NC4HW4)" in moved(right, made).sentence


@pytest.mark.parametrize(
    "made", [lambda x: x[:, ::-1], lambda x: RNG.permutation(x.ravel()).reshape(x.shape), lambda x: x * 2]
)
def test_other_orders_are_none_of_blocks(made):
    right = RNG.standard_normal((1, 8, 6, 5)).astype(np.float32)
    found = moved(right, np.ascontiguousarray(made(right)))
    assert found is None or "blocks" not in found.sentence


def test_channels_last_stays_the_simpler_answer():
    right = RNG.standard_normal((1, 4, 6, 5)).astype(np.float32)
    made = right.transpose(0, 2, 3, 1).reshape(right.shape)
    assert "NHWC data read as NCHW" in moved(right, made).sentence

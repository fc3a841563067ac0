"""Tensors that arrive in part or as other bytes; what is right follows from how each is made."""

import numpy as np
import pytest

from tensortriage_feeds.two_feeds.differences import difference
from tensortriage_feeds.two_feeds.parts import part_of

SOUND = np.random.default_rng(1).standard_normal((1, 40)).astype(np.float32)


def words_of(theirs):
    found = difference({"x": SOUND}, {"x": theirs})
    assert len(found.steps) == 1
    assert found.residual == 0.0
    return found.steps[0].words


def test_a_part_of_an_axis_and_zeros_at_its_ends():
    assert words_of(SOUND[:, 8:]) == "is cut to indices 8..39 of axis 1: 32 of 40"
    assert words_of(SOUND[:, :30]) == "is cut to indices 0..29 of axis 1: 30 of 40"
    padded = np.pad(SOUND, [(0, 0), (0, 24)])
    assert words_of(padded) == "has 0 zeros before and 24 behind its 40 along axis 1"
    (step,) = difference({"x": SOUND}, {"x": padded}).steps
    np.testing.assert_array_equal(step.apply({"x": SOUND})["x"], padded)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_bytes_of_another_type(dtype):
    room = np.zeros(SOUND.nbytes, np.uint8)
    stored = np.frombuffer(SOUND.astype(dtype).tobytes(), np.uint8)[: room.size]
    room[: stored.size] = stored
    step = part_of("x", SOUND, room.view(np.float32).reshape(SOUND.shape))
    assert step.words == f"holds the bytes of its numbers in {dtype}, read as float32"
    assert ".astype(np.float32)" in step.cure


def test_another_signal_is_no_part():
    other = np.random.default_rng(2).standard_normal((1, 32)).astype(np.float32)
    assert part_of("x", SOUND, other) is None
    assert part_of("x", SOUND, SOUND[:, 8:] * 2) is None
    assert part_of("x", SOUND, np.random.default_rng(3).standard_normal(SOUND.shape).astype(np.float32)) is None
    assert part_of("x", SOUND, np.zeros((1, 8), np.float32)) is None
    assert part_of("x", SOUND, np.full(SOUND.shape, "text", object)) is None

"""Tensors that arrive in part or as other bytes; what is right follows from how each is made."""

import numpy as np
import pytest

from tensortriage_feeds.transforms import sentence
from tensortriage_feeds.two_feeds.differences import difference
from tensortriage_feeds.two_feeds.parts import part_of

RNG = np.random.default_rng(7)
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


FILM = RNG.random((1, 3, 8, 6, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([7] * 8, "has its index 7 of axis 2 everywhere along it"),
        ([0, 1, 1, 2, 3, 4, 5, 6], "holds indices 1 to 6 of axis 2 moved by 1"),
        ([1, 0, 3, 2, 5, 4, 7, 6], "holds indices [1, 0, 3, 2, 5, 4, 7, 6] of axis 2 in place of 0 to 7"),
    ],
)
def test_slices_in_the_places_of_others(order, words):
    found = difference({"clip": FILM}, {"clip": FILM[:, :, order]})
    assert words in sentence(found.steps)


def test_a_channel_that_holds_one_number_and_others_that_follow_it():
    pixels = FILM[0, :, 0][None]
    made = np.concatenate([np.ones_like(pixels[:, :1]), pixels[:, :2]], 1)
    (step,) = difference({"photo": pixels}, {"photo": made}).steps
    assert step.kind == "other-indices"
    assert step.parameters["order"] == [-1, 0, 1]


def test_another_step_along_an_axis_is_told_by_the_slices_that_both_have():
    made = np.repeat(FILM, 2, 2)[:, :, :8].copy()
    made[:, :, 1::2] = RNG.random(made[:, :, 1::2].shape)  # frames between
    (step,) = difference({"clip": FILM}, {"clip": made}).steps
    assert (step.kind, step.parameters) == ("resampling", {"axis": 2, "ratio": [1, 2]})


def test_slices_that_have_nothing_in_common_are_none():
    assert not difference({"clip": FILM}, {"clip": RNG.random(FILM.shape).astype(np.float32)}).is_known

"""Inputs whose memory is copied at another length; what is right follows from how each is made."""

import numpy as np
import pytest

from tensortriage_feeds.memory import memory_candidates, memory_of
from tensortriage_feeds.two_feeds.differences import difference

RANDOM = np.random.default_rng(4)
PICTURE = RANDOM.standard_normal((2, 3, 10, 12)).astype(np.float32)
TABLE = RANDOM.standard_normal((16, 5)).astype(np.float32)
IDS = np.array([[101, 7, 8, 9, 7, 102], [101, 8, 9, 8, 9, 102]])


def padded(array, length, stride):
    rows = array.reshape(-1, length)
    memory = np.zeros((len(rows), stride), array.dtype)
    memory[:, :length] = rows
    return memory.ravel()[: array.size].reshape(array.shape)


def four_as_three(pictures):
    pixels = pictures.transpose(0, 2, 3, 1)
    four = np.ones((*pixels.shape[:3], 4), pictures.dtype)
    four[..., :3] = pixels
    read = np.stack([each.ravel()[: pixels[0].size] for each in four])
    return read.reshape(pixels.shape).transpose(0, 3, 1, 2)


MADE = {
    "is memory with rows of 16 numbers, 12 and padding, read as if it had none": (PICTURE, padded(PICTURE, 12, 16)),
    "holds pixels of four numbers (the fourth 1), read as three": (PICTURE, four_as_three(PICTURE)),
    "has the first 180 of its 720 numbers (1/4), and others, or 0, behind them": (
        PICTURE,
        np.where(np.arange(720).reshape(PICTURE.shape) < 180, PICTURE, 0),
    ),
    "has its columns in the order [3, 0, 1, 2, 4]": (TABLE, TABLE[:, [3, 0, 1, 2, 4]]),
    "has 0 everywhere in index 2 of axis 1": (TABLE, np.where(np.arange(5) == 2, np.float32(0), TABLE)),
    "has 1 in place of 2 other numbers, at 5 of 12 places": (IDS, np.where(np.isin(IDS, [7, 8]), 1, IDS)),
    "has each of 5 numbers replaced by another, always by the same": (IDS, IDS * 37 % 101 + 3),
}


@pytest.mark.parametrize("words", MADE)
def test_what_became_of_memory_is_told(words):
    mine, theirs = MADE[words]
    found = difference({"x": mine}, {"x": np.ascontiguousarray(theirs)})
    assert [step.words for step in found.steps] == [words]
    assert found.residual == 0.0


def test_what_is_tried_makes_what_is_told():
    """Every candidate is recognized where both tensors are seen, with the same words."""
    for transform in memory_candidates("x", PICTURE):
        theirs = transform({"x": PICTURE})["x"]
        if not np.array_equal(theirs, PICTURE):
            found = difference({"x": PICTURE}, {"x": theirs})
            assert found.residual == 0.0, transform.words
            if transform.kind != "row-stride":  # rows of two lengths may leave the same
                assert found.steps[0].kind in (transform.kind, "batch-order"), transform.words


def test_other_numbers_are_no_memory():
    assert memory_of("x", PICTURE, RANDOM.standard_normal(PICTURE.shape).astype(np.float32)) is None
    assert memory_of("x", PICTURE, PICTURE + 1) is None
    assert memory_of("ids", IDS, RANDOM.permutation(IDS.ravel()).reshape(IDS.shape)) is None

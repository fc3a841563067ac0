"""What was done to weights stored in blocks; they are rounded here, and changed by what is to be told."""

import dataclasses

import numpy as np
import pytest

from tensortriage_quantize.made_wrong_blocks import StoredBlocks, wrong_blocks

ROWS, SIZE, BLOCK, BITS = 24, 44, 16, 4  # the last block of a row has 12 numbers
RANDOM = np.random.default_rng(7)
WEIGHT = RANDOM.standard_normal((ROWS, SIZE)) + RANDOM.uniform(-1, 1, (ROWS, 1))
OTHER = RANDOM.standard_normal((ROWS, SIZE))


def exchanged(numbers):
    return numbers.reshape(-1, 2)[:, ::-1].reshape(numbers.shape)


def stored(was=WEIGHT, *, signed=False, bits=BITS, error=0.0):
    """Return a weight, each number rounded to nearest after an error of a number of steps."""
    padded = np.pad(was, ((0, 0), (0, -SIZE % BLOCK)), mode="edge").reshape(ROWS, -1, BLOCK)
    low, high, top = np.minimum(padded.min(2), 0), np.maximum(padded.max(2), 0), 2**bits - 1
    scale = np.maximum(-low, high) / (top // 2) if signed else (high - low) / top
    zero = np.zeros_like(scale) if signed else np.rint(-low / scale)
    wide = [np.repeat(each, BLOCK, 1)[:, :SIZE] for each in (scale, zero)]
    steps = was / wide[0] + wide[1] + error * RANDOM.standard_normal(was.shape)
    numbers = np.clip(np.rint(steps), *((-(top + 1) // 2, top // 2) if signed else (0, top)))
    return StoredBlocks(numbers, exchanged(numbers), scale, zero, BLOCK, bits, signed)


SOUND = stored()
FEW = SOUND.zero == 8
SIGNED = stored(signed=True)
WRONG = {
    "has zero points that are 1 too large": dataclasses.replace(SOUND, zero=SOUND.zero + 1),
    "has zero points that are 2 too small": dataclasses.replace(SOUND, zero=SOUND.zero - 2),
    f"has zero points that are 1 too large in {FEW.sum()} of 72 blocks, which are 9 there where 8 is right": (
        dataclasses.replace(SOUND, zero=SOUND.zero + FEW)
    ),
    "has the two numbers of each byte in each other's place": dataclasses.replace(
        SOUND, numbers=SOUND.exchanged, exchanged=SOUND.numbers
    ),
    "holds numbers with a sign kept as ones without": dataclasses.replace(
        SOUND, numbers=np.where(SOUND.numbers < 8, SOUND.numbers + 8, SOUND.numbers - 8)
    ),
    "holds numbers without a sign kept as ones with": dataclasses.replace(
        SIGNED, numbers=np.where(SIGNED.numbers < 0, SIGNED.numbers + 8, SIGNED.numbers - 8)
    ),
    "has its scales in another order (row by row for block by block, or the other way round)": dataclasses.replace(
        SOUND, scale=SOUND.scale.T.reshape(SOUND.scale.shape)
    ),
    "has the scales of the block before each": dataclasses.replace(SIGNED, scale=np.roll(SIGNED.scale, 1, 1)),
    "has the scales of the row behind each": dataclasses.replace(SIGNED, scale=np.roll(SIGNED.scale, -1, 0)),
    "has the scales of the block, row by row, before each": dataclasses.replace(SIGNED, scale=np.roll(SIGNED.scale, 1)),
    "has the scales and zero points of the block before each": dataclasses.replace(
        SOUND, scale=np.roll(SOUND.scale, 1, 1), zero=np.roll(SOUND.zero, 1, 1)
    ),
    "has scales that are 2.01 times too large": dataclasses.replace(SOUND, scale=SOUND.scale * 2),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_was_done_is_told_and_put_right(words):
    read = wrong_blocks(WRONG[words], [OTHER, WEIGHT])
    assert read is not None
    assert read.words == words
    right = SIGNED if WRONG[words].is_signed else SOUND
    np.testing.assert_allclose(read.right.real(), right.real(), rtol=0.02, atol=0.02)


def test_zero_points_of_which_each_is_another():
    """Where the middle of the range stands for all of them."""
    read = wrong_blocks(dataclasses.replace(SOUND, zero=np.full_like(SOUND.zero, 8.0)), [WEIGHT])
    assert read is not None
    assert read.words.startswith("has zero points that are off by ")
    np.testing.assert_array_equal(read.right.zero, SOUND.zero)


@pytest.mark.parametrize(
    "sound",
    [
        SOUND,
        SIGNED,
        stored(bits=8),
        stored(error=0.35),  # by a tool that makes up for rounding
        dataclasses.replace(SIGNED, scale=-SIGNED.scale, numbers=-SIGNED.numbers),  # as ONNX Runtime writes them
        stored(OTHER + WEIGHT),  # of no constant of the original: smoothed, folded, or another network's
        stored(error=2.0),
        dataclasses.replace(SOUND, scale=np.zeros_like(SOUND.scale)),
    ],
)
def test_nothing_is_told_of_others(sound):
    assert wrong_blocks(sound, [OTHER, WEIGHT]) is None
    assert wrong_blocks(sound, []) is None

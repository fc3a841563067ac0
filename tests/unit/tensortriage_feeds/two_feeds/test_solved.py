"""Functions, colours, levels and scales of samples, read off two feeds; each is made here by its definition."""

import colorsys

import numpy as np
import pytest

from tensortriage_feeds.transforms import sentence
from tensortriage_feeds.two_feeds.differences import difference

RNG = np.random.default_rng(11)
MEAN, DEVIATION = (np.reshape(each, (1, 3, 1, 1)) for each in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
PIXELS = np.rint(255 * RNG.random((3, 3, 20, 24))) / 255
PICTURE = ((PIXELS - MEAN) / DEVIATION).astype(np.float32)
SOUND = (0.5 * np.sin(np.arange(800) / 9)[None] * RNG.random((1, 800))).astype(np.float32)
TABLE = np.stack([RNG.normal(2, 0.4, 24), RNG.lognormal(0, 1, 24), RNG.integers(0, 5, 24), RNG.random(24)], 1)
TABLE = TABLE.astype(np.float32)


def told(mine, theirs):
    found = difference({"x": mine}, {"x": np.ascontiguousarray(theirs).astype(mine.dtype)})
    return sentence(found.steps) if found.is_known else ""


def normalized(pixels):
    return (pixels - MEAN) / DEVIATION


def hsv(pixels):
    """Python's own."""
    flat = np.array([colorsys.rgb_to_hsv(*pixel) for pixel in np.moveaxis(pixels, 1, -1).reshape(-1, 3)])
    return np.moveaxis(flat.reshape(*pixels.shape[:1], *pixels.shape[2:], 3), -1, 1)


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (PICTURE, normalized(hsv(PIXELS)), "HSV in place of RGB"),
        (PIXELS.astype(np.float32), hsv(PIXELS), "HSV in place of RGB"),
        (PICTURE, normalized(PIXELS**1.7), "raised to the power 1.7 before it is normalized to ImageNet's"),
        (PICTURE, PICTURE.clip(-1, 0.5), "cut off at -1 and 0.5"),
        (PICTURE, normalized(np.floor(PIXELS * 15.999) / 15), "RGB444"),
        (PICTURE, np.stack([(x - x.mean()) / x.std() for x in PIXELS]),
         "standardized by its own mean and deviation, each index of axis 0"),
        (SOUND, np.sign(SOUND) * np.log1p(255 * np.abs(SOUND)) / np.log(256), "companded by mu-law"),
        (np.abs(SOUND) + 0.1, np.log10(np.abs(SOUND) + 0.1),
         "is the logarithm of its numbers and is multiplied by 0.434"),
        (TABLE, np.where(np.arange(4) == 0, TABLE * 1000, TABLE), "index 0 of axis 1 multiplied by 1000"),
        (TABLE, np.where(np.arange(4) == 1, np.log1p(TABLE), TABLE),
         "is the logarithm of 1 plus its numbers in index 1"),
        (TABLE, (TABLE - TABLE.mean(1, keepdims=True)) / TABLE.std(1, keepdims=True), "each index of axis 0"),
        (TABLE, np.where(np.arange(4) == 2, np.array([2, 0, 4, 1, 3])[TABLE.astype(int).clip(0, 4)], TABLE),
         "0 is 2, 1 is 0, 2 is 4, 3 is 1, 4 is 3 in index 2"),
    ],
)  # fmt: skip
def test_what_was_done_is_told_with_its_numbers(mine, theirs, words):
    assert words in told(mine, theirs)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (PICTURE, normalized(PIXELS[::-1] * 0.5 + 0.5 * RNG.random(PIXELS.shape))),
        (PICTURE, RNG.standard_normal(PICTURE.shape)),
        (SOUND, RNG.standard_normal(SOUND.shape)),
        (TABLE, RNG.permutation(TABLE.ravel()).reshape(TABLE.shape)),
    ],
)
def test_other_numbers_are_none_of_it(mine, theirs):
    assert told(mine, theirs) == ""


def test_rounding_to_8_bits_is_no_loss_of_levels():
    dark = (PIXELS * 0.2).astype(np.float32)
    assert "levels" not in told(dark, np.rint(dark * 255) / 255)


def test_spectra_of_two_sounds_are_not_one_in_other_detail():
    """Noise of one colour, like an average over blocks, and not in its numbers."""
    colour = (3 - np.arange(40) / 8)[None, :, None] + np.sin(np.arange(60) / 6)
    one, other = (colour + RNG.normal(0, 0.6, (1, 40, 60)) for _ in range(2))
    assert told(one.astype(np.float32), other) == ""

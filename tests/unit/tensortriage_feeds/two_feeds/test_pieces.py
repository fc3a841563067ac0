"""Functions of a few lines, read off; what is right is what numpy did to the numbers here."""

import numpy as np
import pytest

from tensortriage_feeds.two_feeds.differences import difference
from tensortriage_feeds.two_feeds.pieces import pieces

RNG = np.random.default_rng(3)
BYTES = RNG.integers(0, 256, (2, 3, 24, 20))
MEAN, DEVIATION = np.reshape([0.485, 0.456, 0.406], (1, 3, 1, 1)), np.reshape([0.229, 0.224, 0.225], (1, 3, 1, 1))


def normalized(pixels: np.ndarray) -> np.ndarray:
    return ((pixels / 255 - MEAN) / DEVIATION).astype(np.float32)


def told(mine: np.ndarray, theirs: np.ndarray):
    found = difference({"x": mine}, {"x": theirs.astype(mine.dtype)})
    assert found.is_known
    (step,) = found.steps
    return step


def test_signed_bytes_before_a_normalization_are_told_in_bytes():
    step = told(normalized(BYTES), normalized(BYTES.astype(np.uint8).astype(np.int8)))
    assert step.kind == "dtype"
    assert "signed" in step.words


def test_a_wrap_of_another_place_is_told_by_where_and_how_much():
    step = told(normalized(BYTES), normalized((BYTES + 40) % 256))
    assert "from 216 on by 256 less" in step.words


def test_whole_numbers_that_were_divided_leave_levels():
    pixels = np.moveaxis(BYTES, 1, -1).astype(np.uint8)
    step = told(pixels, pixels // 100)
    assert step.kind == "dtype"
    assert "3 levels left (0 from 0 to 99, 1 from 100 to 199, 2 from 200 to 255)" in step.words


def test_lines_are_found_with_their_ends():
    x = RNG.normal(0, 1, 500)
    found = pieces(x, np.where(x < 0.5, 2 * x + 1, 3 - x))
    assert [(piece.scale, piece.offset) for piece in found] == [pytest.approx((2, 1)), pytest.approx((-1, 3))]
    assert found[0].high < 0.5 <= found[1].low


@pytest.mark.parametrize("made", [np.sin, lambda x: RNG.permutation(x), lambda x: x + RNG.normal(0, 1e-3, x.shape)])
def test_what_is_no_function_of_few_lines_is_left_alone(made):
    x = RNG.normal(0, 1, 500)
    assert pieces(x, made(x)) == []

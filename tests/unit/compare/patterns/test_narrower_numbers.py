"""Whole numbers converted to another type and back: which type, and what it did, as numpy's conversions define them."""

import numpy as np
import pytest

from tensortriage.compare.patterns.anatomy import dissect
from tensortriage.compare.patterns.error_view import lay_out
from tensortriage.compare.patterns.narrower_numbers import operand_beyond, through_another_type

RANDOM = np.random.default_rng(0)
WIDE = RANDOM.integers(-(2**40), 2**40, (4, 50))
SMALL = np.arange(200).reshape(4, 50) * 1000
SUMS = np.cumsum(np.full(100, 50_000_000))
WHOLE = (WIDE // 2**8 * 2**3).astype(np.float32)


@pytest.mark.parametrize(
    ("reference", "target", "label", "words"),
    [
        (WIDE, WIDE.astype(np.int32).astype(np.int64), "int32", "wraps at 2**31"),
        (WIDE, WIDE.astype(np.uint32).astype(np.int64), "uint32", "wraps at 2**32"),
        (SUMS, SUMS.astype(np.int32).astype(np.int64), "int32", "wraps at 2**31"),
        (SMALL, SMALL.astype(np.int16).astype(np.int64), "int16", "wraps at 2**15"),
        (np.arange(300, dtype=np.int32), np.arange(300).astype(np.uint8).astype(np.int32), "uint8", "wraps at 2**8"),
        (WIDE, np.clip(WIDE, -(2**31), 2**31 - 1), "int32", "cut off at the ends"),
        (WIDE, np.where(abs(WIDE) < 2**31, WIDE, -(2**31)), "int32", "x86"),
        (WIDE, WIDE.astype(np.float32).astype(np.int64), "float32", "up to 2**24 only"),
        (WIDE * 2**22 + 1, (WIDE * 2**22 + 1).astype(np.float64).astype(np.int64), "float64", "up to 2**53 only"),
        (WIDE.astype(np.float64), WIDE.astype(np.float32).astype(np.float64), "float32", "up to 2**24 only"),
        (WHOLE, np.clip(WHOLE, -(2**31), 2**31 - 1), "int32", "cut off at the ends"),
        (np.array([2**31, 5]), np.array([-(2**31), 5]), "int32", "wraps at 2**31"),
    ],
)
def test_the_type_and_what_it_does(reference, target, label, words):
    found = dissect(reference, target)
    assert found.findings[0].slug == "through-type"
    assert found.findings[0].evidence["type"] == label
    assert words in found.sentences[0]
    assert label in found.effect


@pytest.mark.parametrize(
    "target",
    [
        WIDE + 1,
        -WIDE,
        np.where(np.arange(50) < 25, WIDE, WIDE.astype(np.int32)),  # half of what would wrap does not
        WIDE.astype(np.int32).astype(np.int64) + (WIDE.max() == WIDE),
        WIDE + RANDOM.integers(-5, 5, WIDE.shape),
    ],
)
def test_what_no_type_explains(target):
    assert through_another_type(lay_out(WIDE, target, floor=0.0)) is None


def test_fractions_and_few_bits_prove_nothing():
    half = WHOLE + np.float32(0.5) * (np.abs(WHOLE) < 2**20)
    half[0, 0] = 0.5
    assert through_another_type(lay_out(half, np.clip(half, -(2**31), 2**31 - 1), floor=0.0)) is None
    assert through_another_type(lay_out(np.array([200, 1]), np.array([-56, 1]), floor=0.0)) is None  # 8 bits of luck


def test_an_operand_beyond_int32():
    found = operand_beyond({"x": SMALL, "c": np.array([5 * 10**9])}, SMALL)
    assert found.sentence == "its operand 'c' holds 5,000,000,000, which int32 does not"
    assert operand_beyond({"x": SMALL, "c": np.float32([5e9])}, SMALL) is None
    assert operand_beyond({"c": np.array([5 * 10**9])}, SMALL.astype(np.float32)) is None
    assert operand_beyond({"c": np.array([-(2**31), 2**31 - 1]), "e": np.zeros(0, np.int64)}, SMALL) is None

"""What is odd about a feed is said in a sentence, and what only looks odd is not."""

import ml_dtypes
import numpy as np
import pytest

from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.oddities import OddKind, constant_inputs, oddities
from tensortriage.values.spec import ValueSpec

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.random((1, 3, 16, 16), np.float32)
WITH_NAN, WITH_INF = PICTURE.copy(), PICTURE.copy()
WITH_NAN[0, 0, 0, :3] = np.nan
WITH_INF[0, 1, 0, 0] = np.inf
PIXELS = RANDOM.integers(0, 256, (1, 3, 16, 16)).astype(np.float32)
MASK = np.where(np.tri(8, dtype=bool), 0, -np.inf).astype(np.float32)[None]
IDS = RANDOM.integers(0, 300, (1, 64))


def found(*, spec=None, origin=Origin.REAL, **tensors):
    specs = [ValueSpec("x", None, spec)] if spec else []
    return [*oddities([Feed("f", tensors, origin)], specs)]


@pytest.mark.parametrize(
    ("tensors", "kind", "words"),
    [
        ({"x": WITH_NAN}, OddKind.NON_FINITE, "f: input 'x' holds 3 NaN among 768 values"),
        ({"x": WITH_INF}, OddKind.NON_FINITE, "holds 1 Inf among"),
        ({"x": WITH_NAN.astype(ml_dtypes.bfloat16)}, OddKind.NON_FINITE, "holds 3 NaN"),
        ({"x": PICTURE * 0}, OddKind.ZERO, "is zero everywhere"),
        ({"x": PICTURE * 0 + 2}, OddKind.CONSTANT, "has the value 2.0 everywhere"),
        ({"x": IDS * 0, "mask": IDS * 0 + 1}, OddKind.ZERO, "input 'x' is zero everywhere"),
        ({"x": PIXELS}, OddKind.PIXELS, "whole numbers from 0 to 255"),
    ],
)
def test_what_is_odd_is_said(tensors, kind, words):
    (first, *_) = found(**tensors)
    assert first.kind is kind
    assert words in first.sentence


def test_channels_last_are_seen_where_the_model_leaves_them_open():
    shape, there = ("n", "c", "h", "w"), np.ascontiguousarray(PICTURE.transpose(0, 2, 3, 1))
    assert [each.kind for each in found(x=there, spec=shape)] == [OddKind.CHANNELS_LAST]
    assert found(x=PICTURE, spec=shape) == []
    assert found(x=there, spec=("n", 16, "h", "w")) == [], "the model says what it takes"


@pytest.mark.parametrize(
    "tensors",
    [
        {"x": PICTURE}, {"x": PICTURE * 255}, {"x": IDS, "mask": IDS * 0 + 1}, {"x": PICTURE, "h0": np.zeros((1, 8))},
        {"x": IDS, "mask": MASK}, {"x": PIXELS * 4}, {"x": np.float32(0)}, {"x": np.zeros((0, 3), np.float32)},
        {"x": np.array(["a"], object)}, {"x": IDS.astype(np.float32)}, {"x": np.round(PICTURE)},
    ],
    ids=range(11),
)  # fmt: skip
def test_what_only_looks_odd_is_not(tensors):
    assert found(**tensors) == []


def test_made_up_data_are_not_looked_at():
    assert found(x=PICTURE * 0, origin=Origin.RANDOM) == []


def test_a_kind_is_told_once_for_an_input():
    feeds = [Feed(name, {"x": WITH_NAN}, Origin.REAL) for name in "ab"]
    assert [each.sentence[0] for each in oddities(feeds, [])] == ["a"]


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ([{"x": PICTURE * 0}, {"x": PICTURE * 0 + 2}], "input 'x' is zero everywhere"),
        ([{"x": PICTURE * 0 + 2, "scale": np.float32(3)}], "has the value 2.0 everywhere"),
        ([{"x": PICTURE * 0}, {"x": PICTURE}], ""),
        ([{"x": PICTURE * 0, "ids": IDS}], ""),
        ([{"x": np.float32(0)}], ""),
    ],
)
def test_inputs_that_can_show_little_have_one_value_on_every_feed(feeds, words):
    said = constant_inputs(Feed(str(number), tensors, Origin.REAL) for number, tensors in enumerate(feeds))
    assert words in said
    assert bool(said) is bool(words)

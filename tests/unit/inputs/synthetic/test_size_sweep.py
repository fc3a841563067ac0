"""Sweeps: which axes a word stands for, and what a feed of another shape holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.size_sweep import parse_sweep, swept
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

SPECS = [
    ValueSpec("ids", DType.INT64, ("N", "seq")),
    ValueSpec("mask", DType.INT64, ("N", "seq")),
    ValueSpec("image", DType.FLOAT, ("N", 3, None)),
]
FEED = Feed(
    "real[0]",
    {
        "ids": np.arange(6).reshape(2, 3),
        "mask": np.ones((2, 3), np.int64),
        "image": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    },
    Origin.REAL,
)


def test_words_become_sizes():
    assert parse_sweep(["batch=1,2,8", "x:2=16"]) == {"batch": (1, 2, 8), "x:2": (16,)}
    assert parse_sweep(["n=4,4,2"]) == {"n": (4, 2)}  # once is enough


@pytest.mark.parametrize("word", ["batch", "=1", "batch=", "batch=a", "batch=0", "batch=-1", "batch=1.5"])
def test_other_words_are_refused(word):
    with pytest.raises(UsageError) as caught:
        parse_sweep([word])
    assert caught.value.slug == "sweep-malformed"


def test_a_dimension_is_swept_in_every_input_that_has_it():
    small, large = swept(FEED, SPECS, {"N": (1, 5)})
    assert (small.label, large.label) == ("N=1", "N=5")
    assert {name: array.shape for name, array in large.feed.tensors.items()} == {
        "ids": (5, 3),
        "mask": (5, 3),
        "image": (5, 3, 4),
    }
    np.testing.assert_array_equal(large.feed.tensors["ids"], FEED.tensors["ids"][[0, 1, 0, 1, 0]])
    image = FEED.tensors["image"]
    np.testing.assert_array_equal(large.feed.tensors["image"][3], np.roll(image[1], 1, axis=-1))  # no row is another
    np.testing.assert_array_equal(large.feed.tensors["image"][:2], image)
    np.testing.assert_array_equal(small.feed.tensors["image"], FEED.tensors["image"][:1])
    assert large.feed.origin is Origin.REAL


def test_batch_is_the_first_axis_whatever_its_name():
    (only,) = swept(FEED, SPECS, {"batch": (3,)})
    assert all(len(array) == 3 for array in only.feed.tensors.values())


def test_one_axis_of_one_input():
    (only,) = swept(FEED, SPECS, {"image:2": (7,)})
    assert only.feed.tensors["image"].shape == (2, 3, 7)
    assert only.feed.tensors["ids"] is FEED.tensors["ids"]


def test_all_combinations_of_two():
    labels = [shaped.label for shaped in swept(FEED, SPECS, {"N": (1, 2), "seq": (3, 4)})]
    assert labels == ["N=1, seq=3", "N=1, seq=4", "N=2, seq=3", "N=2, seq=4"]


@pytest.mark.parametrize("word", ["image:1", "image:9", "other:0", "width"])
def test_what_is_not_open_cannot_be_swept(word):
    with pytest.raises(UsageError) as caught:
        swept(FEED, SPECS, {word: (2,)})
    assert caught.value.slug == "sweep-unknown"
    assert "N" in caught.value.cure


def test_a_size_beyond_any_memory_is_named():
    with pytest.raises(UsageError, match="'ids' does not fit into memory with N=99999999999999999999") as caught:
        swept(FEED, SPECS, {"N": (99999999999999999999,)})
    assert caught.value.slug == "sweep-too-large"


def test_a_dimension_that_others_are_computed_from_needs_feeds_of_its_own():
    specs = [ValueSpec("x", DType.FLOAT, ("past", 2)), ValueSpec("mask", DType.FLOAT, ("past+seq",))]
    feed = Feed("f", {"x": np.zeros((2, 2), np.float32), "mask": np.zeros(3, np.float32)}, Origin.REAL)
    with pytest.raises(UsageError) as caught:
        swept(feed, specs, {"past": (4,)})
    assert "--inputs" in caught.value.cure


@given(st.integers(1, 20), st.integers(1, 20))
def test_numbers_are_repeated_in_turn(length, size):
    feed = Feed("f", {"x": np.arange(length, dtype=np.float32)}, Origin.REAL)
    (only,) = swept(feed, [ValueSpec("x", DType.FLOAT, ("n",))], {"n": (size,)})
    np.testing.assert_array_equal(only.feed.tensors["x"], np.arange(size) % length)

"""What a mask or a length hides is changed, and nothing else."""

import numpy as np

from tensortriage.inputs.feed import Feed, Origin
from tensortriage_steps.consistency.masks import masked_relation


def feed(**tensors):
    return Feed("f", tensors, Origin.REAL)


def test_what_a_mask_hides_is_changed_and_nothing_else():
    mask = np.array([[1, 1, 0], [1, 0, 0]])
    ids = np.array([[5, 6, 7], [8, 9, 1]])
    found = masked_relation(feed(attention_mask=mask, input_ids=ids))
    changed = found.right.tensors["input_ids"] != found.left.tensors["input_ids"]
    assert not changed[mask == 1].any()
    assert changed[mask == 0].any()
    assert np.array_equal(found.right.tensors["attention_mask"], mask)


def test_where_nothing_is_hidden_the_last_quarter_is():
    ids = np.arange(8).reshape(1, 8)
    found = masked_relation(feed(attention_mask=np.ones((1, 8), np.int64), input_ids=ids))
    assert found.left.tensors["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0]]


def test_lengths_hide_what_is_behind_them():
    found = masked_relation(feed(x=np.arange(6.0).reshape(2, 3, 1), lengths=np.array([2, 3], np.int32)))
    changed = (found.right.tensors["x"] != found.left.tensors["x"])[..., 0]
    assert changed.tolist() == [[False, False, True], [False, False, False]]


def test_without_mask_and_length_nothing_is_claimed():
    assert masked_relation(feed(x=np.zeros((2, 3)))) is None
    assert masked_relation(feed(mask=np.full((2, 3), 0.5), x=np.zeros((2, 3)))) is None

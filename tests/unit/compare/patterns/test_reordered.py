"""Slices and numbers that were put into another order are found, with the order they were given here."""

import numpy as np
import pytest

from tensortriage.compare.patterns.error_view import lay_out
from tensortriage.compare.patterns.reordered import permuted, reordered

RANDOM = np.random.default_rng(0)


def pair(reference, target):
    return lay_out(np.ascontiguousarray(reference), np.ascontiguousarray(target), floor=0.0)


@pytest.mark.parametrize(
    ("sources", "slug", "words"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 0], "reordering", "rotated by -1"),
        ([0, 4, 1, 5, 2, 6, 3, 7], "reordering", "interleaved: 2 groups of 4"),
        ([0, 1, 2, 3, 4, 5, 6, 6], "duplicate", "index 7 of 8 hold copies of index 6 of 8"),
        ([0, 2, 1, 3, 4, 5, 7, 6], "reordering", "in another order: 1 holds 2, 2 holds 1"),
    ],
)
def test_slices_in_another_order(sources, slug, words):
    array = RANDOM.standard_normal((8, 30)).astype(np.float32)
    found = reordered(pair(array, array[sources]))
    assert (found.slug, found.evidence["axis"]) == (slug, 0)
    assert words in found.sentence


def test_values_in_wrong_places_within_each_row():
    rows = RANDOM.standard_normal((6, 80)).astype(np.float32)
    found = permuted(pair(rows, RANDOM.permuted(rows, axis=1)))
    assert found.slug == "permutation"
    assert "within each index of axis 0" in found.sentence
    assert "within" not in permuted(pair(rows, RANDOM.permuted(rows.reshape(-1)).reshape(rows.shape))).sentence

"""Cosines of vectors that are written out."""

import numpy as np
import pytest

from tensortriage_metrics.embeddings import cosine

FOUND = {"embedding": np.float32([[1, 0], [1, 1], [0, 0], [0, 0], [np.nan, 1]])}
RIGHT = np.float32([[0, 2], [1, 0], [0, 0], [1, 0], [0, 1]])
EXPECTED = [0.0, 0.5**0.5, 1.0, 0.0, 0.0]
"""Perpendicular, half a right angle, two zeros, one of zeros, no number."""


def test_each_row_has_its_cosine_with_the_label_or_the_reference():
    assert cosine(FOUND, {}, RIGHT) == pytest.approx(EXPECTED)
    assert cosine(FOUND, {}, np.array([1, 2, 3, 4, 5]), {"embedding": RIGHT}) == pytest.approx(EXPECTED)
    assert cosine({"y": np.float32([3, 4])}, {}, None, {"y": np.float32([4, 3])}) == pytest.approx([0.96])


def test_there_must_be_something_to_agree_with():
    with pytest.raises(ValueError, match="neither labels nor"):
        cosine(FOUND, {}, None, {})

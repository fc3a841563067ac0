"""Rows of a table that the other side took; its results are numpy's of those rows."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.lookups import lookup_ways
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.site import MeantNode

TABLE = np.random.default_rng(6).standard_normal((9, 4)).astype(np.float32)
PLACES = np.broadcast_to(np.arange(6), (2, 6)).copy()
MASK = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
NET = model("g (float[9,4] t, int64[2,6] at) => (float[2,6,4] y) { [n] y = Gather(t, at) }")


def ways(result, indices=PLACES, **known):
    (node,) = NET.ir.graph
    return list(lookup_ways(MeantNode(node, 17, {}), result, {"t": TABLE, "at": indices, **known}))


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (PLACES + 2, "its indices were 2 larger ([2, 3, 4, 5, 6, 7, ...], not [0, 1, 2, 3, 4, 5, ...])"),
        (PLACES[:, ::-1], "[5, 4, 3, 2, 1, 0, ...], not [0, 1, 2, 3, 4, 5, ...]"),
        (np.maximum(np.cumsum(MASK, -1) - 1, 0), "it counts positions from the first place that 'mask' has on"),
        (np.where(MASK, np.cumsum(MASK, -1) + 1, 0), "it counts positions from the first place that 'mask' has on"),
    ],
)
def test_the_rows_that_were_taken_are_told_and_give_the_result(taken, words):
    (way,) = ways(TABLE[taken], mask=MASK, ids=np.full((2, 6), 7))
    assert words in way.words
    assert np.array_equal(run(Rewriter(NET).rewritten({"n": way}), t=TABLE, at=PLACES), TABLE[taken])


def test_positions_that_the_model_counts_from_the_mask():
    (way,) = ways(TABLE[PLACES], np.maximum(np.cumsum(MASK, -1) - 1, 0), mask=MASK)
    assert "the model counts positions from the first place that 'mask' has on" in way.words


@pytest.mark.parametrize("result", [TABLE[PLACES], 1.5 * TABLE[PLACES], TABLE[PLACES][:, :3], TABLE[:2]])
def test_the_same_rows_other_numbers_and_other_shapes_are_none(result):
    assert ways(result, mask=MASK) == []

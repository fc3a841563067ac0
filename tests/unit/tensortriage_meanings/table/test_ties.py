"""A NonMaxSuppression that takes the last of equal boxes. What it selects is counted by hand."""

import numpy as np

from meant_otherwise import meant, model, run
from tensortriage_meanings.search import Unexplained, explained
from tensortriage_meanings.table.ties import TIES

BOXES = np.array([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]], np.float32)[None]
SCORES = np.array([[0.5, 0.5, 0.9, 0.5], [0.1, 0.4, 0.2, 0.3]], np.float32)[None]
NET = """g (float[1,4,4] boxes, float[1,2,4] scores) => (int64[n,3] y) <int64 most = {2}> {
  [op] y = NonMaxSuppression(boxes, scores, most) }"""


def test_the_last_of_equal_boxes_comes_first():
    one, feed = model(NET), {"boxes": BOXES, "scores": SCORES}
    assert run(one, **feed).tolist() == [[0, 0, 2], [0, 0, 0], [0, 1, 1], [0, 1, 3]]
    assert run(meant(one, TIES, "last one"), **feed).tolist() == [[0, 0, 2], [0, 0, 3], [0, 1, 1], [0, 1, 3]]


def test_such_a_choice_is_one_that_onnx_leaves_open():
    theirs = np.array([[0, 0, 2], [0, 0, 3], [0, 1, 1], [0, 1, 3]])
    subject = Unexplained(
        model(NET), lambda other: {"y": run(other, boxes=BOXES, scores=SCORES)}, {"y": theirs},
        lambda _, made: {"y": 0.0} if np.array_equal(made["y"], theirs) else None,
    )  # fmt: skip
    found = explained(subject, TIES)
    assert found is None  # one number of twelve may be another by chance
    twice = np.concatenate([SCORES] * 4, 1)
    text = NET.replace("[1,2,4]", "[1,8,4]")
    many = run(meant(model(text), TIES, "last one"), boxes=BOXES, scores=twice)
    subject = Unexplained(
        model(text), lambda other: {"y": run(other, boxes=BOXES, scores=twice)}, {"y": many},
        lambda _, made: {"y": 0.0} if np.array_equal(made["y"], many) else None,
    )  # fmt: skip
    found = explained(subject, TIES)
    assert found is not None
    assert [way.is_open for way in found.ways.values()] == [True]

"""Average precision of boxes that are written out; overlaps and areas are computed by hand."""

import numpy as np
import pytest

from tensortriage_metrics.detections import Boxes, average_precision, boxes, iou

SQUARES = np.float64([[0, 0, 10, 10], [20, 0, 30, 10]])


def found(corners, scores, classes):
    return Boxes(np.asarray(corners, float), np.asarray(scores, float), np.asarray(classes, float))


RIGHT = found(SQUARES, [1, 1], [0, 0])


def test_overlap_is_intersection_over_union():
    """Half of a square moved away: 50 shared of 150; apart: none; inside, a quarter."""
    others = np.float64([[5, 0, 15, 10], [50, 50, 60, 60], [0, 0, 5, 5]])
    assert iou(SQUARES[:1], others).tolist() == [[pytest.approx(1 / 3), 0.0, 0.25]]


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (RIGHT, 1.0),
        (found([], [], []).at(np.array([], int))._replace(corners=np.zeros((0, 4))), 0.0),
        (found(SQUARES[:1], [0.9], [0]), 0.5),  # one of two is found
        (found(SQUARES, [0.9, 0.8], [0, 1]), 0.5),  # the other has another class
        (found([*SQUARES, [50, 50, 60, 60]], [0.9, 0.8, 0.1], [0, 0, 0]), 1.0),  # a weak one behind costs nothing
        (found([*SQUARES, [50, 50, 60, 60]], [0.8, 0.7, 0.9], [0, 0, 0]), 2 / 3),  # precision 1/2, then 2/3
        (found([[0, 0, 10, 10], [20, 0, 30, 7.2]], [0.9, 0.8], [0, 0]), 0.75),  # IoU 0.72: five of ten thresholds
        (found([SQUARES[0], SQUARES[0]], [0.9, 0.8], [0, 0]), 0.5),  # a box is hit once
    ],
)
def test_average_precision(ours, expected):
    assert average_precision(ours, RIGHT) == pytest.approx(expected)


def test_where_nothing_is_there_a_sure_box_is_wrong():
    nothing = found(np.zeros((0, 4)), [], [])
    assert average_precision(nothing, nothing) == 1.0
    assert average_precision(found(SQUARES, [0.1, 0.2], [0, 0]), nothing) == 1.0
    assert average_precision(RIGHT, nothing) == 0.0


def test_detectors_return_boxes_in_several_ways():
    """The same two boxes apart, as rows, as raw centres and sizes, and as labels."""
    apart = {"boxes": SQUARES[None], "scores": np.array([[0.9, 0.8]]), "labels": np.array([[1, 0]])}
    rows = {"output": np.concatenate([SQUARES, [[0.9, 1], [0.8, 0]]], axis=1)[None]}
    raw = np.zeros((1, 6, 40))
    raw[0, :, 0], raw[0, :, 1] = [5, 5, 10, 10, 0, 0.9], [25, 5, 10, 10, 0.8, 0]
    raw[0, :, 2] = [5.2, 5, 10, 10, 0, 0.5]  # suppressed by the first
    for outputs in (apart, rows, {"output0": raw}):
        assert boxes(outputs, {}, None, apart).tolist() == [1.0]
        assert boxes(outputs, {}, {"boxes": SQUARES, "labels": np.array([1, 0])}).tolist() == [1.0]
        assert boxes(outputs, {}, {"boxes": SQUARES, "labels": np.array([1, 1])}).tolist() == [0.5]
    padded = np.concatenate([np.concatenate([SQUARES, [[1], [0]]], axis=1), np.zeros((3, 5))])
    assert boxes(rows, {}, padded).tolist() == [1.0]


def test_outputs_without_boxes_are_refused():
    with pytest.raises(ValueError, match=r"no output holds boxes: y \[1, 10\]"):
        boxes({"y": np.zeros((1, 10))}, {}, None, {"y": np.zeros((1, 10))})

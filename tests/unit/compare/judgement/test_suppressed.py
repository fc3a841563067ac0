"""Sets of boxes after a greedy suppression."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from tensortriage.compare.judgement.suppressed import SuppressionLimits, compare_suppressed

LIMITS = SuppressionLimits(most=10, overlap=0.5, score=0.3)
BOXES = np.array([[[0, 0, 10, 10], [0, 1, 10, 11], [50, 50, 60, 60], [90, 90, 99, 99]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, 0.1]]], np.float32)
NMS = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
g (float[b,n,4] boxes, float[b,c,n] scores, int64[1] most, float[1] overlap, float[1] score) => (int64[m,3] picked)
{ picked = NonMaxSuppression(boxes, scores, most, overlap, score) }""")


def selection(*boxes: int) -> np.ndarray:
    return np.array([(0, 0, box) for box in boxes], np.int64).reshape(-1, 3)


def compared(ours: np.ndarray, theirs: np.ndarray, **given: object):
    return compare_suppressed(ours, theirs, BOXES, SCORES, **{"limits": LIMITS, **given})


def test_the_order_does_not_matter() -> None:
    assert compared(selection(0, 2), selection(2, 0)).differing == 0


@pytest.mark.parametrize(
    ("theirs", "mismatches"),
    [
        (selection(0), 1),  # box 2 overlaps nothing and has a high score
        (selection(0, 1, 2), 1),  # boxes 0 and 1 overlap by 9 / 11
        (selection(0, 2, 3), 1),  # 0.1 is below the threshold of 0.3
        (selection(0, 2, 2), 1),  # twice
        (selection(0, 2, 7), 1),  # there is no such box
        (selection(), 2),
    ],
)
def test_what_no_suppression_ends_with(theirs: np.ndarray, mismatches: int) -> None:
    found = compared(selection(0, 2), theirs, radii=(0.01, 0.01))
    assert found.mismatches == mismatches
    assert found.worst_margin > 1.0


def test_a_class_or_batch_that_is_none() -> None:
    assert compared(selection(0, 2), np.array([[0, 0, 0], [0, 0, 2], [0, 5, 1]])).mismatches == 1


def test_the_better_of_two_overlapping_boxes_is_a_tie_of_their_scores() -> None:
    """Boxes 0 and 1: 0.9 and 0.8 tie from a radius of 0.05 on; two boxes differ, one is gone and one came."""
    tie = compared(selection(0, 2), selection(1, 2), radii=(0.0501, 0.0))
    assert (tie.mismatches, tie.ties) == (0, 2)
    assert compared(selection(0, 2), selection(1, 2), radii=(0.04, 0.0)).mismatches == 1


def test_the_threshold_of_scores() -> None:
    assert compared(selection(0, 2), selection(0, 2, 3), radii=(0.21, 0.0)).mismatches == 0
    assert compared(selection(0, 2, 3), selection(0, 2), radii=(0.21, 0.0)).mismatches == 0


def test_the_threshold_of_overlap() -> None:
    """9 / 11 = 0.818: both are left over at a threshold of 0.82; moved by 0.05 the overlap is up to 9.1 / 10.9."""
    limits = SuppressionLimits(most=10, overlap=0.82, score=0.3)
    assert compared(selection(0, 1, 2), selection(0, 2), limits=limits, radii=(0.0, 0.05)).mismatches == 0
    assert compared(selection(0, 1, 2), selection(0, 2), limits=limits, radii=(0.0, 0.0)).mismatches == 1
    assert compared(selection(0, 1, 2), selection(0, 2), limits=LIMITS, radii=(0.0, 0.0)).mismatches == 0


def test_the_last_box_allowed() -> None:
    limits = SuppressionLimits(most=1, overlap=0.5, score=0.3)
    assert compared(selection(0), selection(2), limits=limits, radii=(0.11, 0.0)).mismatches == 0
    assert compared(selection(0), selection(2), limits=limits, radii=(0.05, 0.0)).mismatches == 1
    assert compared(selection(0), selection(0, 2), limits=limits, radii=(0.05, 0.0)).mismatches == 1


def test_centre_and_size() -> None:
    boxes = np.array([[[5, 5, 10, 10], [6, 5, 10, 10], [55, 55, 10, 10], [95, 95, 9, 9]]], np.float32)
    limits = SuppressionLimits(most=10, overlap=0.5, score=0.3, corners=False)
    found = compare_suppressed(selection(0, 2), selection(0, 1, 2), boxes, SCORES, limits=limits)
    assert found.mismatches == 1
    apart = SuppressionLimits(most=10, overlap=0.85, score=0.3, corners=False)
    assert compare_suppressed(selection(0, 2), selection(0, 1, 2), boxes, SCORES, limits=apart).mismatches == 0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(1e-4, 0.05))
def test_what_the_onnx_reference_ends_with_on_moved_boxes_and_scores_is_within(seed: int, radius: float) -> None:
    """ONNX's own evaluator decides on values off by at most the radius: whatever it ends with is valid."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 3, (1, 12, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(0.5, 2, corner.shape)], 2).astype(np.float32)
    scores = rng.uniform(0, 1, (1, 2, 12)).astype(np.float32)
    limits = SuppressionLimits(most=4, overlap=0.4, score=0.2)
    evaluator = ReferenceEvaluator(NMS)

    def picked(boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        feed = {"boxes": boxes, "scores": scores, "most": np.array([4]), "overlap": np.float32([0.4]),
                "score": np.float32([0.2])}  # fmt: skip
        return evaluator.run(None, feed)[0]

    moved = [(each + radius * rng.uniform(-1, 1, each.shape)).astype(np.float32) for each in (boxes, scores)]
    allowed = radius + 1e-5  # float32
    ours, theirs = picked(boxes, scores), picked(*moved)
    found = compare_suppressed(ours, theirs, boxes, scores, limits=limits, radii=(allowed, allowed))
    assert found.mismatches == 0
    if len(theirs):
        lost = compare_suppressed(ours, theirs[1:], boxes, scores, limits=limits, radii=(0.0, 0.0))
        assert lost.mismatches > 0

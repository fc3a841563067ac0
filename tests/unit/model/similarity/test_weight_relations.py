"""What was done to a weight, of weights to which it was done here."""

import numpy as np
import pytest

from tensortriage.model.similarity.changes import ChangeKind
from tensortriage.model.similarity.weight_relations import counted, relation

RANDOM = np.random.default_rng(0)
W = RANDOM.standard_normal((24, 16)).astype(np.float32).astype(np.float64)
KERNEL = RANDOM.standard_normal((6, 4, 3, 3)).astype(np.float32).astype(np.float64)


def zeroed(row):
    array = W.copy()
    array[row] = 0.0
    return array


def exchanged(array, first, second):
    array = array.copy()
    array[[first, second]] = array[[second, first]]
    return array


def on_a_grid(array, top, axis):
    step = np.abs(array).max(axis=axis, keepdims=True) / top
    return (np.rint(array / step) * step).astype(np.float32).astype(np.float64)


def stored_in(array, dtype):
    return array.astype(dtype).astype(np.float64)


HALF = stored_in(1e-4 * W, np.float16)
FLUSHED = np.where(np.abs(HALF) < 2.0**-14, 0.0, HALF)  # smallest normal number: IEEE 754-2008, table 3.5
REORDERED, COARSENED = ChangeKind.WEIGHT_REORDERED, ChangeKind.WEIGHT_COARSENED
LIMITED = ChangeKind.WEIGHT_LIMITED
"""onnxconverter-common passes on sizes from 1e-7 to 1e4 (convert_np_to_float16, defaults)."""


@pytest.mark.parametrize(
    ("was", "now", "kind", "words"),
    [
        (W, np.roll(W, 1, axis=0), REORDERED, "with the slices of axis 0 rolled by 1"),
        (W, np.roll(W, -2, axis=1), REORDERED, "with the slices of axis 1 rolled by -2"),
        (W, exchanged(W, 3, 7), REORDERED, "with the slices of axis 0 3 and 7 exchanged"),
        (W, W[np.r_[12:18, 0:6, 6:12, 18:24]], REORDERED, "another order: blocks of 6 as [2, 0, 1, 3]"),
        (W, W[RANDOM.permutation(24)], REORDERED, "of axis 0 in another order"),
        (KERNEL, KERNEL[:, :, ::-1, ::-1], REORDERED, "reversed along axes 2, 3"),
        (KERNEL, KERNEL.transpose(1, 0, 2, 3).reshape(KERNEL.shape), REORDERED, "axes in the order [1, 0, 2, 3]"),
        (W, RANDOM.permutation(W.ravel()).reshape(W.shape), REORDERED, "in another order of its elements"),
        (W, stored_in(W, np.float16), COARSENED, "rounded to float16"),
        (1e-4 * W, FLUSHED, COARSENED, "rounded to float16 and zeroed in"),
        (1e-4 * W, FLUSHED, COARSENED, "(subnormal in that type is below 6.1e-05)"),
        (W, zeroed(3), COARSENED, "zeroed in 16 of 384 elements, all in index 3 of axis 0"),
        (W, np.clip(W, -0.5, 0.5), COARSENED, "cut off at -0.5 and 0.5"),
        (np.array([22050.0]), np.array([10000.0]), LIMITED, "cut at 10,000 (22,050 before) by the converter to fp16"),
        (np.array([1e-9, 0.0, -2.0]), stored_in(np.array([1e-7, 0.0, -2.0]), np.float16), LIMITED, "raised to 1e-07"),
        (W, np.round(W, 2), COARSENED, "rounded to 2 decimals"),
        (W, on_a_grid(W, 127, None), COARSENED, "rounded to 8 bits (one scale)"),
        (W, on_a_grid(W, 7, 1), COARSENED, "rounded to 4 bits (a scale for each index of axis 0)"),
    ],
)
def test_each_relation(was, now, kind, words):
    found = relation(was, np.ascontiguousarray(now))
    assert found[0] is kind
    assert words in found[1]


@pytest.mark.parametrize(
    "now",
    [
        W * 1.01,
        W + 0.1,
        W * (1 + 1e-3 * RANDOM.standard_normal(W.shape)),
        RANDOM.standard_normal(W.shape),
        np.where(np.arange(16) < 4, np.round(W, 2), W),  # a part only
        np.where(W > 1, np.nan, W),
    ],
)
def test_no_relation_gives_every_number(now):
    assert relation(W, now) is None


def test_a_scale_for_each_number_proves_nothing():
    bias = RANDOM.standard_normal(16)
    assert relation(bias, bias * (1 + 1e-3 * RANDOM.standard_normal(16))) is None


def test_few_numbers_are_in_any_relation():
    assert relation(np.array([1.0, 2.0]), np.array([2.0, 1.0])) is None


def test_what_is_told_of_other_numbers():
    now = W.copy()
    now[5, :3] += 1.0
    assert counted(W, now) == "3 of 384 elements differ, all in index 5 of axis 0, by at most 1 (9 % of its size)"
    assert counted(np.array([1, 2]), np.array([1, 5])) == "[1, 5] instead of [1, 2]"
    assert counted(np.arange(12), np.arange(12) + 1) == "all 12 numbers are 1 too large"
    assert counted(np.array([0.0]), np.array([-0.0])) == "equal but for signs of zeros"


def test_a_matrix_of_low_rank_that_was_added_is_told_by_its_rank():
    """As of an adapter; an offset of each row has rank 1 and is none."""
    random = np.random.default_rng(7)
    was, down, up = (random.standard_normal(shape) for shape in ((24, 40), (24, 3), (3, 40)))
    kind, words = relation(was, was + 0.1 * down @ up)
    assert kind is ChangeKind.WEIGHT_ADAPTED
    assert words.startswith("moved by a matrix of rank 3 ")
    assert relation(was, was + down[:, :1]) is None
    assert relation(was, was + 0.1 * random.standard_normal(was.shape)) is None

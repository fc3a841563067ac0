"""Why a sum is not finite: by the terms of one element, whose arithmetic is written out here."""

import math

import numpy as np
import pytest
from onnx import helper

from models import of_nodes
from tensortriage.compare.nonfinite.element import Element
from tensortriage.compare.nonfinite.sum_rules import SUMS

INF, NAN = math.inf, math.nan
LARGEST = 100.0


def rule(op_type, operands, index, shape, **attributes):
    names = [f"i{number}" for number in range(len(operands))]
    node = of_nodes([helper.make_node(op_type, names, ["y"], name="n", **attributes)],
                    inputs={name: np.shape(x) for name, x in zip(names, operands, strict=True)},
                    outputs={"y": ()}).graph.nodes[0]  # fmt: skip
    wide = [np.asarray(x, np.float64) for x in operands]
    with np.errstate(all="ignore"):
        found = SUMS[op_type](Element(node, wide, shape, index, INF, LARGEST))
    return None if found is None else found.rule


@pytest.mark.parametrize(
    ("row", "column", "expected"),
    [
        ([0.0, 1.0], [INF, 1.0], "0 * Inf"),
        ([INF, 1.0], [1.0, -INF], "Inf - Inf"),
        ([INF, 1.0], [1.0, 1.0], "carried"),
        ([NAN, 1.0], [1.0, 1.0], "carried"),
        ([10.0, 10.0], [9.0, 9.0], "overflow"),  # 90 + 90 is beyond 100
        ([10.0, 10.0], [4.0, 5.0], None),  # 90 is not
        ([1e200, 0.0], [1e200, 0.0], "overflow"),  # one product by itself
    ],
)
def test_a_product_by_its_row_and_column(row, column, expected):
    left, right = np.array([[1.0, 1.0], row]), np.array([[1.0, column[0]], [1.0, column[1]]])
    assert rule("MatMul", [left, right], (1, 1), (2, 2)) == expected


def test_a_stack_of_products_takes_the_matrices_of_its_batch():
    left, right = np.ones((3, 2, 2)), np.ones((1, 2, 2))
    left[2, 0, 0] = NAN
    assert rule("MatMul", [left, right], (2, 0, 1), (3, 2, 2)) == "carried"
    assert rule("MatMul", [left, right], (1, 0, 1), (3, 2, 2)) is None


def test_a_gemm_looks_at_its_operands_as_they_are_turned_and_at_its_bias():
    left, right = np.array([[1.0, INF]]), np.array([[1.0], [2.0]])
    assert rule("Gemm", [left, right], (1, 1), (2, 2), transA=1, transB=1) == "carried"  # row 1 of the turned left
    assert rule("Gemm", [left, right], (0, 1), (2, 2), transA=1, transB=1) is None
    finite = np.ones((2, 2))
    assert rule("Gemm", [finite, finite, np.array([0.0, INF])], (0, 1), (2, 2)) == "carried"


def test_a_convolution_by_its_sample_and_filter():
    data, weight = np.ones((2, 2, 4, 4)), np.ones((2, 1, 3, 3))
    data[1, 1, 0, 0] = INF
    given = {"kernel_shape": [3, 3], "group": 2}
    assert rule("Conv", [data, weight], (1, 1, 0, 0), (2, 2, 2, 2), **given) == "carried"
    assert rule("Conv", [data, weight], (1, 0, 0, 0), (2, 2, 2, 2), **given) is None  # another group
    assert (
        rule("Conv", [20.0 * np.ones((1, 1, 4, 4)), weight[:1]], (0, 0, 1, 1), (1, 1, 2, 2), **given | {"group": 1})
        == "overflow"
    )


@pytest.mark.parametrize(
    ("op_type", "slice_", "expected"),
    [
        ("ReduceSum", [60.0, 60.0], "overflow"),
        ("ReduceSumSquare", [8.0, 8.0], "overflow"),  # 128
        ("ReduceL1", [-60.0, 30.0], None),
        ("ReduceLogSum", [1.0, -1.0], "log of 0"),
        ("ReduceLogSum", [1.0, -2.0], "log of a negative number"),
        ("ReduceLogSumExp", [5.0, 0.0], "overflow"),  # e^5 is 148
        ("ReduceMean", [INF, -INF], "Inf - Inf"),
    ],
)
def test_a_reduction_by_its_slice(op_type, slice_, expected):
    data = np.stack([np.ones(2), np.array(slice_)])
    assert rule(op_type, [data], (1,), (2,), axes=[1], keepdims=0) == expected
    assert rule(op_type, [data.T], (0, 1), (1, 2), axes=[0], keepdims=1) == expected


@pytest.mark.parametrize(
    ("slice_", "expected"),
    [
        ([NAN, 0.0], "carried"),
        ([-INF, -INF], "Inf - Inf"),
        ([INF, 0.0], "Inf - Inf"),
        ([5.0, 0.0], "overflow"),  # without the maximum subtracted, e^5 is beyond 100
        ([4.0, 0.0], None),
    ],
)
def test_a_softmax_by_its_slice(slice_, expected):
    data = np.stack([np.zeros(2), np.array(slice_)], axis=1)
    assert rule("Softmax", [data], (0, 1), (2, 2), axis=0) == expected


def test_a_normalization_by_what_it_takes_the_variance_of():
    data = np.stack([np.full(4, 3.0), np.array([1.0, INF, 0.0, 0.0]), np.array([-9.0, 9.0, -9.0, 9.0])])
    rules = [rule("LayerNormalization", [data, np.ones(4)], (row, 0), (3, 4), axis=-1) for row in range(3)]
    assert rules == ["0 / 0", "carried", "overflow"]


def test_a_pool_by_its_channel():
    data = np.zeros((1, 2, 2, 2))
    data[0, 1, 0, 0] = NAN
    assert rule("GlobalAveragePool", [data], (0, 1, 0, 0), (1, 2, 1, 1)) == "carried"
    assert rule("GlobalAveragePool", [data], (0, 0, 0, 0), (1, 2, 1, 1)) is None


@pytest.mark.parametrize(
    ("row", "expected"), [([-INF, -INF], "Inf - Inf"), ([-INF, 2.0], None), ([90.0, 2.0], "overflow")]
)
def test_a_logarithm_of_powers_takes_off_the_largest_which_may_be_masked(row, expected):
    """Exp(90) is beyond 100; -Inf alone, as of a row that is masked throughout, less itself is NaN."""
    assert rule("ReduceLogSumExp", [np.array([[1.0, 1.0], row])], (1,), (2,), axes=[1], keepdims=0) == expected

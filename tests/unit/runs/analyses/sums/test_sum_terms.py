"""How large the terms behind sums get, and how far they cancel: against sums written out by hand."""

import math

import numpy as np
import pytest
from onnx import helper

from models import of_nodes
from tensortriage.runs.analyses.sums.sum_terms import terms_of


def terms(op_type, operands, result, *, version=17, **attributes):
    names = [f"i{number}" for number in range(len(operands))]
    node = helper.make_node(op_type, names, ["y"], name="n", **attributes)
    shapes = {name: np.shape(x) for name, x in zip(names, operands, strict=True)}
    (node,) = of_nodes([node], inputs=shapes, outputs={"y": ()}).graph.nodes
    arrays = [np.asarray(x, np.float32) for x in operands]
    return terms_of(node, arrays, np.asarray(result, np.float32), version=version)


def test_a_product_that_cancels():
    found = terms("MatMul", ([[3.0, 4.0]], [[1.0], [-0.5]]), [[1.0]])
    assert found.bound == 5.0  # |3 * 1| + |4 * -0.5|
    assert found.condition == pytest.approx(math.sqrt(9.0 + 4.0))  # over a sum of 1


def test_alpha_scales_the_terms_and_the_bias_is_one_of_them():
    found = terms("Gemm", ([[2.0]], [[3.0]], [1.0]), [[11.5]], alpha=-2.0, beta=-0.5)
    assert found.bound == 12.5  # |-2| * 6 + |-0.5| * 1
    assert found.condition == pytest.approx(math.sqrt(144.0 + 0.25) / 11.5)


def test_a_difference_of_neighbours_has_no_bound_of_its_own():
    found = terms("Sub", ([100.0, 100.0], [99.0, 99.0]), [1.0, 1.0])
    assert found.bound is None
    assert found.condition == pytest.approx(math.hypot(100.0, 99.0))


def test_terms_that_cancel_to_nothing():
    assert terms("ReduceSum", ([1.0, -1.0], [0]), [0.0], version=13).condition == math.inf


def test_terms_of_one_sign_do_not_cancel():
    found = terms("ReduceSumSquare", ([[3.0, 4.0]],), [[25.0]], axes=[1])
    assert (found.bound, found.condition) == (25.0, None)


def test_the_mean_of_a_pool_is_over_all_of_its_window():
    found = terms("GlobalAveragePool", (np.full((1, 1, 2, 2), -3.0),), [[[[-3.0]]]])
    assert found.bound == pytest.approx(12.0)


@pytest.mark.parametrize(("version", "bound"), [(12, 4.0), (13, 2.0)])
def test_softmax_sums_over_the_axes_of_its_opset(version, bound):
    zeros = np.zeros((1, 2, 2))
    assert terms("Softmax", (zeros,), zeros, version=version, axis=1).bound == pytest.approx(bound)


def test_a_large_mean_makes_a_normalization_ill_conditioned():
    near, far = ([[x - 1.0, x + 1.0]] for x in (0.0, 1000.0))
    low, high = (terms("LayerNormalization", (x, [1.0, 1.0]), [[-1.0, 1.0]]).condition for x in (near, far))
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(math.sqrt(2e6 + 1.0))  # (999^2 + 1001^2) / 2 + 1000^2, over a variance of 1


@pytest.mark.parametrize(
    ("op_type", "operands"), [("Relu", ([1.0],)), ("MatMul", ([[1.0, 2.0]], [[1.0]]))], ids=["adds nothing", "unfit"]
)
def test_what_has_no_sums_and_what_does_not_fit_is_left_out(op_type, operands):
    assert terms(op_type, operands, [1.0]) is None


def test_squares_of_what_is_not_centred_are_those_of_the_sum_of_both_operands():
    """ONNX Runtime's SkipSimplifiedLayerNormalization: (1 + 2)^2 + (2 + 2)^2 = 25."""
    node = helper.make_node("SkipSimplifiedLayerNormalization", ["a", "b", "g"], ["y"], domain="com.microsoft")
    (node,) = of_nodes([node], inputs={"a": (1, 2), "b": (1, 2), "g": (2,)}, outputs={"y": ()}).graph.nodes
    operands = [np.float32([[1, 2]]), np.float32([[2, 2]]), np.float32([1, 1])]
    assert terms_of(node, operands, operands[0], version=17).bound == 25.0

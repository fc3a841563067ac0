"""Why an element is not finite: every rule on operands whose arithmetic is known."""

import math

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from models import of_nodes
from tensortriage.compare.nonfinite.arithmetic_rules import UNEXPLAINED, rule_of

INF, NAN = math.inf, math.nan
FP32_MAX = float(np.finfo(np.float32).max)


def node_of(op_type, operands, **attributes):
    names = [f"i{number}" for number in range(len(operands))]
    node = helper.make_node(op_type, names, ["y"], name="n", **attributes)
    return of_nodes([node], inputs={name: np.shape(x) for name, x in zip(names, operands, strict=True)},
                    outputs={"y": ()}).graph.nodes[0]  # fmt: skip


def computed(op_type, operands, **attributes):
    """Return what ONNX Runtime makes of some float32 operands."""
    arrays = [np.asarray(x, np.float32) for x in operands]
    names = [f"i{number}" for number in range(len(arrays))]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, x.shape) for n, x in zip(names, arrays, strict=True)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def explained(op_type, operands, index=None, *, largest=FP32_MAX, **attributes):
    """Run an operator and explain its first (or one) element that is not finite."""
    result = computed(op_type, operands, **attributes)
    index = tuple(np.argwhere(~np.isfinite(result))[0]) if index is None else index
    arrays = [np.asarray(x, np.float32) for x in operands]
    return rule_of(node_of(op_type, operands, **attributes), arrays, result, index, largest=largest)


@pytest.mark.parametrize(
    ("op_type", "operands", "rule"),
    [
        ("Mul", ([1, 0], [2, INF]), "0 * Inf"),
        ("Mul", ([1, 1e30], [2, 1e30]), "overflow"),
        ("Add", ([1, INF], [1, -INF]), "Inf - Inf"),
        ("Sub", ([1, INF], [1, INF]), "Inf - Inf"),
        ("Add", ([0, 3e38], [0, 3e38]), "overflow"),
        ("Div", ([1, 0], [1, 0]), "0 / 0"),
        ("Div", ([1, 3], [1, 0]), "division by 0"),
        ("Div", ([1, INF], [1, -INF]), "Inf / Inf"),
        ("Pow", ([1, -8], [1, 0.5]), "root of a negative number"),
        ("Pow", ([1, 1e20], [1, 2]), "overflow"),
        ("Pow", ([1, 0], [1, -1]), "division by 0"),
        ("Sqrt", ([4, -1e-6],), "root of a negative number"),
        ("Log", ([1, -2],), "log of a negative number"),
        ("Log", ([1, 0],), "log of 0"),
        ("Exp", ([1, 100],), "overflow"),
        ("Reciprocal", ([1, 0],), "division by 0"),
        ("Acos", ([0, 1.5],), "outside the domain"),
        ("Atanh", ([0, 1],), "outside the domain"),
        ("Sin", ([0, INF],), "outside the domain"),
        ("Cosh", ([0, 200],), "overflow"),
        ("Sqrt", ([1, NAN],), "carried"),
        ("Add", ([1, NAN], [1, 1]), "carried"),
        ("Relu", ([1, INF],), "carried"),
    ],
)
def test_rules_of_single_elements(op_type, operands, rule):
    found = explained(op_type, operands)
    assert (found.rule, found.index) == (rule, (1,))
    assert found.sentence.startswith("element [1] is ")


def test_a_matrix_product_names_the_term():
    left, right = np.ones((2, 3, 4)), np.ones((4, 5))
    left[1, 2, 3], right[3, 0] = 0.0, INF
    found = explained("MatMul", (left, right), (1, 2, 0))
    assert found.rule == "0 * Inf"
    assert "term 3 of the sum is 0 * Inf" in found.sentence


@pytest.mark.parametrize(("op_type", "x"), [("Softplus", 11.5), ("Mish", 11.5), ("Sigmoid", -11.5), ("Tanh", 5.75)])
def test_an_exponential_on_the_way_overflows_in_fp16(op_type, x):
    """e^11.5 is 98,716, and the largest number of fp16 65,504."""
    array, result = np.array([1.0, x], np.float32), np.array([1.0, INF], np.float32)
    found = rule_of(node_of(op_type, [array]), [array], result, (1,), largest=65504.0)
    assert found.rule == "overflow"
    assert found.sentence.startswith("element [1] is Inf: exp(11.5), on the way to the result, beyond the largest")
    assert rule_of(node_of(op_type, [array]), [array], result, (1,), largest=FP32_MAX).rule == UNEXPLAINED


def test_a_sum_whose_terms_fit_overflows_in_fp16():
    left, right = np.full((1, 300), 20.0), np.full((300, 2), 20.0)
    node = node_of("MatMul", (left, right))
    found = rule_of(node, [left, right], np.full((1, 2), np.float16(INF)), (0, 1), largest=65504.0)
    assert found.rule == "overflow"
    assert found.operands["sum of magnitudes"] == 120000.0
    assert "120,000" in found.sentence
    assert "65,504" in found.sentence


@pytest.mark.parametrize(
    ("operands", "attributes", "rule"),
    [
        (([[-INF, -INF], [0, 1]],), {}, "Inf - Inf"),
        (([[INF, 1], [0, 1]],), {}, "Inf - Inf"),
    ],
)
def test_softmax_of_masked_rows(operands, attributes, rule):
    assert explained("Softmax", operands, axis=-1, **attributes).rule == rule


def test_reductions_follow_axes_and_keepdims():
    x = np.ones((2, 3, 4), np.float32)
    x[1, :, 2] = 3e38
    found = explained("ReduceMean", (x,), axes=[1], keepdims=0)
    assert (found.rule, found.index) == ("overflow", (1, 2))
    squares = np.full((2, 3, 4), 2e19, np.float32)
    assert explained("ReduceSumSquare", (squares,), axes=[0, 2], keepdims=1).rule == "overflow"
    x[1, 0, 2], x[1, 1, 2] = INF, -INF
    assert explained("ReduceMean", (x,), axes=[1], keepdims=1).rule == "Inf - Inf"


def test_gemm_and_its_bias():
    a, b = np.ones((2, 3)), np.ones((2, 3))
    found = explained("Gemm", (a, b, [0.0, INF]), transB=1)
    assert (found.rule, found.index) == ("carried", (0, 1))


def test_a_convolution_overflows_where_magnitudes_do():
    x, w = np.full((1, 4, 5, 5), 100.0, np.float32), np.full((2, 2, 3, 3), 50.0, np.float32)
    node = node_of("Conv", (x, w), group=2, pads=[1, 1, 1, 1])
    result = np.full((1, 2, 5, 5), np.inf, np.float32)
    inner = rule_of(node, [x, w], result, (0, 1, 2, 2), largest=65504.0)
    assert (inner.rule, inner.operands["sum of magnitudes"]) == ("overflow", 2 * 9 * 5000.0)
    corner = rule_of(node, [x, w], result, (0, 1, 0, 0), largest=65504.0)  # 2 x 4 terms of 5000 would fit
    assert corner.rule == UNEXPLAINED


@pytest.mark.parametrize("op_type", ["Add", "MatMul", "Exp", "Conv", "Relu", "Softmax"])
def test_finite_operands_without_reason_are_not_explained_away(op_type):
    shapes = {"Conv": [(1, 1, 4, 4), (1, 1, 2, 2)], "MatMul": [(2, 2), (2, 2)], "Add": [(2, 2), (2, 2)]}
    operands = [np.ones(shape, np.float32) for shape in shapes.get(op_type, [(2, 2)])]
    result = computed(op_type, operands)
    result.flat[0] = NAN
    found = rule_of(node_of(op_type, operands), operands, result, (0,) * result.ndim)
    assert found.rule == UNEXPLAINED
    assert "no reason" in found.sentence

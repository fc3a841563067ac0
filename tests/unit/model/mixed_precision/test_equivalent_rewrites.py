"""Rewrites against narrow formats compute what the model computed, and take away what overflows."""

import numpy as np
import pytest
from onnx import helper

from models import of_nodes, parse
from running import run
from tensortriage.model.mixed_precision.equivalent_rewrites import clamp_constants, fuse_layer_norms, scale_query
from tensortriage.values.dtype import Precision

NORM = """
    <ir_version: 8, opset_import: ["" : %d]>
    g (float[2,8] x) => (float[2,8] y)
    <float two = {2}, float eps = {0.001}, int64[1] last = {-1},
     float[8] gamma = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] beta = {0, 1, 0, 1, 0, 1, 0, 1}> {
        [mean] m = ReduceMean %s(x%s)
        [centre] d = Sub(x, m)
        [square] s = %s
        [variance] v = ReduceMean %s(s%s)
        [stable] e = Add(v, eps)
        [root] r = Sqrt(e)
        [divide] n = Div(d, r)
        [scale] g1 = Mul(n, gamma)
        [shift] y = Add(g1, beta)
    }"""


def norm(opset, square):
    mean = ("<axes = [-1]>", "") if opset < 18 else ("", ", last")
    return parse(NORM % (opset, *mean, square, *mean))


@pytest.mark.parametrize("square", ["Pow(d, two)", "Mul(d, d)"])
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_a_normalization_written_out_becomes_one_operator(opset, square):
    model = norm(opset, square)
    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32) * 30
    fused = fuse_layer_norms(model)
    assert [node.op_type for node in fused.graph.nodes if node.op_type != "Constant"] == ["LayerNormalization"]
    fused.check()
    np.testing.assert_allclose(run(fused, {"x": x})["y"], run(model, {"x": x})["y"], rtol=1e-5, atol=1e-5)


def test_what_looks_alike_is_left_alone():
    assert fuse_layer_norms(norm(17, "Pow(d, eps)")) is None
    assert fuse_layer_norms(parse("g (float[2,8] x) => (float[2,8] y) { y = Sqrt(x) }")) is None


@pytest.mark.parametrize("scaling", ["Mul", "Div"])
def test_the_scale_moves_before_the_product(scaling):
    model = parse(
        f"""g (float[2,4] q, float[4,3] k) => (float[2,3] y) <float factor = {{8}}> {{
            [product] p = MatMul(q, k)
            [scaled] y = {scaling}(p, factor)
        }}"""
    )
    rng = np.random.default_rng(1)
    feed = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("q", (2, 4)), ("k", (4, 3)))}
    moved = scale_query(model)
    moved.check()
    assert [node.op_type for node in moved.graph.nodes] == [scaling, "MatMul"]
    np.testing.assert_allclose(run(moved, feed)["y"], run(model, feed)["y"], rtol=1e-5)


def test_a_product_that_others_read_is_not_scaled_twice():
    model = parse(
        """g (float[2,4] q, float[4,3] k) => (float[2,3] y, float[2,3] z) <float factor = {8}> {
            [product] p = MatMul(q, k)
            [scaled] y = Mul(p, factor)
            [other] z = Tanh(p)
        }"""
    )
    assert scale_query(model) is None


def test_constants_are_brought_into_range_and_infinities_stay():
    mask = np.array([-1e9, -np.inf, 5.0, 70000.0], np.float32)
    nodes = [helper.make_node("Add", ["x", "mask"], ["y"], name="add")]
    model = of_nodes(nodes, inputs={"x": (4,)}, outputs={"y": (4,)}, initializers={"mask": mask})
    clamped = clamp_constants(model, Precision.FP16)
    expected = np.array([-65504 / 2, -np.inf, 5.0, 65504 / 2], np.float32)
    np.testing.assert_array_equal(clamped.graph.weight("mask"), expected)
    np.testing.assert_array_equal(model.graph.weight("mask"), mask)
    assert clamp_constants(clamped, Precision.FP16) is None
    assert clamp_constants(model, Precision.BF16) is None

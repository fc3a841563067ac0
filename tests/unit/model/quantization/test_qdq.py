import numpy as np
import pytest

import models
import running
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import (
    are_symmetric,
    bypass,
    may_rectify,
    multiplications,
    quantizers,
    seven_bit_weights,
    uses_half_range,
)
from tensortriage.model.shape_inference.type_inference import infer_types

NET = """
    g (float[2, 2] x) => (float[2, 2] y)
    <float s = {0.1}, uint8 o = {128}, float t = {0.5}, int8[2, 2] w = {127, -128, 3, 4}, int8 u = {0}> {
        [there] q = QuantizeLinear(x, s, o)
        [back] a = DequantizeLinear(q, s, o)
        [weight] b = DequantizeLinear(w, t, u)
        [mm] y = MatMul(a, b)
    }"""


def test_half_the_steps_twice_as_long():
    model = models.parse(NET)
    assert set(multiplications(model.graph)) == {"mm"}
    narrow = seven_bit_weights(model)
    assert narrow.graph.weight("w").tolist() == [[64, -64], [2, 2]]  # rint(127 / 2) is 64, of 1.5 it is 2
    assert narrow.graph.weight("t") == 1.0
    x = np.array([[1.0, 2.0], [-1.0, 0.5]], np.float32)
    expected = x @ np.array([[64.0, -64.0], [2.0, 2.0]], np.float32)
    np.testing.assert_allclose(running.run(narrow, {"x": x})["y"], expected, rtol=1e-5)


def test_weights_in_float_behind_a_pair():
    model = models.parse(
        NET.replace("int8[2, 2] w = {127, -128, 3, 4}", "float[2, 2] v = {63.5, -64, 1.5, 2}").replace(
            "[weight]", "[first] w = QuantizeLinear(v, t, u) [weight]"
        )
    )
    x = np.eye(2, dtype=np.float32)
    got = running.run(seven_bit_weights(model), {"x": x})["y"]
    np.testing.assert_allclose(got, [[64.0, -64.0], [2.0, 2.0]], rtol=1e-5)


def test_a_scale_that_others_use_is_left_alone():
    assert (
        seven_bit_weights(models.parse(NET.replace("(w, t, u)", "(w, s, u)").replace("float t = {0.5}, ", ""))) is None
    )


@pytest.mark.parametrize(("second", "expected"), [("0", True), ("5", False)])
def test_zero_points_that_are_absent_on_purpose(second, expected):
    text = f"""
        g (float[2] x) => (float[2] y)
        <float s = {{0.5}}, int8 o = {{0}}, float t = {{0.25}}, int8 u = {{{second}}}> {{
            q = QuantizeLinear(x, s, o)  a = DequantizeLinear(q, s, o)
            r = QuantizeLinear(a, t, u)  y = DequantizeLinear(r, t, u) }}"""
    graph = models.parse(text).graph
    pairs = quantizers(graph)
    assert are_symmetric(graph, pairs) is expected
    assert not are_symmetric(graph, pairs[:1])  # one alone says nothing


def test_nothing_to_narrow():
    assert seven_bit_weights(models.parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")) is None


def test_quantizers_in_the_domain_of_onnx_runtime():
    standard = models.parse(NET)
    model = standard.clone()
    for node in model.ir.graph:
        if node.op_type.endswith("Linear"):
            node.domain = "com.microsoft"
    model.ir.graph.opset_imports["com.microsoft"] = 1
    model = Model.from_ir(model.ir)
    assert quantizers(model.graph) == quantizers(standard.graph)
    types = {value.name: kind.dtype.name for value, kind in infer_types(model.ir, {}).items()}
    assert [types[name] for name in ("q", "a", "b")] == ["UINT8", "FLOAT", "FLOAT"]
    x = np.array([[1.0, 20.0], [-1.0, 0.5]], np.float32)
    bare = bypass(model, {}, only=["back"])
    expected = x @ np.array([[63.5, -64.0], [1.5, 2.0]], np.float32)
    np.testing.assert_allclose(running.run(bare, {"x": x})["y"], expected, rtol=1e-6)


def stored(numbers):
    """Return a model with one weight of three channels stored in int8, and its pair."""
    text = ", ".join(str(number) for number in np.asarray(numbers).reshape(-1))
    model = models.parse(f"""
        g (float[2, 2] x) => (float[2, 3] y)
        <int8[2, 3] w = {{{text}}}, float[3] s = {{1, 2, 3}}, int8[3] z = {{0, 0, 0}}> {{
            d = DequantizeLinear <axis = 1> (w, s, z)
            y = MatMul(x, d)
        }}""")
    (pair,) = quantizers(model.graph)
    return model.graph, pair


def test_weights_in_half_of_their_range_are_meant_so():
    assert uses_half_range(*stored([[64, -3, 0], [5, -63, 64]]))
    assert uses_half_range(*stored([[64, -3, 0], [5, -63, 0]]))  # a channel of zeros has no range
    assert not uses_half_range(*stored([[127, -3, 0], [5, -63, 64]]))
    assert not uses_half_range(*stored([[40, -3, 0], [5, -63, 64]]))
    assert not uses_half_range(*stored([[0, 0, 0], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("before", "kind", "zero", "may"),
    [("MatMul(x, w)", "uint8", 0, True), ("MatMul(x, w)", "int8", -128, True), ("MatMul(x, w)", "uint8", 3, False),
     ("MatMul(x, w)", "int8", 0, False), ("Softmax(x)", "uint8", 0, False)],
)  # fmt: skip
def test_a_pair_without_negative_numbers_behind_a_product_may_be_a_relu(before, kind, zero, may):
    model = models.parse(f"""
        g (float[2, 2] x) => (float[2, 2] y)
        <float[2, 2] w = {{1, 2, 3, 4}}, float s = {{0.1}}, {kind} z = {{{zero}}}> {{
            h = {before}
            q = QuantizeLinear(h, s, z)
            y = DequantizeLinear(q, s, z)
        }}""")
    (pair,) = quantizers(model.graph)
    assert may_rectify(model.graph, pair) is may

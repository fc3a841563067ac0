"""Scales of quantizers. By the ONNX operator pages Conv's weight is [out, in, ...] and MatMul's is [in, out]."""

import numpy as np
import pytest

from lint_models import found, with_weight

RNG = np.random.default_rng(0)
FULL = RNG.integers(-126, 127, (8, 8)).astype(np.int8)


def dequantized(scale, *, axis=1, weight=FULL, user="y = MatMul(x, d)", shape="n, 8"):
    def edit(message):
        with_weight("w", weight)(message)
        with_weight("s", np.asarray(scale, np.float32))(message)

    text = f"""
        g (float[n, {weight.shape[0]}] x) => (float[{shape}] y) {{
            [dq] d = DequantizeLinear <axis = {axis}> (w, s)  {user} }}"""
    return [row for row in found(text, edit=edit) if row[2] == "dq"]


def test_healthy_scales():
    assert dequantized(0.1) == []
    assert dequantized([0.1] * 8) == []


@pytest.mark.parametrize("bad", [0.0, -0.1, np.inf, np.nan])
def test_impossible_scales(bad):
    assert dequantized([0.1] * 7 + [bad]) == [("scale-not-positive", "problem", "dq")]


def test_scales_of_an_activation():
    text = """
        g (float[2] x) => (float[2] y) <float s = {0}> {
            [q] a = QuantizeLinear(x, s)  [dq] y = DequantizeLinear(a, s) }"""
    assert found(text) == [("scale-not-positive", "problem", "q"), ("scale-not-positive", "problem", "dq")]


def test_too_few_scales_for_the_axis():
    weight = RNG.integers(-126, 127, (8, 16)).astype(np.int8)
    wrong = dequantized([0.1] * 8, axis=1, weight=weight, shape="n, 16")
    assert wrong == [("scale-shape", "problem", "dq")]


def test_input_channels():
    assert dequantized([0.1] * 8, axis=0) == [("scale-axis", "hint", "dq")]


@pytest.mark.parametrize(
    ("user", "axis", "told"),
    [
        ("y = Gemm(x, d)", 1, 0),
        ("y = Gemm <transB = 1> (x, d)", 1, 1),
        ("y = Gemm <transB = 1> (x, d)", 0, 0),
        ("y = Add(x, d)", 0, 0),
    ],
)
def test_output_channels_of_operators(user, axis, told):
    assert dequantized([0.1] * 8, axis=axis, user=user) == [("scale-axis", "hint", "dq")] * told


@pytest.mark.parametrize(("axis", "told"), [(0, 0), (1, 1)])
def test_output_channels_of_a_convolution(axis, told):
    weight = RNG.integers(-126, 127, (8, 8, 3, 3)).astype(np.int8)

    def edit(message):
        with_weight("w", weight)(message)
        with_weight("s", np.full(8, 0.1, np.float32))(message)

    text = f"""
        g (float[1, 8, 9, 9] x) => (float[1, 8, 7, 7] y) {{
            [dq] d = DequantizeLinear <axis = {axis}> (w, s)  y = Conv(x, d) }}"""
    assert found(text, edit=edit) == [("scale-axis", "hint", "dq")] * told


def test_a_range_that_is_not_used():
    assert dequantized(0.1, weight=(FULL // 16)) == [("scale-too-large", "hint", "dq")]


def test_weights_that_are_cut_off():
    weight = FULL.copy()
    weight[:2] = 127
    assert dequantized(0.1, weight=weight) == [("scale-too-small", "hint", "dq")]


def test_quantizers_that_lead_nowhere():
    text = """
        g (float[2] x) => (float[2] y, int8[2] o) <float s = {0.1}, int8 z = {0}> {
            [dead] a = QuantizeLinear(x, s, z)
            [out] o = QuantizeLinear(x, s, z)
            [raw] b = QuantizeLinear(x, s, z)
            c = Cast <to = 1> (b)
            y = Add(c, x) }"""
    assert found(text) == [("quantizer-unreached", "hint", "raw"), ("quantizer-unreached", "hint", "dead")]


MICROSOFT = "com.microsoft."


@pytest.mark.parametrize("bad", [0.0, np.inf])
def test_scales_of_quantizers_in_the_domain_of_onnx_runtime(bad):
    text = f"""
        g (float[2] x) => (float[2] y) <float s = {{{bad}}}, uint16 z = {{0}}> {{
            [q] a = {MICROSOFT}QuantizeLinear(x, s, z)  [dq] y = {MICROSOFT}DequantizeLinear(a, s, z) }}"""
    text = text.replace("inf", "1.0")
    rows = found(text, edit=lambda message: set_scale(message, bad))
    assert rows == [("scale-not-positive", "problem", "q"), ("scale-not-positive", "problem", "dq")]


def set_scale(message, value):
    from onnx import numpy_helper

    scale = next(tensor for tensor in message.graph.initializer if tensor.name == "s")
    scale.CopyFrom(numpy_helper.from_array(np.full(list(scale.dims), value, np.float32), "s"))


@pytest.mark.parametrize(
    ("node", "places"),
    [
        ("QLinearMatMul(x, s, z, x, t, z, t, z)", 1),
        (f"{MICROSOFT}QLinearAdd(x, t, z, x, s, z, t, z)", 1),
        (f"{MICROSOFT}QLinearConcat <axis = 0> (t, z, x, t, z, x, s, z)", 1),
        (f"{MICROSOFT}QLinearSigmoid(x, t, z, s, z)", 1),
        (f"{MICROSOFT}QGemm(x, t, z, x, s, z)", 1),
        (f"{MICROSOFT}QLinearAdd(x, t, z, x, t, z, t, z)", 0),
    ],
)
def test_scales_of_operators_on_integers(node, places):
    text = f"""
        g (uint8[2, 2] x) => (uint8[n, m] y) <float s = {{-1.0}}, float t = {{1.0}}, uint8 z = {{0}}> {{
            [op] y = {node} }}"""
    rows = [row for row in found(text) if row[2] == "op" and row[0].startswith("scale")]
    assert rows == [("scale-not-positive", "problem", "op")] * places


@pytest.mark.parametrize(("value", "told"), [(-0.5, 0), (0.0, 0), (np.nan, 1)])
def test_scales_of_blocks_may_be_negative(value, told):
    """ONNX Runtime's quantizer of blocks makes the scale negative where the largest number of a block is positive."""
    text = f"""
        g (float[2, 32] x) => (float[2, 4] y) <float[4] s = {{1.0, 1.0, 1.0, 1.0}}> {{
            [op] y = {MICROSOFT}MatMulNBits <K = 32, N = 4, bits = 4, block_size = 32> (x, w, s) }}"""

    def edit(message):
        with_weight("w", np.zeros((4, 1, 16), np.uint8))(message)
        set_scale(message, value)

    rows = [row[0] for row in found(text, edit=edit) if row[2] == "op" and row[0].startswith("scale")]
    assert rows == ["scale-not-positive"] * told


def test_the_largest_number_of_a_channel_is_not_cut_off():
    """Nine numbers a channel, of which the largest made the scale; and a weight of ones."""
    weight = RNG.integers(-100, 100, (9, 16)).astype(np.int8)
    weight[4] = 127
    assert dequantized([0.1] * 16, axis=1, weight=weight, shape="n, 16") == []
    assert dequantized(0.1, weight=np.full((8, 8), 127, np.int8)) == []
    weight[:3] = 127
    rows = dequantized([0.1] * 16, axis=1, weight=weight, shape="n, 16")
    assert rows == [("scale-too-small", "hint", "dq")]

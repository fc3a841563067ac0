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

"""Constants that a format cannot hold. The limits are those of the formats: float16 ends at 65504 and has nothing below
2^-25 = 2.98e-8 (half its smallest number); bfloat16 has the range of float32 but for its last 0.4 %."""

import numpy as np
import pytest

from lint_models import BF16, FP16, found, with_weight


def guarded(epsilon, body="e = Sqrt(a) y = Div(x, e)"):
    return f"g (float[4] x) => (float[4] y) <float eps = {{{epsilon}}}> {{ [guard] a = Add(x, eps) {body} }}"


@pytest.mark.parametrize(
    ("epsilon", "severity"), [("1e-12", "problem"), ("2.9e-8", "problem"), ("3.1e-8", None), ("1e-5", None)]
)
def test_epsilons_in_fp16(epsilon, severity):
    expected = [] if severity is None else [("epsilon-vanishes", severity, "guard")]
    assert found(guarded(epsilon), FP16) == expected


def test_nobody_asked_for_fp16():
    assert found(guarded("1e-12")) == [("epsilon-vanishes", "hint", "guard")]


def test_bf16_holds_small_numbers():
    assert found(guarded("1e-12"), BF16) == [("epsilon-vanishes", "hint", "guard")]  # of fp16, which is looked at too


@pytest.mark.parametrize(
    "body", ["y = Log(a)", "y = Reciprocal(a)", "y = Div(x, a)", "c = Cast <to = 1> (a) y = Sqrt(c)"]
)
def test_what_an_epsilon_guards(body):
    assert [slug for slug, _, _ in found(guarded("1e-12", body))] == ["epsilon-vanishes"]


@pytest.mark.parametrize("body", ["y = Div(a, x)", "y = Exp(a)", "y = Relu(a)"])
def test_what_needs_no_guard(body):
    assert found(guarded("1e-12", body)) == []


@pytest.mark.parametrize(("node", "slugs"), [("Max(x, eps)", 1), ("Clip(x, eps)", 1), ("Clip(x, , eps)", 0)])
def test_other_guards(node, slugs):
    text = f"g (float[4] x) => (float[4] y) <float eps = {{1e-12}}> {{ a = {node} y = Sqrt(a) }}"
    assert len(found(text)) == slugs


def masked(node, number="-1e9"):
    return f"""
        g (float[2, 2] x, bool[2, 2] m) => (float[2, 2] y) <float[1] c = {{{number}}}, float one = {{1}}> {{
            [mask] a = {node}  y = Softmax(a) }}"""


@pytest.mark.parametrize(
    ("node", "severity"),
    [("Mul(x, c)", "problem"), ("Add(x, c)", "hint"), ("Where(m, x, c)", "hint"), ("Where(m, c, x)", "hint")],
)
def test_masks_in_fp16(node, severity):
    assert found(masked(node), FP16) == [("mask-beyond-range", severity, "mask")]
    assert found(masked(node))[0][1] == "hint"


def test_largest_numbers_of_the_formats():
    assert found(masked("Mul(x, c)", "65504"), FP16) == []
    assert found(masked("Mul(x, c)", "-3.4028235e38"), BF16) == [("mask-beyond-range", "problem", "mask")]
    assert found(masked("Mul(x, c)", "-3.3e38"), BF16) == [("mask-beyond-range", "hint", "mask")]


def test_a_whole_causal_mask():
    mask = np.triu(np.full((64, 64), np.finfo(np.float32).min, np.float32), 1)
    text = "g (float[64, 64] x) => (float[64, 64] y) { [mask] y = Add(x, w) }"
    assert found(text, FP16, edit=with_weight("w", mask)) == [("mask-beyond-range", "hint", "mask")]


def test_infinite_factors():
    text = "g (float[2] x) => (float[2] y) {{ [mask] y = {}(x, w) }}"
    infinite = with_weight("w", np.float32([-np.inf, 0]))
    assert found(text.format("Mul"), edit=infinite) == [("infinite-factor", "problem", "mask")]
    assert found(text.format("Add"), edit=infinite) == []


def test_nan():
    text = "g (float[2] x) => (float[2] y) { [use] y = Add(x, w) }"
    assert found(text, edit=with_weight("w", np.float32([1, np.nan]))) == [("constant-is-nan", "problem", "use")]

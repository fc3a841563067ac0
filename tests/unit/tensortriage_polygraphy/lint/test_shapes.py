"""Whole numbers in floating point: float16 is exact to 2048, bfloat16 to 256."""

import pytest

from lint_models import found


def upsampled(cast="Cast <to = 1>", back="f", half=""):
    return f"""
        g (float[1, 1, 4, 4] x) => (float[n] y) <float two = {{2}}> {{
            s = Shape(x)  f = {cast} (s)  {half} m = Mul({back}, {back})  [down] i = Cast <to = 7> (m)
            y = ConstantOfShape(i) }}"""


def test_a_shape_in_float32():
    assert found(upsampled()) == [("shape-in-float", "hint", "down")]


@pytest.mark.parametrize("dtype", [10, 16])
def test_a_shape_in_half_precision(dtype):
    assert found(upsampled(f"Cast <to = {dtype}>")) == [("shape-in-float", "problem", "down")]


def test_a_shape_in_integers():
    assert found("g (float[4] x) => (float[n] y) { s = Shape(x)  m = Mul(s, s)  y = ConstantOfShape(m) }") == []


def test_integers_that_are_data():
    assert found("g (float[4] x) => (int64[4] y) { f = Floor(x)  y = Cast <to = 7> (f) }") == []


def resized(scales, weights="float[4] w = {1, 1, 2, 2}"):
    return f"""
        g (float[1, 1, 4, 4] x, float[4] given) => (float[a, b, c, d] y) <{weights}> {{
            v = Mul(given, given)  [up] y = Resize(x, , {scales}) }}"""


@pytest.mark.parametrize(("scales", "told"), [("w", 0), ("v", 1)])
def test_resize_scales(scales, told):
    assert found(resized(scales)) == [("resize-scales-computed", "hint", "up")] * told


def rotary(dtype):
    return f"""
        g (int64[1, 8] ids) => (float[1, 8] y) {{
            [pos] p = Cast <to = {dtype}> (ids)  m = Mul(p, p)  s = Sin(m)  c = Cos(m)
            a = Add(s, c)  y = Cast <to = 1> (a) }}"""


@pytest.mark.parametrize(("dtype", "severity"), [(1, "hint"), (10, "problem")])
def test_positions(dtype, severity):
    assert found(rotary(dtype)) == [("positions-in-float", severity, "pos")]


def test_a_sine_of_data():
    assert found("g (float[4] x) => (float[4] y) { y = Sin(x) }") == []

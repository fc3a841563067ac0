"""A quantizer that another scale and zero point explain. The other side's numbers are those of ONNX Runtime with it."""

import numpy as np
import pytest

from meant_otherwise import model, run
from tensortriage_meanings.grids import grid_step, line
from tensortriage_meanings.search import Unexplained, explained

RNG = np.random.default_rng(3)
X = RNG.random((6, 40)).astype(np.float32)
QUANTIZED = """g (float[6,40] x) => (uint8[6,40] y) <float s = {0.0078}, uint8 z = {100}> {
  [a] a = Abs(x) [q] y = QuantizeLinear(a, s, z) }"""
PAIR = """g (float[6,40] x) => (float[6,40] y) <float s = {0.01}, uint8 z = {20}, float t = {0.01}, uint8 v = {20}> {
  [q] q = QuantizeLinear(x, s, z) [d] y = DequantizeLinear(q, t, v) }"""


def told(text, *others, wrong=0):
    """Return what is said where these numbers stand in a file for others, and so many elements are others still."""
    one, x = model(text), X if "Abs" in text else X - 0.2
    for old, new in others:
        text = text.replace(old, new)
    theirs = run(model(text), x=x)
    theirs.reshape(-1)[:wrong] += 5
    limit = 0 if theirs.dtype.kind in "iu" else 1e-5
    subject = Unexplained(
        one, lambda other: {"y": run(other, x=x)}, {"y": theirs},
        lambda _, made: {"y": limit} if np.abs(made["y"] - theirs.astype(np.float64)).max() <= limit else None,
        {"x": x},
    )  # fmt: skip
    found = explained(subject, ())
    return {} if found is None else {name: way.words for name, way in found.ways.items()}


def test_a_scale_that_engines_put_in_is_told_with_the_zero_point():
    found = told(QUANTIZED, ("{0.0078}", "{0.00390625}"), ("{100}", "{0}"))
    assert found == {"q": "its scale were 0.00390625 (1/256), not 0.0078, and its zero point 0, not 100"}


def test_any_scale_is_told_where_the_real_numbers_are_known():
    text = QUANTIZED.replace("Abs(x)", "Abs(x)").replace("QuantizeLinear(a", "QuantizeLinear(x")
    assert told(text, ("{0.0078}", "{0.0071}")) == {"q": "its scale were 0.0071, not 0.0078"}


def test_a_pair_on_another_grid_is_told_at_both():
    words = "its scale were 0.03, not 0.01"
    assert told(PAIR, ("{0.01}", "{0.03}")) == {"q": words, "d": words}
    assert told(PAIR, ("v = {20}", "v = {24}")) == {"d": "its zero point were 24, not 20"}


def test_numbers_that_no_grid_makes_say_nothing():
    assert told(QUANTIZED, ("{0.0078}", "{0.00390625}"), ("{100}", "{0}"), wrong=20) == {}
    assert told(QUANTIZED) == {}


@pytest.mark.parametrize("step", [0.05, 1 / 256])
def test_a_step_is_read_from_values(step):
    values = (RNG.integers(-100, 100, 200) * step).astype(np.float32)
    assert grid_step(values) == pytest.approx(step, rel=1e-6)


def test_values_off_a_grid_have_no_step():
    assert grid_step(RNG.standard_normal(200).astype(np.float32)) is None
    assert grid_step(np.array([0, 1, 2], np.float32)) is None
    assert grid_step(np.full(20, np.nan, np.float32)) is None


def test_bounds_without_a_common_ratio_are_no_line():
    steps = np.arange(-50.0, 50.0)
    assert line(steps, np.rint(steps * 2 + 3).astype(np.int16), (0.5, 0), width=0.0) == (0.25, 3)
    assert line(steps, np.rint(steps * 2 + 3 * np.sin(steps)).astype(np.int16), (0.5, 0), width=0.0) is None
    assert line(steps, steps.astype(np.int16), (0.5, 0), width=0.0) is None

"""Integers beyond int32 (2147483647) and doubles beyond float32."""

import numpy as np
import pytest

from lint_models import Aims, found, with_weight

NARROW = Aims(narrows_integers=True, narrows_doubles=True)
ADD = "g (int64[2] x) => (int64[2] y) { [add] y = Add(x, w) }"


@pytest.mark.parametrize(("number", "told"), [(2**31 - 1, 0), (2**31, 1), (-(2**31), 0), (-(2**31) - 1, 1), (2**62, 1)])
def test_integers(number, told):
    edit = with_weight("w", np.array([0, number]))
    assert found(ADD, NARROW, edit=edit) == [("int64-beyond-int32", "problem", "add")] * told
    assert found(ADD, edit=edit) == [("int64-beyond-int32", "hint", "add")] * told


def test_an_end_that_means_to_the_end():
    text = "g (float[9] x) => (float[n] y) <int64[1] s = {0}, int64[1] a = {0}> { y = Slice(x, s, w, a) }"
    assert found(text, NARROW, edit=with_weight("w", np.array([2**63 - 1]))) == []


def test_doubles():
    text = "g (double[2] x) => (double[2] y) { [mul] a = Mul(x, w)  y = Exp(a) }"
    fits, large, small = (with_weight("w", np.array([1.0, value])) for value in (1e30, 1e300, 1e-300))
    rows = [row for row in found(text, NARROW, edit=fits) if row[0].startswith("float64")]
    assert rows == [("float64-computed", "hint", "mul")]
    for edit in (large, small):
        assert ("float64-beyond-float32", "problem", "mul") in found(text, NARROW, edit=edit)
        assert ("float64-beyond-float32", "hint", "mul") in found(text, edit=edit)


def test_a_cast_from_double_computes_nothing():
    assert found("g (double[2] x) => (float[2] y) { y = Cast <to = 1> (x) }", NARROW) == []

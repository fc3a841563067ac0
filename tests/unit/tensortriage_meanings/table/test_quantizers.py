"""What becomes of a pair whose interval is taken for one of integers; expected values are worked out by hand."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.quantizers import QUANTIZERS

PAIR = """g (float[4] x) => (float[4] y) <float s = {0.02}, KIND z = {ZERO}, int8[1] w = {3}> {
    [unread] v = DequantizeLinear(w, s)
    [q] a = QuantizeLinear(x, s, z)
    [d] y = DequantizeLinear(a, s, z)
}"""


def pair(kind, zero):
    return model(PAIR.replace("KIND", kind).replace("ZERO", str(zero)))


@pytest.mark.parametrize(
    ("zero", "numbers", "whole"),
    [
        # -2.56 to 2.54 become -3 to 3, so that 1.0 is -3 + 3.56 * 6 / 5.1 = 1.19, which is 1
        (0, [-9.0, -0.2, 1.0, 9.0], [-3.0, 0.0, 1.0, 3.0]),
        # 0 to 5.1 become 0 to 5: 2.8 * 5 / 5.1 is 2.75, which is 3
        (-128, [-1.0, 0.4, 2.8, 9.0], [0.0, 0.0, 3.0, 5.0]),
    ],
)
def test_the_interval_in_whole_numbers(zero, numbers, whole):
    found = run(meant(pair("int8", zero), QUANTIZERS, "to whole ones"), x=np.array(numbers, np.float32))
    assert found.tolist() == whole


def test_unsigned_numbers_and_weights_are_left_alone():
    assert list(sites_of(Rewriter(pair("uint8", 128)), QUANTIZERS)) == []
    assert set(next(sites_of(Rewriter(pair("int8", 0)), QUANTIZERS))) == {"q", "d"}


MET = """g (uint8[3] a, uint8[3] b) => (uint8[3] y)
<float s = {0.5}, uint8 z = {10}, float t = {2}, uint8 u = {4}, float w = {1}, uint8 v = {7}> {
    [one] c = DequantizeLinear(a, s, z)
    [two] d = DequantizeLinear(b, t, u)
    [sum] e = Add(c, d)
    [end] y = QuantizeLinear(e, w, v)
}"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # right is (20 - 10) * 0.5 + (9 - 4) * 2 + 7 = 22
        ("scale 0.5 and zero point 10 were those of DequantizeLinear 'two'", (20 - 4) * 2 + (9 - 4) * 2 + 7),
        ("scale 2 and zero point 4 were those of QuantizeLinear 'end'", 5 + (9 - 7) * 1 + 7),
        ("scale 1 and zero point 7 were those of DequantizeLinear 'two'", round((5 + 10) / 2) + 4),
    ],
)
def test_a_scale_is_that_of_a_tensor_that_meets_there(words, expected):
    feed = {"a": np.full(3, 20, np.uint8), "b": np.full(3, 9, np.uint8)}
    assert run(model(MET), **feed).tolist() == [22] * 3
    assert run(meant(model(MET), QUANTIZERS, words), **feed).tolist() == [expected] * 3


def test_equal_scales_and_those_of_weights_are_left_alone():
    assert list(sites_of(Rewriter(model(MET.replace("{2}", "{0.5}").replace("{4}", "{10}").replace(
        "w = {1}", "w = {0.5}").replace("{7}", "{10}"))), QUANTIZERS)) == []  # fmt: skip

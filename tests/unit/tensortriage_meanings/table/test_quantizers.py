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

"""Whole numbers in narrower types; expected values are those of numpy's types."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.integers import INTEGERS


@pytest.mark.parametrize(
    ("bits", "dtype"), [("int32", np.int32), ("int16", np.int16), ("(int8)", np.int8), ("uint8", np.uint8)]
)
def test_sums_of_whole_numbers_in_a_narrower_type(bits, dtype):
    one = model("g (int64[4] x) => (int64[4] y) <int64 axis = {0}> { y = CumSum<reverse=1>(x, axis) }")
    x = np.array([5, 3, 2**31 - 1, 2**30 + 7])
    made = run(meant(one, INTEGERS, bits), x=x)
    assert made.tolist() == np.cumsum(x[::-1])[::-1].astype(dtype).tolist()

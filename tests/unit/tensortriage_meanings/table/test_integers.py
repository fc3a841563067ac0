"""Whole numbers in narrower types; expected values are those of numpy's types."""

import numpy as np
import pytest

from meant_otherwise import meant, model, run
from tensortriage_meanings.table.integers import INTEGERS


@pytest.mark.parametrize(
    ("bits", "dtype"),
    [("(int32)", np.int32), ("(uint32)", np.uint32), ("int16", np.int16), ("(int8)", np.int8), ("uint8", np.uint8)],
)
def test_sums_of_whole_numbers_in_a_narrower_type(bits, dtype):
    one = model("g (int64[4] x) => (int64[4] y) <int64 axis = {0}> { y = CumSum<reverse=1>(x, axis) }")
    x = np.array([5, 3, 2**31 - 1, 2**30 + 7])
    made = run(meant(one, INTEGERS, bits), x=x)
    assert made.tolist() == np.cumsum(x[::-1])[::-1].astype(dtype).tolist()


@pytest.mark.parametrize(
    ("words", "stored"),
    [("cut off at its ends", 2**31 - 1), ("which wraps at 2^31", int(np.int64(1_700_000_000_000).astype(np.int32)))],
)
def test_constants_beyond_int32_are_stored_in_it(words, stored):
    one = model("g (int64[2] x) => (int64[2] y) <int64 epoch = {1700000000000}> { y = Sub(x, epoch) }")
    x = np.array([1_700_000_000_005, 1_700_000_012_345])
    made = run(meant(one, INTEGERS, f"stored in 32 bits (int32), {words}"), x=x)
    assert made.tolist() == (x - stored).tolist()


@pytest.mark.parametrize(("kind", "dtype"), [("uint8", np.uint8), ("int8", np.int8)])
def test_results_that_stop_at_the_ends_of_their_type(kind, dtype):
    one = model(f"g ({kind}[3] a, {kind}[3] b) => ({kind}[3] y) {{ y = Sub(a, b) }}")
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = np.array([least, most, 7], dtype), np.array([1, most, 5], dtype)
    assert run(one, a=a, b=b).tolist() == [most, 0, 2]
    assert run(meant(one, INTEGERS, "it saturated"), a=a, b=b).tolist() == [least, 0, 2]

import numpy as np
import pytest

from tensortriage.reduce.simplify.numbers import rounded


@pytest.mark.parametrize(("bits", "expected"), [(1, 3.0), (3, 3.25), (7, 3.140625)])
def test_rounded_keeps_the_leading_bits(bits, expected):
    """Expected values: 3.14159 = 1.5708 * 2, its mantissa rounded to multiples of 2**-bits by hand."""
    assert rounded(np.float32([3.14159]), bits)[0] == np.float32(expected)


def test_values_that_have_no_bits_stay():
    array = np.float32([0.0, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(rounded(array, 3), array)
    assert rounded(np.float16([1e-7]), 3).dtype == np.float16

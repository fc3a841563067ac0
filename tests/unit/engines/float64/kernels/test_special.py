import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.engines.float64.kernels.special import erf, sigmoid

UNIT = 2.0**-53


@given(st.floats(allow_nan=False, min_value=-30, max_value=30))
def test_error_function_agrees_with_the_c_library(x):
    found, expected = erf(np.array([x])).item(), math.erf(x)
    assert abs(found - expected) <= 4 * UNIT * abs(expected)


def test_error_function_at_its_seams_and_ends():
    x = np.array([0.0, -0.0, 0.46875, -0.46875, 4.0, 6.0, 1e-308, np.inf, -np.inf, np.nan])
    expected = [math.erf(v) for v in x]
    found = erf(x)
    assert np.isnan(found[-1])
    assert np.allclose(found[:-1], expected[:-1], rtol=4 * UNIT, atol=0)
    assert math.copysign(1, found[1]) == -1


def test_error_function_in_blocks_and_any_shape():
    x = np.linspace(-6, 6, 3 * 40000).reshape(3, 40000)
    found = erf(x)
    assert found.shape == x.shape
    assert found[:, ::5000].ravel().tolist() == [erf(np.array([v])).item() for v in x[:, ::5000].ravel()]
    assert erf(np.zeros((0, 2))).shape == (0, 2)
    assert erf(np.array(0.5)).shape == ()


def test_sigmoid_saturates_without_nan():
    with np.errstate(over="ignore"):
        found = sigmoid(np.array([-1e4, -1.0, 0.0, 40.0]))
    assert found.tolist() == [0.0, 1 / (1 + math.exp(1)), 0.5, 1.0]

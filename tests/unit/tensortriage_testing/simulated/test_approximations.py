"""Approximated functions have the size that their source gives, measured against float64."""

import math

import numpy as np
import pytest

from tensortriage_testing.simulated.approximations import APPROXIMATIONS, EXACT, erf, gelu, sigmoid, sized, softmax

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seeded():
    """Draw the same numbers in every order of tests."""
    global RNG
    RNG = np.random.default_rng(0)


def test_the_error_function_is_that_of_tables():  # Abramowitz and Stegun, table 7.1
    np.testing.assert_allclose(erf(np.array([0.5, 1.0, -2.0])), [0.5204998778, 0.8427007929, -0.9953222650], atol=1e-10)


@pytest.mark.parametrize("word", [word for word, found in APPROXIMATIONS.items() if found.size])
def test_an_approximation_has_its_documented_size(word):
    found = APPROXIMATIONS[word]
    for op_type, function in found.functions.items():
        x = (
            np.abs(RNG.standard_normal(50_000)) * 0.4 + 0.5
            if op_type in ("Log", "Sqrt")
            else RNG.standard_normal(50_000)
        )
        operands = (x, np.abs(x) + 1.0) if op_type == "Div" else (x,)
        exact = EXACT[op_type](*operands)
        error = np.abs(function(*operands) - exact)
        worst = float((error if found.absolute else error / np.abs(exact)).max())
        scale = 2.0 if op_type == "Erf" else 1.0  # of GELU's error, which is half of Erf's times x
        assert 0.3 * found.size < worst <= 1.0001 * scale * found.size * (1.1 if op_type == "Erf" else 1.0), worst


def test_the_fast_exponential_stays_within_its_ulps():
    x = RNG.uniform(-20, 20, 50_000).astype(np.float32).astype(np.float64)
    exact = np.exp(x)
    ulps = np.abs(APPROXIMATIONS["exp:fast"].functions["Exp"](x) - exact) / np.spacing(exact.astype(np.float32))
    assert (ulps <= 2 + np.floor(np.abs(1.173 * x))).all()  # CUDA C++ Programming Guide, __expf
    assert ulps.max() > 5


def test_exact_functions_are_their_formulas():
    x = np.array([-3.0, 0.0, 0.5, 700.0])
    np.testing.assert_allclose(sigmoid(x), [1 / (1 + math.exp(-v)) for v in x], rtol=1e-12)
    np.testing.assert_allclose(gelu(x), [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x], rtol=1e-12)
    np.testing.assert_allclose(softmax(np.log([[1.0, 3], [2, 2]])), [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(softmax(np.log([[1.0, 3], [2, 2]]), axis=0), [[1 / 3, 0.6], [2 / 3, 0.4]])
    assert np.isfinite(softmax(np.array([1e4, 0.0]))).all()
    assert erf(np.zeros((0, 2))).shape == (0, 2)


def test_the_fast_softmax_is_that_of_the_fast_exponential():
    x = RNG.uniform(-20, 20, (8, 64))
    found = APPROXIMATIONS["softmax:fast"].functions["Softmax"](x, axis=0)
    np.testing.assert_allclose(found.sum(0), 1, rtol=1e-12)
    error = np.abs(found / softmax(x, 0) - 1)
    assert 1e-7 < error.max() < 6e-6  # __expf at a distance of 40: 48 of float32's steps of 2**-23


def test_the_fast_power_follows_the_exact_one_in_every_quadrant():
    power = APPROXIMATIONS["pow:fast"].functions["Pow"]
    x, y = np.array([2, -2, -2, 0, 0, -1.5, 3]), np.array([3, 3, 2, 2, 0, 0.5, -1.5])
    with np.errstate(all="ignore"):
        exact, found = np.power(x, y), power(x, y)
    np.testing.assert_allclose(found, exact, rtol=1e-5)
    assert np.isnan(found[5])
    assert np.all(found[[0, 6]] != exact[[0, 6]])


@pytest.mark.parametrize("size", [2e-6, 1e-3])
def test_a_size_of_the_callers_is_the_largest_relative_error(size):
    found = sized("TANH", size)
    assert (found.size, found.absolute, list(found.functions)) == (size, False, ["Tanh"])
    x = RNG.uniform(0.1, 3, 50_000)
    error = np.abs(found.functions["Tanh"](x) / np.tanh(x) - 1)
    assert 0.99 * size < error.max() <= 1.0001 * size
    np.testing.assert_array_equal(found.functions["Tanh"](np.zeros(1)), [0.0])


@pytest.mark.parametrize(
    ("name", "size", "error"), [("relu", 0.1, KeyError), ("tanh", 0.0, ValueError), ("tanh", 1.0, ValueError)]
)
def test_what_has_no_size_is_refused(name, size, error):
    with pytest.raises(error):
        sized(name, size)

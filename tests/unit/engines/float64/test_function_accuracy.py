"""Errors of functions stay within their bounds, reach them, and depend on the seed alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortriage.engines.float64.function_accuracy import (
    ACCURACIES,
    NARROW_ACCURACIES,
    Functions,
)
from tensortriage.engines.float64.kernels import kernel_names
from tensortriage.engines.spec import Hardware
from tensortriage.values.dtype import DType

EVERY = [(hardware, op) for hardware, table in ACCURACIES.items() for op in table]
Y = np.concatenate([np.geomspace(1e-12, 1, 4001), -np.geomspace(1e-12, 1, 4001)])


def bound(accuracy, y):
    size = np.abs(y)
    return np.maximum((accuracy.relative + accuracy.per_log * np.abs(np.log(size))) * size, accuracy.absolute)


@pytest.mark.parametrize(("hardware", "op_type"), EVERY)
@pytest.mark.parametrize("seed", range(4))
def test_errors_stay_within_the_table(hardware, op_type, seed):
    found = Functions(hardware, seed).approximated(op_type, Y)
    assert np.all(
        np.abs(found - Y) <= bound(ACCURACIES[hardware][op_type], Y) * (1 + 1e-9) + 1e-15 * np.abs(Y) + clip(op_type)
    )


def clip(op_type):
    """Return what results outside the range of the function may be moved by: the negative half of Y."""
    return 1.0 if op_type in ("Exp", "Softmax", "Sigmoid", "Softplus", "Sqrt", "ReduceL2", "LogSoftmax") else 0.0


@pytest.mark.parametrize(("hardware", "op_type"), EVERY)
def test_some_seed_comes_near_the_bound(hardware, op_type):
    y = Y[:4001] if op_type != "LogSoftmax" else Y[4001:]
    allowed = bound(ACCURACIES[hardware][op_type], y)
    inside = y < 1 - allowed  # not where the range of the function cuts
    share = max(
        np.max(np.abs(Functions(hardware, seed).approximated(op_type, y) - y)[inside] / allowed[inside])
        for seed in range(8)
    )
    assert share > 0.9


def test_equal_values_get_equal_errors_and_seeds_differ():
    y = np.array([0.3, 0.7, 0.3])
    first = Functions(Hardware.GPU, 1).approximated("Tanh", y)
    assert first[0] == first[2] != y[0]
    assert np.array_equal(first, Functions(Hardware.GPU, 1).approximated("Tanh", y))
    assert len({Functions(Hardware.GPU, seed).approximated("Tanh", y)[0] for seed in range(6)}) > 3


def test_a_reciprocal_that_is_cut_off_scales_all_of_a_row():
    """2**-10 is the bound of the class npu; rows of a Softmax on QNN sum to 1 - 1.0e-3 on average."""
    npu = Functions(Hardware.NPU, cut_reciprocals=True)
    y = np.random.default_rng(0).dirichlet(np.ones(1024), 4)
    assert npu.approximated("Softmax", y) == pytest.approx(y * (1 - 2.0**-10), rel=1e-12)
    assert np.array_equal(npu.approximated("Exp", Y), Functions(Hardware.NPU).approximated("Exp", Y))
    assert np.array_equal(
        Functions(Hardware.GPU, cut_reciprocals=True).approximated("Softmax", y),
        Functions(Hardware.GPU).approximated("Softmax", y),
    )


@given(st.integers(0, 100))
def test_special_values_stay(seed):
    special = np.array([0.0, np.inf, -np.inf, np.nan])
    for op_type in ("Exp", "Gelu", "Softplus"):
        np.testing.assert_array_equal(Functions(Hardware.NPU, seed).approximated(op_type, special), special)
    whole = np.array([7, 8])
    assert Functions(Hardware.GPU, seed).approximated("Div", whole) is whole


@pytest.mark.parametrize("seed", range(8))
def test_results_stay_in_the_range_of_the_function(seed):
    y = np.array([1e-30, 0.5, 1 - 1e-12, 1.0])
    for op_type in ("Sigmoid", "Softmax"):
        found = Functions(Hardware.NPU, seed).approximated(op_type, y)
        assert np.all((found >= 0) & (found <= 1))


def test_narrow_results_have_instructions_of_their_own():
    y = np.full(1, 0.5)
    wide = max(abs(Functions(Hardware.GPU, s).approximated("Tanh", y) - y).item() for s in range(20))
    narrow = max(abs(Functions(Hardware.GPU, s, DType.FLOAT16).approximated("Tanh", y) - y).item() for s in range(20))
    assert narrow > 20 * wide  # 2**-11 against 1.1e-5


def test_sine_and_cosine_lose_digits_of_large_arguments_on_a_gpu():
    assert {op: Functions(Hardware.GPU).argument_error(op) for op in ("Sin", "Cos", "Tanh")} == {
        "Sin": 2.0**-23, "Cos": 2.0**-23, "Tanh": 0.0
    }  # fmt: skip
    assert Functions(Hardware.CPU).argument_error("Sin") == Functions().argument_error("Sin") == 0.0


def test_exact_class_and_unlisted_operators_are_exact():
    assert Functions().error("Tanh") is None
    assert all(Functions(hardware).error("Add") is None for hardware in ACCURACIES)


def test_every_entry_is_an_operator_with_a_source():
    for table in (*ACCURACIES.values(), *NARROW_ACCURACIES.values()):
        assert table.keys() - {"Rsqrt"} <= kernel_names()
        for accuracy in table.values():
            assert accuracy.source
            assert accuracy.relative + accuracy.absolute > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_gelu_of_an_engine_for_phones_is_its_tanh_form_and_not_only_as_far_off(seed):
    """Hendrycks and Gimpel, Gaussian error linear units, 2016: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    x = np.linspace(-6, 6, 4001)
    erf = np.array([math.erf(each) for each in x / math.sqrt(2)])
    found = 0.5 * x * (1 + Functions(Hardware.LIGHT, seed).approximated("Erf", erf))
    form = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(found, form, rtol=0, atol=1e-8)

import ml_dtypes
import numpy as np
import pytest

from tensortriage.engines.float64.kernels.casting import WIDE, convert, to_float64
from tensortriage.values.dtype import DType


@pytest.mark.parametrize("dtype", sorted(WIDE, key=lambda d: d.value))
def test_wide_types_become_float64(dtype):
    array = np.array([1.5, -2], dtype.numpy)
    assert to_float64(array).dtype == np.float64
    assert to_float64(array).tolist() == [1.5, -2]
    assert convert(np.array([1 / 3]), dtype).item() == 1 / 3


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.object_])
def test_all_other_types_stay(dtype):
    array = np.array([1, 0]).astype(dtype)
    assert to_float64(array) is array


def test_complex_numbers_become_double_precision():
    assert to_float64(np.array([1j], np.complex64)).dtype == np.complex128


def test_float8_saturates_or_not():
    x = np.array([1e6, -1e9, np.inf, np.nan, 0.1])
    bounded = convert(x, DType.FLOAT8E4M3FN).astype(np.float64)
    assert bounded[:3].tolist() == [448.0, -448.0, 448.0]
    assert np.isnan(bounded[3])
    assert bounded[4] == 0.1015625  # 13/128, the nearest of the multiples of 1/128 there
    assert np.isnan(convert(x, DType.FLOAT8E4M3FN, saturate=False).astype(np.float64)[:3]).all()
    assert np.isinf(convert(x, DType.FLOAT8E5M2, saturate=False).astype(np.float64)[:3]).all()


@pytest.mark.parametrize(("rounding", "expected"), [("up", [8, 4, 1]), ("down", [4, 4, 0.5]), ("nearest", [4, 4, 1])])
def test_powers_of_two(rounding, expected):
    found = convert(np.array([5.0, 4.0, 0.75]), DType.FLOAT8E8M0, scale_rounding=rounding)
    assert found.astype(np.float64).tolist() == expected


def test_integers_and_booleans():
    assert convert(np.array([2.9, -2.9]), DType.INT64).tolist() == [2, -2]
    assert convert(np.array([0.0, -0.5, np.nan]), DType.BOOL).tolist() == [False, True, True]
    assert convert(np.array([7.9, -8.0]), DType.INT4).astype(np.int8).tolist() == [7, -8]
    assert convert(np.array([1 << 62]), DType.UINT64).tolist() == [1 << 62]  # not through float64
    assert convert(np.array([3], ml_dtypes.int4), DType.INT32).tolist() == [3]


def test_strings():
    assert convert(np.array(["1.5", "-2"], object), DType.FLOAT).tolist() == [1.5, -2.0]
    assert convert(np.array(["7"], object), DType.INT32).tolist() == [7]
    words = np.array(["a"], object)
    assert convert(words, DType.STRING) is words
    with pytest.raises(ValueError, match="cannot be cast to a string"):
        convert(np.array([1.0]), DType.STRING)

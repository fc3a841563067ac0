"""Bytes that are the right numbers in another type; numpy's views say which."""

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.patterns.stored_type import stored_type

WHOLE = np.random.default_rng(3).integers(0, 6, (3, 8))
REAL = np.random.default_rng(4).standard_normal((3, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("right", "made", "told"),
    [
        (WHOLE.astype(np.int32), WHOLE.astype(np.int32).view(np.float32), ("int32", "float32")),
        (WHOLE, WHOLE.view(np.float64), ("int64", "float64")),
        (WHOLE, WHOLE.view(np.int32).ravel()[:24].reshape(3, 8), ("int64", "int32")),
        (WHOLE, WHOLE.view(np.int32).ravel()[:24].reshape(3, 8).astype(np.int64), ("int64", "int32")),
        (WHOLE.astype(np.int32), WHOLE.view(np.int32).ravel()[:24].reshape(3, 8), ("int64", "int32")),
        (REAL, REAL.view(np.int32), ("float32", "int32")),
        (REAL, REAL.view(np.int32).astype(np.int64), ("float32", "int32")),
        (REAL.astype(np.float16), REAL.astype(np.float16).view(np.uint16), ("float16", "uint16")),
        (REAL, REAL.astype(ml_dtypes.bfloat16).view(np.uint16), ("bfloat16", "uint16")),
        (REAL.astype(ml_dtypes.bfloat16), REAL.astype(ml_dtypes.bfloat16).view(np.uint16), ("bfloat16", "uint16")),
        (WHOLE > 2, (WHOLE > 2).view(np.int64), ("bool", "int64")),
        (REAL, REAL.astype(np.float64).view(np.float32).ravel()[:24].reshape(3, 8), ("float64", "float32")),
    ],
)
def test_bytes_of_another_type_are_told(right, made, told):
    assert stored_type(right, made) == told


@pytest.mark.parametrize(
    ("right", "made"),
    [
        (WHOLE, WHOLE),
        (WHOLE, WHOLE[::-1].view(np.float64)),
        (WHOLE.astype(np.int32), WHOLE.astype(np.float32)),
        (REAL, REAL[::-1]),
        (REAL, np.zeros_like(REAL)),
        (np.full((3, 8), 2), np.full((3, 8), 2).view(np.float64)),
        (np.array([0, 1], np.int32), np.array([0, 1], np.int32).view(np.float32)),
        (REAL, REAL.astype(str)),
    ],
    ids=["right", "order", "converted", "order of floats", "zeros", "constant", "too few", "text"],
)
def test_other_arrays_are_told_nothing(right, made):
    assert stored_type(right, made) is None

"""Strategies for arrays of every ONNX element type, made from random bits: NaN, Inf and subnormals come up often."""

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensortriage.values.dtype import DType

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
NUMBERS = [dtype for dtype in DType if dtype is not DType.STRING]
FLOATS = [dtype for dtype in DType if dtype.is_float]
INTEGERS = [dtype for dtype in DType if dtype.is_integer]


@st.composite
def arrays(draw, dtypes=tuple(DType), shapes=SHAPES):
    """An array of one of the types, C-contiguous."""
    dtype, shape = draw(st.sampled_from(dtypes)), draw(shapes)
    count = math.prod(shape)
    if dtype is DType.STRING:
        items = draw(st.lists(st.text(max_size=5), min_size=count, max_size=count))
        return np.array(items, dtype=object).reshape(shape)
    if dtype is DType.BOOL:
        return draw(hnp.arrays(np.bool_, shape))
    if dtype.bits < 8:
        bits = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 2**dtype.bits - 1)))
        if dtype in (DType.INT4, DType.INT2):
            return np.asarray(bits.astype(np.int8) - 2 ** (dtype.bits - 1)).astype(dtype.numpy)
        return bits.astype(dtype.numpy) if dtype.is_integer else bits.view(dtype.numpy)
    raw = draw(st.binary(min_size=count * dtype.numpy.itemsize, max_size=count * dtype.numpy.itemsize))
    simple = draw(hnp.arrays(np.int8, shape, elements=st.integers(-3, 3)))
    array = np.frombuffer(raw, dtype.numpy).reshape(shape).copy()
    # Half of the elements small whole numbers, so that equal and zero elements come up too.
    keep = draw(hnp.arrays(np.bool_, shape))
    with np.errstate(all="ignore"):
        return np.where(keep, array, np.asarray(np.abs(simple)).astype(dtype.numpy)).astype(dtype.numpy)


@st.composite
def layouts(draw, array):
    """The same values in some memory layout: C, Fortran, reversed, or every second element of a larger array."""
    way = draw(st.sampled_from(["c", "fortran", "reversed", "strided"]))
    if way == "fortran" and array.ndim:
        return np.asfortranarray(array)
    if way == "reversed" and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if way == "strided" and array.ndim:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def same_bits(one, other):
    """Whether two arrays have one type, shape and content, NaN payloads and signed zeros included."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()

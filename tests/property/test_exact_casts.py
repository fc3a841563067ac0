"""A cast is made exactly when Python's own exact arithmetic says that no value changes."""

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tensortriage.errors import DataError
from tensortriage.inputs.conform import check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

TYPES = [d for d in DType if d.is_integer or d.is_float or d is DType.BOOL]
INTEGERS = st.integers(-(2**63), 2**64 - 1) | st.integers(-300, 300)
FLOATS = st.floats() | st.integers(-300, 300).map(float) | st.sampled_from([2.0**63, 2.0**64, -(2.0**63), 2.0**53])


@given(value=INTEGERS | FLOATS, source=st.sampled_from(TYPES), target=st.sampled_from(TYPES))
@example(value=2**63 - 1, source=DType.INT64, target=DType.DOUBLE)
@example(value=2**53 + 1, source=DType.INT64, target=DType.DOUBLE)
@example(value=2.0**63, source=DType.DOUBLE, target=DType.INT64)
@example(value=2.0**64, source=DType.DOUBLE, target=DType.UINT64)
def test_exactly_the_exact_casts_are_made(value, source, target):
    with np.errstate(all="ignore"):
        try:
            array = np.array([value]).astype(source.numpy)
        except OverflowError:
            array = np.array([float(value)]).astype(source.numpy)
    given_value = array.tolist()[0] if source.numpy.num < 256 else array.astype(np.float64).tolist()[0]
    feed = Feed("f", {"x": array}, Origin.REAL)
    try:
        result = check_feed(feed, [ValueSpec("x", target, (1,))]).tensors["x"]
    except DataError:
        assert not representable(given_value, target)
        return
    assert result.dtype == target.numpy
    new = result.tolist()[0] if target.numpy.num < 256 else result.astype(np.float64).tolist()[0]
    assert new == given_value or (math.isnan(new) and math.isnan(given_value))


def representable(value, target):
    if target is DType.BOOL:
        return value in (0, 1)
    if target.is_integer:
        signed = 0 if target.name.startswith("U") else 1
        low, high = -signed << (target.bits - 1), (1 << (target.bits - signed)) - 1
        return math.isfinite(value) and value == int(value) and low <= int(value) <= high
    with np.errstate(all="ignore"):
        try:
            rounded = float(np.array([float(value)]).astype(target.numpy).astype(np.float64)[0])
        except OverflowError:
            return False
    return rounded == value or (math.isnan(rounded) and math.isnan(value))

"""The metrics of any pair are those of a naive computation, element by element, in float64 or exact integers."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from property.arrays import FLOATS, INTEGERS, NUMBERS, SHAPES, arrays, layouts
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.values.dtype import DType

ZERO_REFERENCE = 2.220446049250313e-16  # numpy.finfo(float64).eps
DOUBLES = (DType.DOUBLE, DType.COMPLEX64, DType.COMPLEX128)


@st.composite
def pairs(draw, dtypes=tuple(DType)):
    """Two arrays of one shape, of one type or (numbers only) of two, with many equal elements; in any layout."""
    shape = draw(SHAPES)
    reference = draw(arrays(dtypes, st.just(shape)))
    kind = DType.from_numpy(reference.dtype)
    mixed = kind in NUMBERS and draw(st.booleans())
    other = draw(arrays([d for d in dtypes if d is not DType.STRING] if mixed else [kind], st.just(shape)))
    target = other.reshape(-1).copy()
    equal = draw(arrays([DType.BOOL], st.just(shape))).reshape(-1)
    if mixed:  # By way of a type that every other one can be cast to and from.
        with np.errstate(all="ignore"):
            target[equal] = reference.reshape(-1)[equal].astype(np.complex128).real.astype(target.dtype)
    else:
        target[equal] = reference.reshape(-1)[equal]
    target = target.reshape(shape)
    return draw(layouts(reference)), draw(layouts(target))


def moderate(array):
    """Whether float64 squares of an array neither overflow nor vanish; beyond, no naive formula is right either."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 8:
        return True
    with np.errstate(all="ignore"):
        sizes = np.abs(array[np.isfinite(array)].astype(np.complex128))
    return bool(np.all((sizes == 0) | ((sizes > 1e-100) & (sizes < 1e100))))


def values(array):
    """The elements as Python numbers: exact integers, floats, complex."""
    kind = DType.from_numpy(array.dtype)
    if kind is DType.STRING:
        return array.reshape(-1).tolist()
    if kind.is_integer or kind is DType.BOOL:
        wide = np.uint64 if kind is DType.UINT64 else np.int64
        return array.astype(wide).reshape(-1).tolist()
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).reshape(-1).tolist()


def exact(array):
    kind = DType.from_numpy(array.dtype)
    return kind.is_integer or kind is DType.BOOL


def finite(value):
    return isinstance(value, str) or (math.isfinite(value.real) and math.isfinite(value.imag))


def nan(value):
    return not isinstance(value, str) and value != value


def same(one, other):
    return one == other or (nan(one) and nan(other))


def error_of(one, other):
    return float(one != other) if isinstance(one, str) else float(abs(other - one))


def magnitude(value):
    return 1.0 if isinstance(value, str) else float(abs(value))


def naive(reference, target):
    """Expected metrics by name."""
    ours, theirs = values(reference), values(target)
    if DType.from_numpy(reference.dtype) is not DType.STRING and not (exact(reference) and exact(target)):
        ours, theirs = ([value + 0.0 for value in side] for side in (ours, theirs))
    both = list(zip(ours, theirs, strict=True))
    compared = [(one, other) for one, other in both if finite(one) and finite(other)]
    errors = np.array([error_of(*pair) for pair in compared])
    sizes = np.array([magnitude(one) for one, _ in compared])
    result = {
        "count": len(both),
        "compared": len(compared),
        "nan_reference": sum(map(nan, ours)),
        "nan_target": sum(map(nan, theirs)),
        "inf_reference": sum(not finite(value) and not nan(value) for value in ours),
        "inf_target": sum(not finite(value) and not nan(value) for value in theirs),
        "nonfinite_mismatch": sum(not (finite(x) and finite(y)) and not same(x, y) for x, y in both),
        "mismatches": sum(not same(x, y) for x, y in both),
    }
    if not compared:
        return result
    rms, scale = math.sqrt(np.mean(errors**2)), math.sqrt(np.mean(sizes**2))
    return result | {
        "max_abs_error": errors.max(),
        "mean_abs_error": errors.mean(),
        "rms_error": rms,
        "median_abs_error": np.median(errors),
        "p90_abs_error": np.quantile(errors, 0.9),
        "p99_abs_error": np.quantile(errors, 0.99),
        "max_rel_error": (errors / np.where(sizes == 0, ZERO_REFERENCE, sizes)).max(),
        "mean_rel_error": (errors / np.where(sizes == 0, ZERO_REFERENCE, sizes)).mean(),
        "reference_rms": scale,
        "relative_rms_error": 0.0 if rms == 0 else rms / scale if scale else math.inf,
        "reference_max_abs": max(magnitude(value) for value in ours if finite(value)),
        "target_max_abs": max(magnitude(value) for value in theirs if finite(value)),
    }


@given(pairs())
@settings(max_examples=200, deadline=None)
def test_metrics_agree_with_a_naive_computation(pair):
    reference, target = pair
    assume(moderate(reference) and moderate(target))
    with np.errstate(all="ignore"):
        expected = naive(reference, target)
    metrics = measure(reference, target)
    for name, value in expected.items():
        if isinstance(value, int):
            assert getattr(metrics, name) == value, name
        else:
            # Differences and sums are in float32 where that holds both types: 2**-24 relative, a few times over.
            assert getattr(metrics, name) == pytest.approx(value, rel=3e-6, abs=0, nan_ok=True), name
    assert sum(count for _, count in metrics.histogram) == metrics.mismatches - metrics.nonfinite_mismatch


@given(pairs(tuple(INTEGERS)))
@settings(max_examples=60, deadline=None)
def test_integer_errors_are_exact(pair):
    reference, target = pair
    errors = [abs(x - y) for x, y in zip(values(reference), values(target), strict=True)]
    # A difference between int64 and uint64 may need 65 bits: its float64 is then one unit in the last place off.
    last_place = 0.0 if reference.dtype == target.dtype else 2.0**-52
    assert measure(reference, target).max_abs_error == pytest.approx(max(errors, default=0), rel=last_place, abs=0)
    assert measure(reference, target).exact


@given(arrays(), st.data())
@settings(max_examples=80, deadline=None)
def test_equal_arrays_have_no_error(array, data):
    metrics = measure(data.draw(layouts(array)), data.draw(layouts(array)))
    assert metrics.mismatches == metrics.nonfinite_mismatch == 0
    assert metrics.worst == metrics.histogram == ()
    errors = [metrics.max_abs_error, metrics.rms_error, metrics.max_rel_error, metrics.max_ulp_error,
              metrics.relative_rms_error, metrics.p99_abs_error]  # fmt: skip
    if metrics.compared or not metrics.count:
        assert errors == [0.0] * 6
        assert metrics.cosine_similarity == pytest.approx(1.0, abs=1e-12)
        assert metrics.sqnr_db == math.inf
    else:
        assert all(math.isnan(error) for error in errors)


@given(pairs())
@settings(max_examples=80, deadline=None)
def test_absolute_errors_do_not_depend_on_which_side_is_the_reference(pair):
    reference, target = pair
    one, other = measure(reference, target), measure(target, reference)
    for name in ("max_abs_error", "mean_abs_error", "rms_error", "median_abs_error", "p90_abs_error", "max_ulp_error",
                 "mismatches", "nonfinite_mismatch", "histogram", "compared"):  # fmt: skip
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.cosine_similarity == pytest.approx(other.cosine_similarity, abs=1e-6, nan_ok=True)


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_the_worst_elements_are_the_worst(pair):
    reference, target = pair
    metrics = measure(reference, target)
    assert len(metrics.worst) == min(5, metrics.mismatches)
    assert len({element.index for element in metrics.worst}) == len(metrics.worst)
    if metrics.worst and not metrics.nonfinite_mismatch:
        index = metrics.worst[0].index
        assert measure(reference[index], target[index]).max_abs_error == pytest.approx(metrics.max_abs_error, rel=1e-6)


def rank(value, ladder):
    return int(np.searchsorted(ladder, value))


@given(st.sampled_from([d for d in FLOATS if d.numpy.itemsize <= 2]).flatmap(lambda d: st.tuples(*[arrays([d])] * 2)))
@settings(max_examples=80, deadline=None)
def test_ulps_count_the_representable_numbers_between(pair):
    reference, target = (side.reshape(-1) for side in pair)
    size = min(reference.size, target.size)
    reference, target = reference[:size], target[:size]
    dtype = DType.from_numpy(reference.dtype)
    bits = min(dtype.bits, 16)
    with np.errstate(invalid="ignore"):
        every = np.arange(2**bits, dtype=f"u{max(bits // 8, 1)}").view(dtype.numpy).astype(np.float64)
        ladder = np.unique(every[np.isfinite(every)])
        ours, theirs = reference.astype(np.float64), target.astype(np.float64)
    distances = [abs(rank(x, ladder) - rank(y, ladder)) for x, y in zip(ours, theirs, strict=True)
                 if math.isfinite(x) and math.isfinite(y)]  # fmt: skip
    if distances:
        assert measure(reference, target).max_ulp_error == max(distances)


@given(pairs(tuple(FLOATS)))
@settings(max_examples=60, deadline=None)
def test_cosine_and_signal_to_noise_follow_their_definitions(pair):
    reference, target = pair
    assume(moderate(reference) and moderate(target))
    ours, theirs = (np.array(values(side), dtype=np.float64) for side in pair)
    good = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = ours[good], theirs[good]
    metrics = measure(reference, target)
    assume(ours.any() and theirs.any())
    scale = np.abs(ours).max()
    assume(np.abs(theirs).max() < 1e6 * scale)
    cosine = np.dot(ours / scale, theirs / scale) / np.linalg.norm(ours / scale) / np.linalg.norm(theirs / scale)
    assert metrics.cosine_similarity == pytest.approx(cosine, abs=1e-6)
    noise = np.linalg.norm((ours - theirs) / scale)
    if noise > 1e-12:
        expected = 20 * math.log10(np.linalg.norm(ours / scale) / noise)
        assert metrics.sqnr_db == pytest.approx(expected, abs=1e-3)

"""The compiled metrics pass and numpy's say the same of any pair, and both say what exact arithmetic does.

Counts, maxima, samples, worst elements and distances are equal. Sums are not: the compiled ones are of float64, so they
are the exact ones within 1e-12; numpy's of float32 values are of float32, 2**-24 relative a few times over.
"""

import contextlib
import dataclasses
import math
import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from property.arrays import arrays, layouts
from tensortriage.compare.metrics import blocks, compiled_pass
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.values.dtype import DType

DTYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT, DType.DOUBLE)
SIZES = (1, 7, 1023, 1024, 1025, 20_000, blocks.BLOCK + 5, compiled_pass.RUN + 3 * 1024 + 1)
SUMS = ("mean_abs_error", "rms_error", "l2_error", "mean_rel_error", "relative_rms_error", "reference_rms")
WITH_SUMS = {*SUMS, "cosine_similarity", "sqnr_db"}

needs_it = pytest.mark.skipif(not compiled_pass.is_used(), reason="the metrics pass is not compiled here: run make")


@contextlib.contextmanager
def numpy_alone():
    compiled, compiled_pass._add_run = compiled_pass._add_run, None
    try:
        yield
    finally:
        compiled_pass._add_run = compiled


def both_ways(reference, target):
    with numpy_alone():
        expected = measure(reference, target)
    return measure(reference, target), expected


def assert_same(metrics, expected, dtype):
    for field in dataclasses.fields(metrics):
        ours, theirs = getattr(metrics, field.name), getattr(expected, field.name)
        if field.name not in WITH_SUMS:
            assert repr(ours) == repr(theirs), field.name  # a NaN is itself
        elif field.name in SUMS:
            rel = 1e-12 if dtype is DType.DOUBLE else 3e-6
            assert ours == pytest.approx(theirs, rel=rel, abs=0, nan_ok=True), field.name
        elif math.isfinite(theirs):
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6), field.name


@st.composite
def pairs(draw):
    """Long arrays of a few values, all kinds of bits among them; the target is the reference, near it, or unrelated."""
    dtype, size = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    palette = [draw(arrays([dtype], st.just((4,)))) for _ in "rt"]
    with np.errstate(all="ignore"):
        reference = rng.choice(palette[0], size)
        near = (reference.astype(np.float64) * (1 + 2.0 ** -rng.integers(1, 40, size))).astype(dtype.numpy)
    target = np.choose(rng.integers(0, 3, size), [view(reference), view(near), view(rng.choice(palette[1], size))])
    target = target.astype(view(reference).dtype).view(dtype.numpy)
    kept = draw(st.sampled_from([0, size // 2, size]))  # a stretch that is equal
    target[:kept] = reference[:kept]
    return draw(layouts(reference)), draw(layouts(target))


def view(array):
    return array.view(f"u{array.itemsize}")


def moderate(array):
    """Whether float64 squares neither overflow nor vanish, where both ways are as wrong as each other."""
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        sizes = np.abs(array.astype(np.float64))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return array.itemsize < 8 or bool(np.all((sizes > 1e-100) & (sizes < 1e100)))


@needs_it
@given(pairs())
@settings(max_examples=80, deadline=None)
def test_both_ways_say_the_same(pair):
    metrics, expected = both_ways(*pair)
    if moderate(pair[0]) and moderate(pair[1]):
        assert_same(metrics, expected, DType.from_numpy(pair[0].dtype))
    for name in ("compared", "mismatches", "max_abs_error", "worst", "sampled", "nan_target", "max_ulp_error"):
        assert repr(getattr(metrics, name)) == repr(getattr(expected, name)), name


@needs_it
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("mask", [0.0, -math.inf, math.nan, "lowest", "subnormal"])
def test_both_ways_say_the_same_of_masked_noise(dtype, mask):
    rng = np.random.default_rng(5)
    finfo = dtype.finfo
    value = {"lowest": finfo.min, "subnormal": finfo.smallest_subnormal}.get(mask, mask)
    reference = rng.standard_normal(compiled_pass.RUN + 70_001).astype(dtype.numpy)
    target = (reference.astype(np.float64) + 1e-2 * rng.standard_normal(reference.size)).astype(dtype.numpy)
    reference[::3] = target[::3] = value
    target[5000:9000] = reference[5000:9000]
    assert_same(*both_ways(reference, target), dtype)
    shifted = np.frombuffer(b"\0" + reference.tobytes(), np.uint8)[1:].view(dtype.numpy)
    assert not shifted.flags.aligned or dtype.numpy.itemsize == 1
    assert_same(*both_ways(shifted, target), dtype)


@needs_it
@given(pairs())
@example((np.float32([3e38, 1.0, math.inf]), np.float32([-3e38, 1.5, math.inf])))
@settings(max_examples=40, deadline=None)
def test_compiled_sums_are_exact(pair):
    assume(moderate(pair[0]) and moderate(pair[1]))
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        ours, theirs = (side.astype(np.float64).reshape(-1) for side in pair)
    keep = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = ours[keep], theirs[keep]
    metrics = measure(*pair)
    assert metrics.compared == ours.size
    if ours.size:
        assert metrics.reference_rms == pytest.approx(math.sqrt(math.fsum(ours**2) / ours.size), rel=1e-12, abs=0)
        errors = np.abs(theirs - ours)  # the pass rounds each of them to float32
        expected = math.fsum(errors) / ours.size
        assert metrics.mean_abs_error == pytest.approx(expected, rel=1e-12 if pair[0].itemsize == 8 else 2**-24, abs=0)


@needs_it
def test_what_does_not_fit_is_refused():
    values, sample = np.ones(8, np.uint32), np.empty(8)
    with pytest.raises(ValueError, match="one size"):
        compiled_pass._add_run(2, values, values[:4], sample, 0, 1, 8, (0.0, 1.0))
    with pytest.raises(ValueError, match="room"):
        compiled_pass._add_run(2, values, values, sample[:7], 0, 1, 8, (0.0, 1.0))
    with pytest.raises(ValueError):
        compiled_pass._add_run(9, values, values, sample, 0, 1, 8, (0.0, 1.0))
    odd = np.empty(33, np.uint8)[1:]
    with pytest.raises(ValueError, match="aligned"):
        compiled_pass._add_run(2, odd, odd, sample, 0, 1, 8, (0.0, 1.0))


@pytest.mark.skipif(
    not shutil.which("cc")
    or not Path(sysconfig.get_path("include"), "Python.h").exists()
    or bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="no compiler, or nothing to compile against",
)
def test_an_installation_with_a_compiler_has_the_compiled_pass():
    assert list(Path(compiled_pass.__file__).parent.glob("_compiled_pass*.so")), "run make"

"""Every kind of mistake is named. Targets are made by a known change, so the expected kind is the one planted."""

import ml_dtypes
import numpy as np
import pytest

from tensortriage.compare.patterns.anatomy import SLUGS, dissect
from tensortriage.compare.patterns.error_view import MOST_ELEMENTS
from tensortriage.errors import DataError
from tensortriage.values import serial
from tensortriage_testing import fault_numbers
from tensortriage_testing.fault_numbers import Site
from tensortriage_testing.faulty_engine import FaultKind

RNG = np.random.default_rng(3)
IMAGE = RNG.standard_normal((2, 32, 12, 12)).astype(np.float32)
TOKENS = RNG.standard_normal((2, 65, 96)).astype(np.float32)
OTHER = RNG.standard_normal(TOKENS.shape).astype(np.float32)
OTHER_IMAGE = RNG.standard_normal(IMAGE.shape).astype(np.float32)
FRAME = np.ones((12, 12), bool)
FRAME[1:-1, 1:-1] = False
BFLOAT16_NOISE = 2.0**-9


def changed(array, change):
    """A copy of an array that was changed in place."""
    copy = array.copy()
    change(copy)
    return copy


def rounded(array, noise):
    """An array under the rounding of another engine."""
    if not noise or array.dtype.kind != "f":
        return array
    return (array * (1 + noise * np.random.default_rng(1).standard_normal(array.shape))).astype(array.dtype)


# --- faults of FaultyEngine -------------------------------------------------------------------------------------------

NAMED = {
    FaultKind.SCALE: {"scale"},
    FaultKind.OFFSET: {"offset"},
    FaultKind.NOISE: {"noise"},
    FaultKind.NONDETERMINISTIC: {"noise"},
    FaultKind.SIGN: {"sign"},
    FaultKind.SATURATE: {"saturation"},
    FaultKind.NAN: {"nonfinite"},
    FaultKind.OFF_BY_ONE: {"shift"},
    FaultKind.ZERO_TAIL: {"zeros"},
    FaultKind.PERMUTE: {"transposition", "layout"},
    FaultKind.WRONG_AXIS: {"wrong-axis"},
    FaultKind.STALE: {"stale"},
    FaultKind.BF16_ACCUMULATE: {"narrow-format"},
}

VARIANTS = {
    FaultKind.CLIP, FaultKind.FLUSH, FaultKind.COARSE, FaultKind.INF, FaultKind.TILE_TAIL, FaultKind.BROADCAST,
    FaultKind.CHANNELS_LAST, FaultKind.WARM_UP, FaultKind.ROW, FaultKind.TILE, FaultKind.EPSILON, FaultKind.SHAPE,
}  # fmt: skip
"""Faults whose pattern depends on the tensor, or is one of those above; bench/planted.py plants them in models."""


def planted(kind, shape):
    """The right and the wrong value of an operator with a planted fault, and what it computed before."""
    data = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    previous = np.random.default_rng(6).standard_normal(shape).astype(np.float32)
    right, op_type, operands = data, "Add", [data]
    if kind is FaultKind.WRONG_AXIS:
        powers = np.exp(2 * data)
        right, op_type, operands = powers / powers.sum(-1, keepdims=True), "Softmax", [2 * data]
    if kind is FaultKind.BF16_ACCUMULATE:
        weight = np.random.default_rng(7).standard_normal((shape[-1], 24)).astype(np.float32)
        right, op_type, operands = data @ weight, "MatMul", [data, weight]
    site = Site(right, previous, operands, op_type, {"axis": -1}, None, 0)
    return right, fault_numbers.apply(change_of(kind), site), previous


def change_of(kind):
    """The function that plants a fault; None for a fault that is no matter of numbers."""
    return getattr(fault_numbers, kind.value.replace("-", "_"), None)


def test_every_numeric_fault_is_in_the_table():
    assert set(NAMED) | VARIANTS == {kind for kind in FaultKind if change_of(kind)}


@pytest.mark.parametrize("shape", [(2, 48, 64), (2, 3, 16, 24), (8, 40)], ids=str)
@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.value)
@pytest.mark.parametrize(
    "noise", [pytest.param(0, id="fp32"), pytest.param(BFLOAT16_NOISE, id="bf16", marks=pytest.mark.lengthy)]
)
def test_planted_faults_are_named(kind, shape, noise):
    if noise and kind is FaultKind.BF16_ACCUMULATE:
        pytest.skip("what was computed in bfloat16 is only known while the values still are bfloat16 numbers")
    right, wrong, previous = planted(kind, shape)
    found = dissect(right, rounded(wrong, noise), others={"previous": previous})
    assert found.slugs[0] in NAMED[kind], found


def test_the_tail_that_was_zeroed_is_located():
    right, wrong, _ = planted(FaultKind.ZERO_TAIL, (2, 48, 64))
    found = dissect(right, wrong)
    assert found.slugs == ("zeros", "tail")
    assert found.findings[1].evidence["indices"] == list(range(48, 64))
    assert "beyond a multiple of 16" in found.sentences[1]


# --- every other kind -------------------------------------------------------------------------------------------------

PERMUTATION = np.random.default_rng(8).permutation(32)
PATTERNS = [
    ("axis", IMAGE, changed(IMAGE, lambda x: x[:, 7].__iadd__(3)), "index 7 of 32 along axis 1"),
    ("axis", IMAGE, changed(IMAGE, lambda x: x[:, 9:12].__imul__(2)), "indices 9..11 of 32 along axis 1"),
    ("scale", IMAGE, changed(IMAGE, lambda x: x[:, 7].__imul__(2)), "in the wrong elements the target is 2 times"),
    ("tail", TOKENS, changed(TOKENS, lambda x: x[:, 64:].__iadd__(1)), "the tail that does not fill a tile of 64"),
    ("tail", TOKENS, changed(TOKENS, lambda x: x[..., 93:].__iadd__(1)), "the last 3 indices of axis 2 (93..95)"),
    ("border", IMAGE, np.where(FRAME, 2 * OTHER_IMAGE, IMAGE), "within 1 element of an end of axes 2 and 3"),
    ("period", TOKENS, changed(TOKENS, lambda x: x[..., 3::8].__iadd__(1)), "every 8th index (from 3 on) of axis 2"),
    ("reordering", IMAGE, IMAGE[:, PERMUTATION], "slices of axis 1 are in another order"),
    ("reordering", IMAGE, IMAGE[:, :, ::-1], "axis 2 is in reverse order"),
    ("reordering", IMAGE, IMAGE.reshape(2, 2, 16, 144).swapaxes(1, 2).reshape(IMAGE.shape), "interleaved: 2 groups"),
    ("layout", IMAGE, IMAGE.transpose(0, 2, 3, 1).reshape(IMAGE.shape), "NHWC data read as NCHW"),
    ("layout", IMAGE, IMAGE.reshape(2, 12, 12, 32).transpose(0, 3, 1, 2), "NCHW data read as NHWC"),
    ("transposition", IMAGE, IMAGE.swapaxes(2, 3), "axes 2 and 3 are swapped"),
    ("transposition", TOKENS, TOKENS.transpose(0, 2, 1), "the shape is [2, 96, 65] instead of [2, 65, 96]"),
    ("shape", TOKENS, TOKENS.reshape(130, 96), "the values agree in memory order"),
    ("shape", TOKENS, TOKENS[:, :64], "the shape is [2, 64, 96] instead of [2, 65, 96]"),
    ("shift", TOKENS, np.roll(TOKENS.reshape(-1), 3).reshape(TOKENS.shape), "3 places before it in memory"),
    ("duplicate", IMAGE, IMAGE[:, np.arange(32) // 2 * 2], "axis 1 has repeated slices"),
    ("constant", IMAGE, np.broadcast_to(IMAGE[:1], IMAGE.shape), "does not vary along axis 0"),
    ("constant", IMAGE, np.full_like(IMAGE, 0.5), "0.5 everywhere"),
    ("slice-scale", IMAGE, IMAGE * np.linspace(0.5, 2, 32, dtype=np.float32)[:, None, None], "index of axis 1"),
    ("slice-scale", TOKENS, TOKENS * RNG.uniform(0.9, 1.1, (2, 65, 1)).astype(np.float32), "row along axis 2"),
    ("slice-offset", TOKENS, TOKENS + np.linspace(-1, 1, 96, dtype=np.float32), "index of axis 2 has an offset"),
    ("sign", TOKENS, np.abs(TOKENS), "negative numbers have become positive"),
    ("zeros", TOKENS, np.maximum(TOKENS, 0), "are zero in the target"),
    ("outliers", TOKENS, changed(TOKENS, lambda x: x.reshape(-1).put([5, 999], 50)), "2 elements of 12480 are wrong"),
    ("scattered", TOKENS, np.where(RNG.random(TOKENS.shape) < 0.1, OTHER[::-1], TOKENS), "10 % of the elements"),
    ("stale", TOKENS, changed(TOKENS, lambda x: x[0].__setitem__(..., OTHER[0])), "wrong elements equal tensor 'old'"),
]  # fmt: skip


@pytest.mark.parametrize(
    "noise", [pytest.param(0, id="fp32"), pytest.param(BFLOAT16_NOISE, id="bf16", marks=pytest.mark.lengthy)]
)
@pytest.mark.parametrize(("slug", "reference", "target", "words"), PATTERNS)
def test_patterns_are_named(slug, reference, target, words, noise):
    found = dissect(reference, rounded(target, noise), others={"old": OTHER})
    assert slug in found.slugs, found
    assert words in " ".join(finding.sentence for finding in found.findings if finding.slug == slug)


@pytest.mark.lengthy
def test_values_in_any_order_are_a_permutation():
    target = np.random.default_rng(0).permutation(TOKENS.reshape(-1)).reshape(TOKENS.shape)
    assert dissect(TOKENS, target).slugs == ("permutation",)
    rows = np.take_along_axis(TOKENS, np.argsort(OTHER, axis=-1), axis=-1)
    assert "within each index of axes 0..1" in dissect(TOKENS, rows).sentences[0]


def test_small_numbers_flushed_to_zero():
    small = np.exp(-12 * np.abs(TOKENS))
    found = dissect(small, np.where(small < 6e-5, 0, small).astype(np.float32))
    assert found.slugs[0] == "zeros"
    assert "flushed to zero" in found.sentences[0]


def test_saturation_at_a_limit_of_a_format_is_told():
    large = TOKENS * 1e5
    assert "(the largest float16 number)" in dissect(large, np.clip(large, -65504, 65504)).sentences[0]


# --- NaN and Inf ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (np.abs(TOKENS) > 2.5, "exactly where the reference's magnitude exceeds"),
        (TOKENS > 2.5, "exactly where the reference is above"),
        (TOKENS < -1, "exactly where the reference is below"),
    ],
)
def test_nan_is_told_with_what_the_reference_is_there(where, words):
    found = dissect(TOKENS, np.where(where, np.nan, TOKENS))
    assert found.slugs[0] == "nonfinite"
    assert words in found.sentences[0]


def test_nan_is_located():
    found = dissect(TOKENS, changed(TOKENS, lambda x: x[:, :, 5].fill(np.inf)))
    assert found.slugs == ("nonfinite", "axis")
    assert "index 5 of 96 along axis 2" in found.sentences[1]
    single = dissect(TOKENS, changed(TOKENS, lambda x: x[1, 2, 3:4].fill(np.nan)))
    assert single.sentences == ("1 element of 12480 (at [1, 2, 3]) is NaN in the target only",)


def test_nan_on_both_sides_is_no_error():
    both = changed(TOKENS, lambda x: x[0].fill(np.nan))
    assert dissect(both, both.copy()).findings == ()


# --- rounding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2], ids=lambda k: k.__name__
)
def test_rounding_to_a_format_is_told_and_nothing_else(kind):
    for target in (TOKENS.astype(kind), TOKENS.astype(kind).astype(np.float32)):
        found = dissect(TOKENS, target)
        assert found.slugs == ("rounding",)
        assert np.dtype(kind).name in found.sentences[0]


def test_rounding_to_tf32_and_to_8_bit_levels():
    # Adding half a unit of the 13 bits that are dropped rounds to nearest.
    bits = (TOKENS.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    assert "float16 or TF32" in dissect(TOKENS, bits.view(np.float32)).sentences[0]
    assert "rounded to TF32" in dissect(TOKENS * 2**20, bits.view(np.float32) * 2**20).sentences[0]
    step = np.float32(np.abs(TOKENS).max() / 127)
    found = dissect(TOKENS, np.rint(TOKENS / step) * step)
    assert found.slugs == ("rounding",)
    assert "8-bit quantisation" in found.sentences[0]


def test_an_error_within_the_floor_is_nothing():
    noisy = rounded(TOKENS, BFLOAT16_NOISE)
    assert dissect(TOKENS, noisy, floor=BFLOAT16_NOISE).findings == ()
    assert dissect(TOKENS, noisy).slugs == ("noise",)


# --- types, shapes and sizes ------------------------------------------------------------------------------------------


def test_equal_tensors_have_no_anatomy():
    for array in (TOKENS, np.array("x", object), np.zeros((0, 3)), np.int64([2**62]), np.array([True, False])):
        assert dissect(array, array.copy()).findings == ()


def test_integers_bools_strings_and_complex_numbers():
    ids = RNG.integers(0, 1000, (2, 64))
    assert dissect(ids, np.roll(ids, 1, -1)).slugs[0] == "shift"
    large = changed(ids + 2**60, lambda x: None)
    assert dissect(large, changed(large, lambda x: x[:1, :1].__iadd__(1))).slugs == ("outliers",)
    flags = RNG.random((4, 64, 64)) < 0.5
    assert dissect(flags, ~flags).sentences == ("true and false are exchanged",)
    words = np.array([[f"{row}{column}" for column in range(8)] for row in range(8)], object)
    assert dissect(words, words.T).slugs == ("transposition",)
    numbers = (TOKENS + 1j * OTHER).astype(np.complex64)
    assert "sign" in dissect(numbers, numbers.conj()).slugs


def test_strings_against_numbers_are_refused():
    with pytest.raises(DataError) as caught:
        dissect(np.array(["a"], object), np.float32([1]))
    assert caught.value.slug == "dtype-mismatch"


@pytest.mark.lengthy
def test_one_wrong_element_of_a_large_tensor_is_found():
    large = np.zeros((3, 64, 128, 64), np.float32) + np.linspace(1, 2, 64, dtype=np.float32)
    assert large.size > MOST_ELEMENTS
    found = dissect(large, changed(large, lambda x: x.__setitem__((1, 37, 5, 6), 9)))
    assert found.slugs == ("outliers",)
    assert found.findings[0].evidence["worst"] == [[1, 37, 5, 6]]
    assert "examined" in found.sentences[0]


@pytest.mark.lengthy
def test_places_of_a_large_tensor_are_those_of_the_whole():
    large = np.random.default_rng(0).standard_normal((3, 64, 128, 64), dtype=np.float32)
    found = dissect(large, changed(large, lambda x: x[:, 37].__iadd__(1)))
    assert "index 37 of 64 along axis 1" in " ".join(found.sentences)


def test_doubles_whose_squares_overflow_do_no_harm():
    huge = np.float64([1e300, -1e300, 1e200, 1.0] * 16)
    assert {*dissect(huge, -huge).slugs} <= {*SLUGS}


def test_findings_are_sorted_and_json_able():
    target = changed(IMAGE, lambda x: x[:, 7].__imul__(2))
    target[0, 0, 0, 0] = np.nan
    found = dissect(IMAGE, target)
    strengths = [finding.strength for finding in found.findings]
    assert strengths == sorted(strengths, reverse=True)
    assert all(0 <= strength <= 1 for strength in strengths)
    assert {*found.slugs} <= {*SLUGS}
    assert serial.from_json(serial.to_json(found), type(found)) == found

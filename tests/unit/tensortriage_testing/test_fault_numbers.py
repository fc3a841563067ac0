"""What each kind of fault makes of one tensor; expected values are the docstrings' formulas, written down in numpy."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tensortriage.errors import UsageError
from tensortriage_testing import fault_numbers as kinds
from tensortriage_testing.fault_numbers import Site, apply

RIGHT = np.array([[3, -1, 2, 0.25], [1.5, 4, -0.75, 1]], np.float32)
SITE = Site(RIGHT, None, [], "Neg", {}, None, 0)
RMS = np.sqrt(np.mean(np.square(RIGHT, dtype=np.float64)))


def at(right=RIGHT, **fields):
    return dataclasses.replace(SITE, right=np.asarray(right), **fields)


def halved_tail(width):
    wrong = RIGHT.astype(np.float64)
    wrong[-width:, -width:] /= 2
    return wrong


EXPECTED = [
    (kinds.scale, None, RIGHT * 1.05),
    (kinds.scale, 3, RIGHT * 3),
    (kinds.offset, None, RIGHT + 0.1 * RMS),
    (kinds.sign, None, -RIGHT),
    (kinds.saturate, None, np.clip(RIGHT, -2, 2)),
    (kinds.clip, None, np.clip(RIGHT, -1, 1)),
    (kinds.clip, 100, RIGHT),
    (kinds.flush, 1, np.where(np.abs(RIGHT) < RMS, 0, RIGHT)),
    (kinds.coarse, 5, np.array([[3, -1, 2, 0], [1, 4, -1, 1]])),  # steps of 1 from -1 to 4; 1.5 is a tie, to even
    (kinds.off_by_one, None, RIGHT[::-1]),
    (kinds.zero_tail, None, RIGHT * [1, 1, 1, 0]),
    (kinds.zero_tail, 0.01, RIGHT * [1, 1, 1, 0]),  # at least one
    (kinds.tile_tail, None, RIGHT[:, [0, 1, 2, 0]]),  # a tile of three, and a rest of one
    (kinds.broadcast, None, RIGHT[[0, 0]]),
    (kinds.permute, None, RIGHT.T.reshape(2, 4)),
    (kinds.row, None, RIGHT[[0, 0]]),
    (kinds.row, 0, RIGHT[[1, 1]]),
    (kinds.tile, None, RIGHT / 2),
    (kinds.tile, 1, halved_tail(1)),
    (kinds.shape, None, RIGHT[:1]),
    (kinds.warm_up, None, 0 * RIGHT),
    (kinds.stale, None, RIGHT),
]


@pytest.mark.parametrize(("kind", "amount", "expected"), EXPECTED, ids=lambda x: getattr(x, "__name__", ""))
def test_the_value_is_wrong_as_told(kind, amount, expected):
    found = apply(kind, at(amount=amount))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(SITE.right, RIGHT)


@pytest.mark.parametrize("kind", [kinds.noise, kinds.nondeterministic])
def test_noise_is_of_the_size_of_the_tensor_and_only_one_kind_repeats(kind):
    site = at(2 * np.ones(10_000, np.float32), amount=0.5)
    first, second = (apply(kind, site) - site.right for _ in range(2))
    assert np.std(first) == pytest.approx(1, rel=0.1)  # its own deviation is 1 / sqrt(20,000)
    assert np.array_equal(first, second) == (kind is kinds.noise)


def test_one_element_is_not_finite_counted_round_the_end():
    assert np.flatnonzero(np.isnan(apply(kinds.nan, at(amount=11)))).tolist() == [3]
    assert np.flatnonzero(np.isposinf(apply(kinds.inf, at()))).tolist() == [0]
    assert apply(kinds.nan, at(np.zeros((0, 3), np.float32))).shape == (0, 3)


def test_elements_that_are_not_finite_do_not_set_the_size():
    right = np.array([np.inf, np.nan, 3, -4], np.float32)
    assert at(right).rms == pytest.approx(np.sqrt(12.5))
    np.testing.assert_array_equal(apply(kinds.saturate, at(right)), np.float32([2, np.nan, 2, -2]))
    np.testing.assert_array_equal(apply(kinds.coarse, at(right[:3])), right[:3])  # one finite number has no range
    assert at(right[:2]).rms == 0


def test_integers_are_rounded_and_stay_in_their_range():
    found = apply(kinds.scale, at(np.array([100, -100, 3, 1], np.int8), amount=1.5))
    assert found.dtype == np.int8
    assert found.tolist() == [127, -128, 4, 2]  # 4.5 and 1.5 are ties, to even


def test_a_run_before_is_what_stale_and_warm_up_look_at():
    before = RIGHT + 1
    np.testing.assert_array_equal(apply(kinds.stale, at(previous=before)), before)
    np.testing.assert_array_equal(apply(kinds.stale, at(previous=before[:1])), RIGHT)
    np.testing.assert_array_equal(apply(kinds.warm_up, at(previous=before)), RIGHT)


def test_layouts_and_lost_axes():
    image = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    np.testing.assert_array_equal(
        apply(kinds.channels_last, at(image)), image.transpose(0, 2, 3, 1).reshape(image.shape)
    )
    assert apply(kinds.shape, at(image)).shape == (2, 3, 4)
    np.testing.assert_array_equal(apply(kinds.permute, at(RIGHT[0])), RIGHT[0][::-1])
    np.testing.assert_array_equal(apply(kinds.off_by_one, at(RIGHT[0])), np.roll(RIGHT[0], 1))
    for kind in (kinds.off_by_one, kinds.permute, kinds.zero_tail):
        assert apply(kind, at(np.float32(2))) == 2


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (kinds.nan, {"right": np.zeros(2, np.int64)}),
        (kinds.tile_tail, {"amount": 4}),  # four columns are a full tile
        (kinds.tile_tail, {"amount": 5}),  # there is no tile before
        (kinds.broadcast, {"right": RIGHT[:1]}),
        (kinds.channels_last, {}),
        (kinds.row, {"right": RIGHT[:1]}),
        (kinds.row, {"right": np.float32(1)}),
        (kinds.shape, {"right": np.float32(1)}),
        (kinds.wrong_axis, {"operands": [RIGHT]}),
        (kinds.wrong_axis, {"operands": [RIGHT[0]], "op_type": "Softmax"}),
        (kinds.epsilon, {"operands": [RIGHT]}),
        (kinds.epsilon, {"operands": [RIGHT, RIGHT], "op_type": "Add"}),
        (kinds.bf16_accumulate, {"operands": [RIGHT]}),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_has_no_place_there_is_refused(kind, fields):
    with pytest.raises(UsageError) as caught:
        apply(kind, at(**fields))
    assert caught.value.slug == "fault-unsupported"


def test_the_axis_before_is_normalised():
    powers = np.exp(RIGHT.astype(np.float64))
    site = at(operands=[RIGHT], op_type="Softmax")
    np.testing.assert_allclose(apply(kinds.wrong_axis, site), powers / powers.sum(0), rtol=1e-6)
    site = at(operands=[RIGHT], op_type="LogSoftmax", attributes={"axis": 0})
    np.testing.assert_allclose(apply(kinds.wrong_axis, site), np.log(powers / powers.sum(1, keepdims=True)), rtol=1e-6)


W, B, M, V = ([1, 2, 3, 4], np.array([1, 0, 0, 1]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 0.5]))
CENTRED = RIGHT - RIGHT.mean(1, keepdims=True)
NORMAL = CENTRED / np.sqrt(RIGHT.var(1, keepdims=True) + 0.25)


@pytest.mark.parametrize(
    ("op_type", "operands", "expected"),
    [
        ("LayerNormalization", [W, B], NORMAL * W + B),
        ("LayerNormalization", [W], NORMAL * W),
        ("BatchNormalization", [W, B, M, V], (RIGHT - M) / np.sqrt(V + 0.25) * W + B),
        ("Add", [np.float32(1e-5)], RIGHT + 0.25 - 1e-5),
    ],
)
def test_another_epsilon(op_type, operands, expected):
    site = at(operands=[RIGHT, *map(np.asarray, operands)], op_type=op_type, amount=0.25)
    np.testing.assert_allclose(apply(kinds.epsilon, site), expected, rtol=1e-5, atol=1e-6)


def in_bf16(terms, step):
    """Add along the last axis; the running sum is rounded after every ``step`` terms."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for start in range(0, terms.shape[-1], step):
        total = (total + terms[..., start : start + step].sum(-1)).astype(ml_dtypes.bfloat16).astype(np.float32)
    return total


LEFT = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
RIGHT_SIDE = np.random.default_rng(1).standard_normal((8, 2)).astype(np.float32)
TERMS = LEFT[:, None, :] * RIGHT_SIDE.T
BIAS = np.float32([10, 20])


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "amount", "expected"),
    [
        ("MatMul", [LEFT, RIGHT_SIDE], {}, None, in_bf16(TERMS, 1)),
        ("MatMul", [LEFT, RIGHT_SIDE], {}, 3, in_bf16(TERMS, 3)),
        ("MatMul", [LEFT[0], RIGHT_SIDE], {}, 1, in_bf16(TERMS, 1)[0]),
        ("MatMul", [LEFT, RIGHT_SIDE[:, 0]], {}, 1, in_bf16(TERMS, 1)[:, 0]),
        ("Gemm", [LEFT.T, RIGHT_SIDE.T], {"transA": 1, "transB": 1}, 1, in_bf16(TERMS, 1)),
        ("Gemm", [LEFT, RIGHT_SIDE, BIAS], {"alpha": 2.0, "beta": 0.5}, 1, 2 * in_bf16(TERMS, 1) + BIAS / 2),
        ("ReduceSum", [LEFT, np.array([-1])], {}, 1, in_bf16(LEFT, 1)),
        ("ReduceSum", [LEFT], {"axes": (0,)}, 1, in_bf16(LEFT.T, 1)),
        ("ReduceSum", [LEFT, None], {}, 1, in_bf16(LEFT.reshape(-1), 1)),
        ("ReduceMean", [LEFT], {"axes": (1,)}, 2, in_bf16(LEFT, 2) / 8),
    ],
)
def test_partial_sums_are_rounded_to_bfloat16(op_type, operands, attributes, amount, expected):
    site = at(expected, operands=operands, op_type=op_type, attributes=attributes, amount=amount)
    np.testing.assert_allclose(apply(kinds.bf16_accumulate, site), expected, rtol=1e-6)

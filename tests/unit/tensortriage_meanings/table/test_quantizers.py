"""What becomes of a pair whose interval is taken for one of integers; expected values are worked out by hand."""

import numpy as np
import onnx
import pytest

from meant_otherwise import meant, model, run
from models import of_message
from tensortriage_meanings.rewrite import Rewriter
from tensortriage_meanings.search import sites_of
from tensortriage_meanings.table.quantizers import QUANTIZERS

PAIR = """g (float[4] x) => (float[4] y) <float s = {0.02}, KIND z = {ZERO}, int8[1] w = {3}> {
    [unread] v = DequantizeLinear(w, s)
    [q] a = QuantizeLinear(x, s, z)
    [d] y = DequantizeLinear(a, s, z)
}"""


def pair(kind, zero):
    return model(PAIR.replace("KIND", kind).replace("ZERO", str(zero)))


@pytest.mark.parametrize(
    ("zero", "numbers", "whole"),
    [
        # -2.56 to 2.54 become -3 to 3, so that 1.0 is -3 + 3.56 * 6 / 5.1 = 1.19, which is 1
        (0, [-9.0, -0.2, 1.0, 9.0], [-3.0, 0.0, 1.0, 3.0]),
        # 0 to 5.1 become 0 to 5: 2.8 * 5 / 5.1 is 2.75, which is 3
        (-128, [-1.0, 0.4, 2.8, 9.0], [0.0, 0.0, 3.0, 5.0]),
    ],
)
def test_the_interval_in_whole_numbers(zero, numbers, whole):
    found = run(meant(pair("int8", zero), QUANTIZERS, "to whole ones"), x=np.array(numbers, np.float32))
    assert found.tolist() == whole


def test_unsigned_numbers_and_weights_are_left_alone():
    assert list(sites_of(Rewriter(pair("uint8", 128)), QUANTIZERS)) == []
    assert set(next(sites_of(Rewriter(pair("int8", 0)), QUANTIZERS))) == {"q", "d"}


MET = """g (uint8[3] a, uint8[3] b) => (uint8[3] y)
<float s = {0.5}, uint8 z = {10}, float t = {2}, uint8 u = {4}, float w = {1}, uint8 v = {7}> {
    [one] c = DequantizeLinear(a, s, z)
    [two] d = DequantizeLinear(b, t, u)
    [sum] e = Add(c, d)
    [end] y = QuantizeLinear(e, w, v)
}"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # right is (20 - 10) * 0.5 + (9 - 4) * 2 + 7 = 22
        ("scale 0.5 and zero point 10 were those of DequantizeLinear 'two'", (20 - 4) * 2 + (9 - 4) * 2 + 7),
        ("scale 2 and zero point 4 were those of QuantizeLinear 'end'", 5 + (9 - 7) * 1 + 7),
        ("scale 1 and zero point 7 were those of DequantizeLinear 'two'", round((5 + 10) / 2) + 4),
    ],
)
def test_a_scale_is_that_of_a_tensor_that_meets_there(words, expected):
    feed = {"a": np.full(3, 20, np.uint8), "b": np.full(3, 9, np.uint8)}
    assert run(model(MET), **feed).tolist() == [22] * 3
    assert run(meant(model(MET), QUANTIZERS, words), **feed).tolist() == [expected] * 3


def test_equal_scales_and_those_of_weights_are_left_alone():
    assert list(sites_of(Rewriter(model(MET.replace("{2}", "{0.5}").replace("{4}", "{10}").replace(
        "w = {1}", "w = {0.5}").replace("{7}", "{10}"))), QUANTIZERS)) == []  # fmt: skip


PRODUCT = """g (uint8[2,3] a, uint8[3,2] b) => (int32[2,2] y) <uint8 p = {100}, uint8 q = {7}> {
    [op] y = MatMulInteger(a, b, p, q)
}"""
A, B = np.array([[90, 100, 120], [1, 2, 255]], np.uint8), np.array([[5, 7], [9, 30], [0, 8]], np.uint8)


@pytest.mark.parametrize(
    ("words", "zeros"),
    [
        ("zero points (a_zero_point and b_zero_point) were 0", (0, 0)),
        ("zero point (a_zero_point) were 0", (0, 7)),
        ("zero point (b_zero_point) were 0", (100, 0)),
    ],
)
def test_zero_points_that_are_not_subtracted(words, zeros):
    right = (A.astype(int) - zeros[0]) @ (B.astype(int) - zeros[1])
    assert run(meant(model(PRODUCT), QUANTIZERS, words), a=A, b=B).tolist() == right.tolist()


CONV = """g (uint8[1,1,4] x) => (uint8[1,2,3] y)
<float s = {0.5}, uint8 z = {10}, int8[2,1,2] w = {1, -2, 3, 4}, float[2] t = {0.25, 0.125}, int8[2] n = {0, 0},
 float r = {0.5}, uint8 o = {100}, int32[2] b = {40, -64}> {
    [op] y = QLinearConv(x, s, z, w, t, n, r, o, b)
}"""


@pytest.mark.parametrize(
    ("words", "unit"),
    [("as the integers", [1, 1]), ("scale of x alone", [0.5, 0.5]), ("scale of w alone", [0.25, 0.125]),
     ("scale of the result", [0.5, 0.5])],
)  # fmt: skip
def test_a_bias_in_another_unit(words, unit):
    """ONNX's unit of QLinearConv's bias is the product of the scales of x and w."""
    x = np.array([[[10, 12, 8, 11]]], np.uint8)
    real, bias = (x.astype(float) - 10) * 0.5, np.array([40, -64])
    weight = np.array([[0.25, -0.5], [0.375, 0.5]])

    def result(units):
        sums = np.stack([np.correlate(real[0, 0], row, "valid") for row in weight]) + (bias * units)[:, None]
        return np.clip(np.rint(sums / 0.5) + 100, 0, 255).tolist()

    one = model(CONV)
    assert run(one, x=x)[0].tolist() == result(np.array([0.125, 0.0625]))
    assert run(meant(one, QUANTIZERS, words), x=x)[0].tolist() == result(np.array(unit))


BLOCKS = """g (float[1,4] x) => (float[1,4] y)
<uint8[4] q = {3, 7, 20, 9}, float[2] s = {0.5, 2}, uint8[2] z = {3, 8}> {
    [op] w = DequantizeLinear<axis=0, block_size=2>(q, s, z)
    y = Mul(x, w)
}"""


@pytest.mark.parametrize(("words", "by"), [("one larger", 1), ("one smaller", -1)])
def test_zero_points_of_blocks_one_off(words, by):
    x = np.ones((1, 4), np.float32)
    right = (np.array([3, 7, 20, 9]) - np.repeat([3 + by, 8 + by], 2)) * np.repeat([0.5, 2], 2)
    assert run(meant(model(BLOCKS, opset=21), QUANTIZERS, words), x=x)[0] == pytest.approx(right)


def four_bits(codes, scales, zeros):
    """Return x times the columns of a weight of 4 bits, in blocks of 16."""
    packed = (codes[:, :, 0::2] | codes[:, :, 1::2] << 4).astype(np.uint8)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", "q", "s", "z"], ["y"], "op", domain="com.microsoft", K=32, N=2, bits=4, block_size=16
    )
    given = {"q": packed, "s": scales.ravel(), "z": (zeros[:, 0] | zeros[:, 1] << 4).astype(np.uint8)}
    graph = onnx.helper.make_graph(
        [node], "g", *([onnx.helper.make_tensor_value_info(n, 1, s)] for n, s in (("x", [3, 32]), ("y", [3, 2]))),
        [onnx.numpy_helper.from_array(array, name) for name, array in given.items()],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return of_message(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8))


@pytest.mark.parametrize(
    ("words", "by", "blocks"), [("one larger", 1, [0, 1]), ("one smaller", -1, [0, 1]), ("first block", 0, [0, 0])]
)
def test_packed_zero_points_and_scales_of_blocks(words, by, blocks):
    rng = np.random.default_rng(3)
    codes, x = rng.integers(0, 16, (2, 2, 16)), rng.standard_normal((3, 32)).astype(np.float32)
    scales, zeros = np.array([[0.1, 0.4], [0.2, 0.05]], np.float32), np.array([[3, 8], [7, 12]])
    weight = (codes - (zeros + by)[:, :, None]) * scales[:, blocks][:, :, None]
    one = four_bits(codes, scales, zeros)
    assert run(meant(one, QUANTIZERS, words), x=x) == pytest.approx(x @ weight.reshape(2, 32).T, rel=2e-2, abs=2e-2)

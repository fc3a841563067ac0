import numpy as np
import pytest

from tensortriage.engines.float64.arithmetic import read_arithmetic
from tensortriage.engines.float64.kernels import Call, kernel_for
from tensortriage.engines.float64.kernels.quantization import quantize
from tensortriage.engines.options import Options
from tensortriage.values.dtype import DType

FLOAT32 = read_arithmetic(Options({"accumulator": "fp32"}))


def run(op_type, *inputs, version=21, outputs=1, **attributes):
    return kernel_for(op_type)(Call(op_type, version, inputs, attributes, outputs))


def test_rounding_is_to_even_and_bounded():
    x = np.array([0.5, 1.5, 2.5, -0.5, 300.0, -300.0])
    assert quantize(x, np.array(1.0), None, DType.INT8).tolist() == [0, 2, 2, 0, 127, -128]
    assert quantize(x, np.array(1.0), np.uint8(10), DType.UINT8).tolist() == [10, 12, 12, 10, 255, 0]
    assert quantize(x, np.array(1.0), None, DType.INT4).astype(int).tolist() == [0, 2, 2, 0, 7, -8]


def test_in_float32_the_zero_point_is_added_before_rounding():
    """16.500006 + 128 is 144.5 in float32, whose last place is 1.5e-5 there: a tie, which the exact sum is not."""
    x, scale, zero = np.array([np.float32(0.28977525)]), np.array(np.float32(0.01756213), np.float64), np.uint8(128)
    assert x[0] / scale == pytest.approx(16.500006, abs=1e-6)
    assert quantize(x, scale, zero, DType.UINT8).tolist() == [145]
    assert quantize(x, scale, zero, DType.UINT8, arithmetic=FLOAT32).tolist() == [144]
    assert quantize(x, scale, np.uint8(0), DType.UINT8, arithmetic=FLOAT32).tolist() == [17]


def test_per_axis_and_blocked_scales():
    x = np.arange(8.0).reshape(2, 4)
    per_row = run("QuantizeLinear", x, np.array([1.0, 2.0]), np.array([0, 1], np.int8), axis=0)
    assert per_row.tolist() == [[0, 1, 2, 3], [3, 3, 4, 5]]  # 5 / 2 and 7 / 2 are ties: 2 and 4
    blocked = np.array([[1.0, 2.0], [4.0, 8.0]])
    y = run("DequantizeLinear", np.ones((2, 4), np.int8), blocked, axis=1, block_size=2)
    assert y.tolist() == [[1, 1, 2, 2], [4, 4, 8, 8]]


def test_type_comes_from_the_zero_point_or_the_attribute():
    x, scale = np.array([1.0]), np.array(1.0)
    assert run("QuantizeLinear", x, scale).dtype == np.uint8
    assert run("QuantizeLinear", x, scale, output_dtype=DType.INT16.value).dtype == np.int16
    assert run("QuantizeLinear", x, scale, np.array(0, np.int8)).dtype == np.int8


def test_dequantized_values_are_exact_in_float64():
    y = run("DequantizeLinear", np.array([100], np.uint8), np.array(0.1), np.array(3, np.uint8))
    assert y.item() == 97 * 0.1


@pytest.mark.parametrize("zeros", [(0, 0), (3, 7)])
def test_integer_products(zeros):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 255, (3, 4)).astype(np.uint8), rng.integers(0, 255, (4, 2)).astype(np.uint8)
    found = run("MatMulInteger", a, b, np.array(zeros[0], np.uint8), np.array(zeros[1], np.uint8))
    assert found.dtype == np.int32
    assert found.tolist() == ((a.astype(int) - zeros[0]) @ (b.astype(int) - zeros[1])).tolist()


def test_constant_zero_input_has_a_usable_scale():
    y, scale, zero = run("DynamicQuantizeLinear", np.zeros(3), version=11, outputs=3)
    assert y.tolist() == [0, 0, 0]
    assert np.isfinite(scale)
    assert zero.item() == 0


@pytest.mark.parametrize("shape", [(), (1,)])
def test_one_scale_and_zero_point_may_have_an_axis(shape):
    """A scalar of shape [1] means what one of shape [] means, in every operator that takes scales and zero points."""
    rng = np.random.default_rng(1)

    def one(value, dtype=np.float64):
        return np.full(shape, value, dtype)

    a, b = rng.integers(0, 255, (3, 4)).astype(np.uint8), rng.integers(-64, 64, (4, 2)).astype(np.int8)
    picture, kernel = rng.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8), b.reshape(2, 2, 2, 1)
    product = (a.astype(int) - 3) @ (b.astype(int) - 1)
    x, w, y = (one(0.5), one(3, np.uint8)), (one(0.25), one(1, np.int8)), (one(64.0), one(7, np.uint8))
    quantized = np.clip(np.rint(product * 0.125 / 64.0) + 7, 0, 255)  # 0.5 * 0.25; by hand, as the standard defines it
    assert run("MatMulInteger", a, b, x[1], w[1]).tolist() == product.tolist()
    assert run("QLinearMatMul", a, *x, b, *w, *y).tolist() == quantized.tolist()
    assert run("DequantizeLinear", a, *x).tolist() == ((a.astype(int) - 3) * 0.5).tolist()
    assert run("QuantizeLinear", (a.astype(int) - 3) * 0.5, *x).tolist() == a.tolist()
    sums = run("ConvInteger", picture, kernel, x[1], w[1])
    wide = picture[0].astype(int) - 3
    for n, taps in enumerate(kernel.astype(int) - 1):
        by_hand = sum(taps[c, i, 0] * wide[c, i : i + 4] for c in range(2) for i in range(2))
        assert sums[0, n].tolist() == by_hand.tolist()
    found = run("QLinearConv", picture, *x, kernel, *w, *y)
    assert found.tolist() == np.clip(np.rint(sums * 0.125 / 64.0) + 7, 0, 255).tolist()

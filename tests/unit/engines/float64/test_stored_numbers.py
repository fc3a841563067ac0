"""Quantizers that do not round, and stored numbers as they may have been: by hand, and by what rounding may do."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.float64.stored_numbers import AS_STORED, CutsOff, StoredNumbers
from tensortriage.model.model import Model

X = np.array([[-3.0, -0.2, 0.26, 0.9, 300.0]], np.float32)


def pair_model(weights=None):
    """Return x quantized to uint8 (step 0.5, zero point 2) and back, times a stored weight where one is given."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y" if weights is None else "d"], name="dequantize"),
    ]
    held = [numpy_helper.from_array(np.float32(0.5), "s"), numpy_helper.from_array(np.uint8(2), "z")]
    if weights is not None:
        nodes += [
            helper.make_node("DequantizeLinear", ["w", "s"], ["v"], name="weight"),
            helper.make_node("MatMul", ["d", "v"], ["y"], name="product"),
        ]
        held.append(numpy_helper.from_array(weights, "w"))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Model.from_ir(ir.from_proto(proto))


def evaluated(model, **options):
    with_session = Float64Engine().compile_model(model, options)
    return with_session.run({"x": X})["y"]


def test_quantizers_round_and_cut_off_unless_told_otherwise():
    """x / 0.5 + 2 is -4, 1.6, 2.52, 3.8, 602: rounded and cut off to 0, 2, 3, 4, 255 it stands for (q - 2) / 2."""
    assert evaluated(pair_model()).tolist() == [[-1.0, 0.0, 0.5, 1.0, 126.5]]


def test_unrounded_quantizers_cut_off():
    np.testing.assert_allclose(evaluated(pair_model(), quantizers="unrounded"), [[-1.0, -0.2, 0.26, 0.9, 126.5]], 1e-6)


def test_unbounded_quantizers_do_nothing():
    np.testing.assert_allclose(evaluated(pair_model(), quantizers="unbounded"), X, 1e-6)


def test_what_lies_beyond_zero_is_cut_off_where_the_range_ends_there():
    steps, limits = np.array([-4.0, 1.0, 300.0]), (0.0, 255.0)
    signed = StoredNumbers(False, CutsOff.SIGN)
    assert signed.quantized(steps, limits, 0.0, 0.3).tolist() == [0.0, 1.0, 300.0]
    assert signed.quantized(steps, limits, 255.0, 0.3).tolist() == [-4.0, 1.0, 255.0]
    assert signed.quantized(steps, limits, 2.0, 0.3).tolist() == steps.tolist()


def test_a_clip_at_a_whole_number_is_kept_with_the_relu():
    """A Relu6 that a quantizer took over has the range [0, 6], so the scale 6 / 255 in float32."""
    steps, limits = np.array([-4.0, 1.0, 300.0]), (0.0, 255.0)
    signed, six = StoredNumbers(False, CutsOff.SIGN), float(np.float32(6.0 / 255.0))
    assert signed.quantized(steps, limits, 0.0, six).tolist() == [0.0, 1.0, 255.0]
    assert signed.quantized(steps, limits, 0.0, 5.93 / 255.0).tolist() == [0.0, 1.0, 300.0]  # what a calibrator saw
    assert signed.quantized(steps, limits, 2.0, six).tolist() == steps.tolist()


def test_one_quantizer_rounds_all_the_same():
    told = evaluated(pair_model(), quantizers="unbounded", but="quantize")
    assert told.tolist() == evaluated(pair_model()).tolist()


def test_a_draw_moves_stored_integers_by_half_a_step_at_most():
    weights = np.arange(20, dtype=np.int8).reshape(5, 4)
    plain = evaluated(pair_model(weights))
    first, again, other = (evaluated(pair_model(weights), draw=number) for number in ("1", "1", "2"))
    assert first.tolist() == again.tolist() != other.tolist()
    most = 0.5 * 0.5 * np.abs(evaluated(pair_model())).sum()
    assert 0.0 < np.abs(first - plain).max() <= most


def test_a_draw_may_be_of_some_nodes():
    weights = np.arange(20, dtype=np.int8).reshape(5, 4)
    assert evaluated(pair_model(weights), draw="1", at="other").tolist() == evaluated(pair_model(weights)).tolist()
    assert evaluated(pair_model(weights), draw="1", at="weight").tolist() != evaluated(pair_model(weights)).tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_constants_move_by_half_of_their_spacing(dtype):
    """The spacing of 1 to 2 is 2^-10 in fp16 and 2^-7 in bf16; zero has that of the subnormals.

    In fp16 converters write 1e-7, two spacings there, for all that is smaller, which is up to twice that away.
    """
    array = np.array([1.0, 1.5, 0.0], dtype)
    moved = StoredNumbers(draw=1).constant("w", array)
    spacing = float(ml_dtypes.finfo(dtype).eps)
    assert 0.0 < np.abs(moved - array.astype(np.float64)).max() <= spacing / 2
    least = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    assert 0.0 < abs(moved[2]) <= (4 * least if dtype is np.float16 else least / 2)
    assert AS_STORED.constant("w", array) is array


def test_wide_and_whole_constants_stay():
    for array in (np.ones(3, np.float32), np.arange(3), np.array([True, False])):
        assert StoredNumbers(draw=1).constant("w", array) is array


def test_steps_of_a_body_belong_to_their_node():
    policy = StoredNumbers(False, CutsOff.NOTHING, but=frozenset({"sum"}))
    assert policy.of_node("sum/2") == policy.of_node("sum") == AS_STORED
    assert policy.of_node("sum/product") == StoredNumbers(False, CutsOff.NOTHING)

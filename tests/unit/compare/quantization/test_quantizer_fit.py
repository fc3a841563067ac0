"""Quantizers against the numbers they meet: every mistake planted into a scale that fits."""

import itertools

import hypothesis.strategies as st
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from onnx import helper, numpy_helper

from tensortriage.compare.quantization.quantizer_fit import Meant, Rectifier, activations, calibrate, integer_range
from tensortriage.values.dtype import DType

RNG = np.random.default_rng(7)
X = RNG.standard_normal((4, 8, 16)).astype(np.float32) * np.float32(3.0)
ASYMMETRIC = np.abs(X) + np.float32(0.1)


def minmax(x, dtype):
    """Return scale and zero point of the usual calibration."""
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    least, most = integer_range(dtype)
    if dtype is DType.INT8:
        return np.float32(max(-low, high) / most), np.int8(0)
    scale = np.float32((high - low) / (most - least))
    return scale, np.uint8(round(-low / float(scale)))


def per_channel(x, axis):
    others = tuple(a for a in range(x.ndim) if a != axis)
    return (np.abs(x).max(axis=others) / 127.0).astype(np.float32)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_what_the_usual_calibration_gives_fits(dtype):
    scale, zero = minmax(X, dtype)
    found = calibrate(X, scale, zero, axis=1, dtype=dtype)
    assert found.kind == "fits"
    assert found.gap_db < 3.0
    assert found.words == found.cure == ""


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize(("factor", "kind"), [(0.1, "scale-too-small"), (10.0, "scale-too-large")])
def test_a_scale_off_by_a_factor(dtype, factor, kind):
    scale, zero = minmax(X, dtype)
    found = calibrate(X, scale * np.float32(factor), zero, axis=1, dtype=dtype)
    assert found.kind == kind
    assert found.gap_db > 10.0
    assert (found.clipping > 0.9) == (kind == "scale-too-small")
    assert "factor of" in found.words
    assert found.cure.startswith("calibrate again")
    assert float(found.scale) == pytest.approx(float(scale), rel=0.5)


@pytest.mark.parametrize("draw", [RNG.standard_normal, lambda shape: np.maximum(RNG.standard_normal(shape), 0.0)])
@pytest.mark.parametrize("count", [32, 256, 4096])
def test_a_range_that_was_calibrated_on_other_samples_is_no_mistake(draw, count):
    """Of 64 samples of a kind, and with a scale that is 4 times as large or small; figures of `_by_chance`."""
    kinds = {1.0: [], 4.0: [], 0.25: []}
    for _ in range(3):
        samples = draw((64, count)), draw((40, count))
        scale, zero = minmax(samples[0], DType.UINT8)
        for each, factor in itertools.product(samples[1], kinds):
            own = scale * np.float32(factor)
            fit = calibrate(each, own, zero, axis=0, dtype=DType.UINT8, meant=Meant(sampled=True))
            kinds[factor].append(fit.kind == "fits")
    assert np.mean(kinds[1.0]) > 0.85
    assert max(np.mean(kinds[4.0]), np.mean(kinds[0.25])) < 0.05


@pytest.mark.parametrize("near", [0.9995, 1.0005])
def test_few_numbers_that_lie_between_steps_accuse_no_scale(near):
    """Half of ten equal numbers' error is where the steps of a scale fall; the best one of some has them on a step."""
    gaps = []
    for large in np.linspace(600.0, 601.0, 40):
        x = np.concatenate([np.full(10, 901.0), np.full(10, large), np.zeros(2000)]).astype(np.float32)
        found = calibrate(x, np.float32(near * 901.0 / 255), np.uint8(0), axis=0, dtype=DType.UINT8)
        assert (found.kind, found.words) == ("fits", "")
        gaps.append(found.gap_db)
    assert max(gaps) > 6.0


def test_the_scale_of_the_worst_channel_is_told():
    scales = per_channel(X, 1)
    scales[3] *= 8
    found = calibrate(X, scales, None, axis=1, dtype=DType.INT8)
    assert found.kind == "scale-too-large"
    assert float(found.words.split("a factor of ")[1].split(":")[0]) == pytest.approx(8, rel=0.3)


def test_a_zero_point_that_is_off():
    scale, _ = minmax(X, DType.UINT8)
    found = calibrate(X, scale, np.uint8(20), axis=1, dtype=DType.UINT8)
    assert found.kind == "zero-point"
    assert "zero point 20 is wrong" in found.words
    none = calibrate(ASYMMETRIC, *minmax(ASYMMETRIC, DType.UINT8), axis=1, dtype=DType.UINT8)
    assert (none.kind, int(none.zero_point)) == ("fits", 0)


def test_a_zero_point_with_an_axis_of_its_own():
    scale, zero = minmax(ASYMMETRIC, DType.UINT8)
    for shape, other in (((), (1,)), ((1,), ())):
        step, point = np.reshape(scale, shape), np.reshape(zero, other)
        assert calibrate(ASYMMETRIC, step, point, axis=1, dtype=DType.UINT8).kind == "fits"


def test_a_symmetric_range_that_is_too_narrow_lacks_scale_and_not_a_zero_point():
    """Numbers in 0..4 in a range of +-1: shifted it would hold 0..2, which is half of them."""
    x = np.linspace(0.0, 4.0, 1000, dtype=np.float32)
    found = calibrate(x, np.float32(1 / 127), None, axis=0, dtype=DType.INT8)
    assert found.kind == "scale-too-small"
    assert float(found.scale) == pytest.approx(4 / 127, rel=0.1)
    dropped = calibrate(x, np.float32(4 / 255), None, axis=0, dtype=DType.INT8)
    assert dropped.kind == "zero-point"
    assert "-128 fits" in dropped.words
    meant = calibrate(x, np.float32(4 / 255), None, axis=0, dtype=DType.INT8, meant=Meant(symmetric=True))
    assert meant.kind == "scale-too-small"  # a model without any zero points wants none here
    assert float(meant.scale) == pytest.approx(4 / 127, rel=0.1)


@pytest.mark.parametrize("bad", [0.0, -0.1, np.inf, np.nan])
def test_scales_that_are_none(bad):
    found = calibrate(X, np.float32(bad), None, axis=1, dtype=DType.INT8)
    assert (found.kind, found.error) == ("scale-not-positive", np.inf)
    assert np.isfinite(found.best_error)


def test_scales_along_the_wrong_axis():
    x = X[0, :8, :8] * (10.0 ** np.arange(8))[:, None].astype(np.float32)
    scales = per_channel(x, 0)
    assert calibrate(x, scales, None, axis=0, dtype=DType.INT8).kind == "fits"
    found = calibrate(x, scales, None, axis=1, dtype=DType.INT8)
    assert found.kind == "axis"
    assert found.cure == "set the attribute axis to 0"
    assert calibrate(x, scales, None, axis=-2, dtype=DType.INT8).kind == "fits"


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.floats(1e-3, 1e3),
    st.integers(0, 255),
    st.sampled_from([DType.INT8, DType.UINT8]),
)
def test_the_error_is_that_of_the_operators(seed, scale, zero, dtype):
    """The error told is that of ONNX Runtime's QuantizeLinear and DequantizeLinear."""
    x = np.random.default_rng(seed).standard_normal((3, 5)).astype(np.float32) * np.float32(100)
    zero = np.asarray(zero).astype(np.uint8).astype(dtype.numpy)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (3, 5)) for name in "xy"]
    weights = [numpy_helper.from_array(np.float32(scale), "s"), numpy_helper.from_array(zero, "z")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    y = ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]
    found = calibrate(x, np.float32(scale), zero, axis=1, dtype=dtype)
    expected = np.sqrt(np.square(y.astype(np.float64) - x).sum() / np.square(x.astype(np.float64)).sum())
    # x / scale is float32 in ONNX Runtime: a tie may fall to the other side, one step for one element.
    assert found.error == pytest.approx(expected, rel=1e-3, abs=1e-6 * scale)
    assert found.best_error <= found.error * (1 + 1e-9) or found.kind == "fits"


RECTIFIED = np.maximum(X, 0.0)
ZERO = {DType.UINT8: np.uint8(0), DType.INT8: np.int8(-128)}


def relu(top, dtype=DType.UINT8, numbers=X):
    return Rectifier(numbers, np.float32(top / 255), ZERO[dtype], dtype)


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT8])
def test_a_quantizer_that_begins_at_zero_and_fits_what_is_above_is_a_relu(dtype):
    assert activations({"a": relu(float(X.max()), dtype)}) == {"a": np.inf}
    assert activations({"a": relu(6.0, dtype)}) == {"a": 6.0}  # though a share of the numbers is beyond
    assert activations({"a": relu(6.0, dtype, X / 3)}) == {"a": 6.0}


def test_a_lost_zero_point_is_no_relu():
    """Its scale was made for both signs: twice too large for the upper half."""
    lost = relu(float(X.max() - X.min()))
    assert activations({"a": lost}) == {}
    assert activations({"a": lost, "b": relu(float(X.max()) / 4)}) == {}  # too small: neither is one
    fitting = {name: relu(float(X.max())) for name in ("b", "c")}
    assert set(activations({"a": lost} | fitting)) == {"a", "b", "c"}  # calibrated on larger numbers, as the others say


def test_what_has_no_negative_numbers_or_several_scales_is_judged_as_it_is():
    assert activations({"a": relu(1.0, numbers=RECTIFIED)}) == {}
    several = Rectifier(X, np.ones(8, np.float32), np.zeros(8, np.uint8), DType.UINT8)
    assert activations({"a": several}) == {}

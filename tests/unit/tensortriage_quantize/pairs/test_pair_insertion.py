"""Pairs as they are written: scales by hand, types, biases, and the kernels that ONNX Runtime makes of them."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import models
import running
from quantizable_networks import ATTENTION, RESIDUAL
from tensortriage.model.quantization.qdq import seven_bit_weights
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType
from tensortriage_quantize.pairs.engine_styles import STYLES
from tensortriage_quantize.pairs.pair_insertion import PairOptions, insert_pairs, scale_of
from tensortriage_quantize.pairs.pair_placement import heavy_nodes, place_pairs

X = np.random.default_rng(1).standard_normal((1, 2, 8, 8)).astype(np.float32)


def made(text=RESIDUAL, engine="onnxruntime", feed=None, **options):
    """Return a model with pairs of the ranges that it has on one feed."""
    model, style = models.parse(text), STYLES[engine]
    specs = value_specs(model)
    plan = place_pairs(model, style, heavy_nodes(model.graph, style, style.heavy, specs), specs)
    feed = feed or {"x": X}
    seen = {**running.record(model, feed)[0], **feed}
    ranges = {name: (float(array.min()), float(array.max())) for name, array in seen.items()}
    return insert_pairs(model, plan, ranges, PairOptions.of(style, **options))


def kernels(model, folder):
    """Return how often ONNX Runtime runs which operator for a model."""
    options = ort.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(folder / "kernels.onnx"), 4
    ort.InferenceSession(model.save(folder / "m.onnx"), options, providers=["CPUExecutionProvider"])
    found = [node.op_type for node in onnx.load(folder / "kernels.onnx").graph.node]
    return {op_type: found.count(op_type) for op_type in found}


def error(text, model, feed):
    reference, found = running.run(models.parse(text), feed)["y"], running.run(model, feed)["y"]
    return float(np.sqrt(np.mean((found - reference) ** 2) / np.mean(reference**2)))


@pytest.mark.parametrize(
    ("given", "scale", "zero"),
    [
        ((0.0, 5.1, DType.UINT8, False), 5.1 / 255, 0),
        ((-1.0, 1.55, DType.UINT8, False), 2.55 / 255, 100),
        ((1.0, 5.1, DType.UINT8, False), 5.1 / 255, 0),  # 0 is always exact
        ((-1.27, 0.5, DType.INT8, True), 0.01, 0),
        ((0.0, 0.0, DType.UINT8, False), 1.0, 0),
        ((0.0, 65535.0, DType.UINT16, False), 1.0, 0),
        ((-448.0, 1.0, DType.FLOAT8E4M3FN, True), 1.0, 0),
    ],
)
def test_scales_by_hand(given, scale, zero):
    low, high, dtype, symmetric = given
    found = scale_of(low, high, dtype, symmetric=symmetric)
    assert float(found[0]) == pytest.approx(scale)
    assert (float(found[1]), found[1].dtype) == (zero, dtype.numpy)


def test_a_residual_network_runs_in_integers_from_end_to_end(tmp_path):
    found = kernels(made(), tmp_path)
    assert (found["QLinearConv"], found["QLinearAdd"]) == (3, 1)
    assert not {"Conv", "Add", "Relu"} & set(found)
    assert (found["QuantizeLinear"], found["DequantizeLinear"]) == (1, 1)
    assert 0.0 < error(RESIDUAL, made(), {"x": X}) < 0.05


def test_a_product_with_a_bias_runs_in_integers_with_a_float_result(tmp_path):
    feed = {"x": np.random.default_rng(2).standard_normal((2, 6)).astype(np.float32)}
    model = made(ATTENTION, feed=feed)
    found = kernels(model, tmp_path)
    assert found.get("QGemm", 0) + found.get("MatMulIntegerToFloat", 0) == 1
    assert error(ATTENTION, model, feed) < 0.02


@pytest.mark.parametrize("engine", STYLES)
def test_every_engine_s_file_is_valid_and_right(tmp_path, engine):
    model = made(engine=engine)
    onnx.checker.check_model(onnx.load(model.save(tmp_path / "made.onnx")), full_check=True)
    assert error(RESIDUAL, model, {"x": X}) < 0.1
    assert [spec.name for spec in model.outputs] == ["y"]


def test_the_bias_is_stored_in_steps_of_the_products():
    graph = made().graph
    (back,) = [node for node in graph.nodes if node.op_type == "DequantizeLinear" and node.inputs[0] == "b_quantized"]
    stored, steps = graph.weight("b_quantized"), graph.weight(back.inputs[1])
    assert (stored.dtype, back.attributes["axis"]) == (np.int32, 0)
    np.testing.assert_allclose(stored * steps, [1.0, 2.0], rtol=1e-3)
    weights, activation = graph.weight("v_scale"), graph.weight("x_scale")
    np.testing.assert_allclose(steps, weights * activation, rtol=1e-6)


def test_a_bias_that_int32_cannot_hold_widens_the_scale_of_its_channel():
    text = RESIDUAL.replace("float[2] b = {1, 2}", "float[2] b = {1, 1e7}")
    graph = made(text).graph
    stored = graph.weight("b_quantized")
    assert abs(int(stored[1])) <= 2**30
    assert error(text, made(text), {"x": X}) < 0.05


def test_weights_stay_float_behind_a_pair_or_use_7_bits():
    graph = made(float_weights=True).graph
    assert {"v", "w", "b"} <= set(graph.constants)
    assert np.abs(made(seven_bits=True).graph.weight("v_quantized").astype(int)).max() == 64
    assert np.abs(made().graph.weight("v_quantized").astype(int)).max() == 127


def test_one_scale_for_a_weight_has_no_axis():
    graph = made(per_channel=False).graph
    assert graph.weight("v_scale").shape == ()


def test_biases_follow_when_weights_are_narrowed_afterwards():
    """Integer kernels look at no scale of a bias: it would count twice."""
    narrow = seven_bit_weights(made())
    reference = running.run(models.parse(RESIDUAL), {"x": X})["y"]
    found = running.run(narrow, {"x": X}, optimization="ENABLE_ALL")["y"]
    assert np.sqrt(np.mean((found - reference) ** 2) / np.mean(reference**2)) < 0.05


def test_a_channel_s_scale_is_the_one_that_loses_least():
    """Never more than the scale that holds its largest weight loses, computed here, and less where cutting off pays."""
    weight = np.random.default_rng(4).standard_normal((128, 8)).astype(np.float32)
    numbers = ", ".join(map(str, weight.reshape(-1)))
    text = f"g (float[2, 128] x) => (float[2, 8] y) <float[128, 8] w = {{{numbers}}}> {{ y = MatMul(x, w) }}"
    graph = made(text, feed={"x": weight.T[:2].copy()}).graph
    usual = np.abs(weight).max(axis=0) / 127.0
    lost = np.square(graph.weight("w_quantized") * graph.weight("w_scale") - weight).sum(axis=0)
    before = np.square(np.rint(weight / usual) * usual - weight).sum(axis=0)
    assert (lost <= before * 1.0001).all()
    assert lost.sum() < 0.99 * before.sum()

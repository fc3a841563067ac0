import numpy as np
import onnx
import pytest

import models
import running
from tensortriage.errors import ModelError, UsageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage_quantize.calibration.calibrated_model import (
    Calibration,
    ModelQuantizer,
    QuantizeOptions,
)


def numbers(low, high, count):
    return "{" + ", ".join(f"{number:.3f}" for number in np.linspace(low, high, count)) + "}"


W, V = numbers(-1, 1, 16), numbers(0.1, 2, 12)
NET = f"""
    g (float[N, 4] x) => (float[N, 3] y) <float[4, 4] w = {W}, float[4, 3] v = {V}> {{
        [first] h = MatMul(x, w)
        [act] a = Relu(h)
        [second] y = MatMul(a, v)
    }}"""
FEEDS = [
    Feed(f"f{seed}", {"x": np.random.default_rng(seed).uniform(-2, 2, (8, 4)).astype(np.float32)}, Origin.REAL)
    for seed in range(3)
]


def quantizer(tmp_path, text=NET, feeds=FEEDS, **options):
    return ModelQuantizer(models.parse(text), feeds, QuantizeOptions(**options), folder=tmp_path, lab=Lab())


def scales(model):
    """Return the scales of activations by the tensor that is quantized."""
    nodes = [node for node in model.graph.nodes if node.op_type == "QuantizeLinear"]
    return {
        node.inputs[0]: np.asarray(model.ir.graph.initializers[node.inputs[1]].const_value.numpy()) for node in nodes
    }


def error(model, name="y"):
    feed = FEEDS[0].tensors
    reference, target = running.run(models.parse(NET), feed)[name], running.run(model, feed)[name]
    return float(np.sqrt(np.mean((target - reference) ** 2) / np.mean(reference**2)))


def test_scales_are_those_of_the_largest_magnitude_seen(tmp_path):
    """Symmetric int8: scale = max |x| / 127 over all samples, computed here from the samples themselves."""
    made = quantizer(tmp_path).quantized()
    largest = max(float(np.abs(feed.tensors["x"]).max()) for feed in FEEDS)
    assert scales(made)["x"] == pytest.approx(largest / 127, rel=1e-5)
    assert set(scales(made)) == {"x", "a"}
    assert made.graph.producer("y").name == "second"


def test_weights_have_a_scale_per_output_channel_and_stay_in_eight_bits(tmp_path):
    made = quantizer(tmp_path).quantized()
    weights = {n: v.const_value for n, v in made.ir.graph.initializers.items() if v.const_value.dtype.name == "INT8"}
    stored = [w for w in weights.values() if len(w.shape) == 2]
    assert sorted(tuple(w.shape) for w in stored) == [(4, 3), (4, 4)]
    per_channel = [tuple(v.const_value.shape) for n, v in made.ir.graph.initializers.items() if "scale" in n]
    assert (4,) in per_channel
    assert (3,) in per_channel


def test_kept_nodes_are_untouched_and_the_calibration_is_reused(tmp_path):
    one = quantizer(tmp_path)
    whole, part = one.quantized(), one.quantized({"first"})
    assert set(scales(part)) == {"a"}
    assert part.graph.producer("h").inputs == ("x", "w")
    assert 0.0 < error(part) < error(whole) < 0.03  # two operands of 1/127 each, twice
    assert set(one.ranges) == {"x", "a"}


@pytest.mark.parametrize("calibration", [*Calibration])
def test_every_calibration_gives_a_sound_model(tmp_path, calibration):
    made = quantizer(tmp_path, calibration=calibration).quantized()
    onnx.checker.check_model(onnx.load(made.save(tmp_path / "made.onnx")))
    assert error(made) < 0.2


def test_fp8_puts_the_largest_magnitude_at_the_largest_number(tmp_path):
    made = quantizer(tmp_path, precision=Precision.FP8E4M3).quantized()
    largest = max(float(np.abs(feed.tensors["x"]).max()) for feed in FEEDS)
    assert scales(made)["x"] == pytest.approx(largest / 448, rel=1e-5)
    assert 0.0 < error(made) < 2 * 2.0**-4  # operands of three mantissa bits: half a unit is 2**-4


def test_float_weights_stay_behind_a_pair(tmp_path):
    made = quantizer(tmp_path, float_weights=True).quantized()
    assert {"x", "a", "w", "v"} <= set(scales(made))


def test_what_cannot_be_quantized(tmp_path):
    with pytest.raises(ModelError) as nothing:
        quantizer(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert nothing.value.slug == "quantize-nothing"
    with pytest.raises(UsageError) as other:
        QuantizeOptions(precision=Precision.FP16)
    assert other.value.slug == "quantize-precision"


def test_a_weight_that_is_shared_is_rounded_for_the_quantized_node_alone(tmp_path):
    text = f"""
        g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y, float[N, 4] v, float[4, 4] u) <float[4, 4] w = {W}> {{
            [low] y = MatMul(x, w)
            [wide] v = MatMul(z, w)
            [other] u = Neg(w)
        }}"""
    feeds = [Feed("f", FEEDS[0].tensors | {"z": FEEDS[1].tensors["x"]}, Origin.REAL)]
    made = quantizer(tmp_path, text, feeds).quantized({"wide"})
    exact = running.run(models.parse(text), feeds[0].tensors)
    found = running.run(made, feeds[0].tensors)
    assert not np.array_equal(found["y"], exact["y"])
    np.testing.assert_array_equal(found["v"], exact["v"])
    np.testing.assert_array_equal(found["u"], exact["u"])


def test_activations_are_unsigned_for_onnx_runtime_and_only_what_was_seen_is_held(tmp_path):
    """Scale of uint8: (max - min) / 255 over all samples, computed here; percentiles never leave what was seen."""
    x = np.concatenate([feed.tensors["x"] for feed in FEEDS])
    made = quantizer(tmp_path, engine="onnxruntime").quantized()
    assert scales(made)["x"] == pytest.approx((x.max() - x.min()) / 255, rel=1e-5)
    (tmp_path / "cut").mkdir()
    cut = quantizer(tmp_path / "cut", engine="onnxruntime", calibration=Calibration.PERCENTILE, percentile=90.0)
    low, high = cut.ranges["x"]
    assert x.min() < low < 0.0 < high < x.max()
    assert cut.ranges["a"][0] == 0.0  # behind a Relu


def test_products_that_cost_nothing_stay_float_for_onnx_runtime(tmp_path):
    big, small = [", ".join(["0.5"] * count) for count in (64 * 64, 64)]
    text = f"""g (float[8, 64] x) => (float[8, 1] y) <float[64, 64] w = {{{big}}}, float[64, 1] v = {{{small}}}> {{
        [body] h = MatMul(x, w)
        [head] y = MatMul(h, v) }}"""
    feed = Feed("f", {"x": np.ones((8, 64), np.float32)}, Origin.REAL)
    wide = (
        text.replace("[8, 64]", "[8, 256]")
        .replace("float[64, 64] w", "float[256, 64] w")
        .replace(big, ", ".join([big] * 4))
    )
    wide_feed = Feed("f", {"x": np.ones((8, 256), np.float32)}, Origin.REAL)
    assert quantizer(tmp_path, text, [feed], engine="onnxruntime").nodes == ("body", "head")  # 1.5 % of the work
    assert quantizer(tmp_path, wide, [wide_feed], engine="onnxruntime").nodes == ("body",)  # 0.4 %
    assert quantizer(tmp_path, wide, [wide_feed], engine="tensorrt").nodes == ("body", "head")


def test_what_was_calibrated_in_a_case_is_not_calibrated_again(tmp_path, monkeypatch):
    for attempt in range(2):
        with Case(tmp_path / "case") as case, Lab(case) as lab:
            folder = tmp_path / f"folder{attempt}"
            folder.mkdir()
            options = QuantizeOptions(engine="onnxruntime", calibration=Calibration.ENTROPY)
            one = ModelQuantizer(models.parse(NET), FEEDS, options, folder=folder, lab=lab)
            ranges = dict(one.ranges)
            monkeypatch.setattr(ModelQuantizer, "_measured", lambda self, way: pytest.fail("measured again"))
    assert set(ranges) == {"x", "a"}

"""The bundled examples are what examples/README.md says they are.

Expected values: labels are scikit-learn's (bundled beside the pictures); 65504 is the largest finite float16.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

from tensortriage import demo

pytestmark = pytest.mark.lengthy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FEEDS = {
    "digits_vit": "digits",
    "digits_vit_overflow": "digits_vit_overflow",
    "digits_vit_mask": "digits_vit_mask",
    "digits_vit_positions": "digits_vit_positions",
    "digits_cnn": "digits",
    "digits_cnn_broken": "digits",
}
RIGHT_IN_FP32 = ["digits_vit", "digits_vit_overflow", "digits_vit_mask", "digits_vit_positions", "digits_cnn"]
IDS = "position_ids"


def example_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rounding = example_module("rounding")
accuracy = example_module("accuracy")


def load(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    with np.load(EXAMPLES / f"{FEEDS[name]}.npz") as feed:
        return onnx.load(EXAMPLES / f"{name}.onnx"), dict(feed)


def score(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> float:
    return accuracy.metric(rounding.evaluate(model, feed), feed)


@pytest.mark.parametrize("name", FEEDS)
def test_models_are_small_valid_and_take_the_bundled_feed(name):
    model, feed = load(name)
    onnx.checker.check_model(model, full_check=True)
    assert (EXAMPLES / f"{name}.onnx").stat().st_size < 1_000_000
    assert [i.name for i in model.graph.input] == list(feed)
    assert {array.shape[0] for name, array in feed.items() if name != IDS} == {32}
    assert {i.type.tensor_type.shape.dim[0].dim_param for i in model.graph.input if i.name != IDS} == {"batch"}
    assert not {node.op_type for node in model.graph.node} & {"LayerNormalization", "Gelu"}


@pytest.mark.parametrize("name", RIGHT_IN_FP32)
def test_models_read_real_digits_in_fp32(name):
    assert score(*load(name)) > 0.95


@pytest.mark.parametrize("name", ["digits_vit", "digits_cnn"])
def test_healthy_models_survive_fp16(name):
    model, feed = load(name)
    assert rounding.first_non_finite(model, feed) is None
    assert score(rounding.rounded(model), feed) > 0.95


def test_overflow_model_is_useless_in_fp16_because_of_one_square():
    model, feed = load("digits_vit_overflow")
    assert score(rounding.rounded(model), feed) < 0.5
    assert rounding.first_non_finite(model, feed).name == "/norm_pre/Pow"
    values = [name for node in model.graph.node for name in node.output]
    beyond = [n for n, v in rounding.evaluate(model, feed, *values).items() if np.abs(v).max() > 65504]
    assert beyond == ["/norm_pre/Pow_output_0"]
    assert score(rounding.rounded(model, kept=["/norm_pre/Pow"]), feed) > 0.95


def test_overflow_model_gives_finite_but_wrong_logits():
    model, feed = load("digits_vit_overflow")
    assert np.isfinite(rounding.evaluate(rounding.rounded(model), feed)["logits"]).all()


def test_mask_model_is_nan_in_fp16_because_of_zero_times_a_constant_that_became_infinite():
    model, feed = load("digits_vit_mask")
    narrow = rounding.rounded(model)
    assert np.isnan(rounding.evaluate(narrow, feed)["logits"]).all()
    node = rounding.first_non_finite(model, feed)
    assert node.name == "/attention_bias/Mul"
    constant = rounding.evaluate(model, feed, node.input[1])[node.input[1]]
    assert constant == np.float32(-1e9)
    assert rounding.evaluate(narrow, feed, node.input[1])[node.input[1]] == -np.inf


def test_mask_hides_blank_patches_only():
    _, feed = load("digits_vit_mask")
    patches = feed["image"].reshape(-1, 4, 2, 4, 2).max(axis=(2, 4)).reshape(-1, 16)
    np.testing.assert_array_equal(feed["attention_mask"], patches > 0)
    assert 0 < feed["attention_mask"].mean() < 1


def test_positions_model_is_useless_in_bf16_because_of_whole_numbers_and_their_angles():
    model, feed = load("digits_vit_positions")
    narrow = rounding.rounded(model, to=onnx.TensorProto.BFLOAT16)
    assert score(narrow, feed) < 0.5
    ids = rounding.evaluate(narrow, feed, "/positions/Cast_output_0")["/positions/Cast_output_0"]
    np.testing.assert_array_equal(ids, 4 * np.round(feed[IDS] / 4))  # 8 significant bits below 1024


def test_positions_model_computes_what_the_healthy_one_learned():
    """A system of 16 equations solved in float64; what float32 leaves of angles up to 3000 is about 1e-4."""
    model, feed = load("digits_vit_positions")
    (learned,) = (w for w in load("digits_vit")[0].graph.initializer if w.name == "position")
    found = rounding.evaluate(model, feed, "position")["position"]
    np.testing.assert_allclose(found, onnx.numpy_helper.to_array(learned), atol=1e-3)


def test_broken_copy_differs_in_one_attribute_of_one_node():
    healthy, feed = load("digits_cnn")
    broken, _ = load("digits_cnn_broken")
    assert score(broken, feed) < 0.8
    changed = [(h, b) for h, b in zip(healthy.graph.node, broken.graph.node, strict=True) if h != b]
    ((before, after),) = changed
    assert before.name == after.name == "/block2/conv1/Conv"
    attributes = zip(before.attribute, after.attribute, strict=True)
    ((pads, moved),) = (pair for pair in attributes if pair[0] != pair[1])
    assert (pads.name, list(pads.ints), list(moved.ints)) == ("pads", [1, 1, 1, 1], [0, 0, 2, 2])
    after.CopyFrom(before)
    assert broken == healthy


def test_samples_are_batches_of_labelled_pictures():
    model = onnx.load(EXAMPLES / "digits_cnn.onnx")
    with np.load(EXAMPLES / "digits_samples.npz") as samples:
        image = samples["image"]
    assert image.shape == (14, 32, 1, 8, 8)
    feed = {"image": image[-1]}
    assert score(model, feed) > 0.95


def test_metric_counts_a_non_finite_row_as_wrong():
    model, feed = load("digits_cnn")
    logits = rounding.evaluate(model, feed)["logits"]
    right = accuracy.metric({"logits": logits}, feed)
    logits[:8] = np.nan
    assert accuracy.metric({"logits": logits}, feed) <= right - 7 / 32


@pytest.mark.parametrize("feed", [{"image": np.ones((1, 1, 8, 8), np.float32)}, {"x": np.ones(1, np.float32)}])
def test_metric_refuses_pictures_it_has_no_label_for(feed):
    with pytest.raises(ValueError, match="digits"):
        accuracy.metric({"logits": np.zeros((1, 10), np.float32)}, feed)


def test_the_model_that_crashes_an_engine_is_valid_and_runs_elsewhere():
    model = onnx.load(EXAMPLES / "openvino_crash.onnx")
    onnx.checker.check_model(model, full_check=True)
    with np.load(EXAMPLES / "openvino_crash.npz") as feed:
        assert np.isfinite(rounding.evaluate(model, dict(feed))["y"]).all()


def test_demo_is_the_overflow_example():
    assert demo.demo_model().samefile(EXAMPLES / "digits_vit_overflow.onnx")
    assert demo.demo_inputs().samefile(EXAMPLES / "digits_vit_overflow.npz")
    assert demo.demo_model().stat().st_size + demo.demo_inputs().stat().st_size < 400_000

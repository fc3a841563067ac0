import ml_dtypes
import numpy as np
import onnx
import pytest

import models
from engines.onnx_models import parsed
from tensortriage.engines.capabilities import ReportsPrecision
from tensortriage.engines.emulate import FORMATS, EmulateEngine
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.errors import UsageError
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

VALUES = np.array([1.001, -300.5, 17.3, 1e-5, 3.14159, 0.0], np.float32)


@pytest.fixture
def square(tmp_path):
    return parsed(tmp_path / "m.onnx", "g (float[n] x) => (float[n] y) { [square] y = Mul(x, x) }")


def run(path, x, **options):
    session = EmulateEngine().compile(path, options)
    y = session.run({"x": x})["y"]
    session.close()
    return y


@pytest.mark.parametrize(("word", "dtype"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_inputs_and_results_are_rounded(square, word, dtype):
    # Expected: round the input, multiply in float32, round the result; numpy and ml_dtypes do the rounding.
    rounded = VALUES.astype(dtype).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = (rounded * rounded).astype(dtype).astype(np.float32)
    assert run(square, VALUES, precision=word).tolist() == expected.tolist()


def test_overflow_shows(square):
    x = np.array([300.0, 30.0], np.float32)
    assert run(square, x, precision="fp16").tolist() == [np.inf, 900.0]  # largest float16: 65504
    assert np.isnan(run(square, x, precision="fp8e4m3")).tolist() == [True, True]  # largest 448, no infinity
    assert run(square, x, precision="fp8e5m2").tolist() == [np.inf, 1024.0]  # largest 57344; 30 becomes 32


def test_kept_nodes_compute_and_store_in_float32(square):
    exact = run(square, np.array([1.001], np.float32), precision="fp16", kept="square")
    rounded = run(square, np.array([1.001], np.float32), precision="fp16")
    assert exact.item() == np.float32(1.001) * np.float32(1.001)
    assert rounded.item() != exact.item()


def test_rounding_survives_in_a_chain_that_an_optimizer_would_simplify(tmp_path):
    # 2048 + 1 is a tie in float16 and rounds to 2048, so subtracting 2048 again leaves 0; in float32 it leaves 1.
    text = "g (float[1] x) => (float[1] y) <float[1] k = {2048}> { a = Add(x, k)\n y = Sub(a, k) }"
    path = parsed(tmp_path / "m.onnx", text)
    assert run(path, np.ones(1, np.float32), precision="fp16").item() == 0.0


def test_plan_names_the_nodes_of_the_users_model(square):
    session = EmulateEngine().compile(square, {"precision": "bf16"})
    named = [name for region in session.plan().regions for name in region.nodes]
    session.close()
    assert named == ["square"]


def test_wrong_options(square):
    engine = EmulateEngine()
    for options, slug in [
        ({}, "engine-option-required"),
        ({"precision": "fp32"}, "engine-option-value"),
        ({"precision": "fp16", "kept": "nobody"}, "node-unknown"),
        ({"precision": "fp16", "threads": "1"}, "engine-option-unknown"),
    ]:
        with pytest.raises(UsageError) as caught:
            engine.compile(square, options)
        assert caught.value.slug == slug


@pytest.mark.parametrize("precision", FORMATS)
def test_precision_is_reported(precision):
    engine = EmulateEngine()
    assert isinstance(engine, ReportsPrecision)
    assert engine.precision({"precision": precision.value}) == precision.value


CONTRIB = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
  g (int32[1,4] ids, int32[1,4] segments) => (float[1,4,8] y)
  {
      [embed] e, m = com.microsoft.EmbedLayerNormalization<epsilon = 1e-5>
          (ids, segments, words, places, kinds, scale, shift)
      [product] p = MatMul(e, w)
      [last] y = Add(p, e)
  }"""
WEIGHTS = {"words": (10, 8), "places": (6, 8), "kinds": (2, 8), "scale": (8,), "shift": (8,), "w": (8, 8)}


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_types_that_no_schema_tells_come_from_onnxruntime(tmp_path, precision):
    """ONNX has no schema of EmbedLayerNormalization, so nothing but ONNX Runtime tells that its result is float."""
    rng = np.random.default_rng(0)
    model = models.proto(CONTRIB)
    for name, shape in WEIGHTS.items():
        array = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = models.write(tmp_path / "m.onnx", model)
    feed = {"ids": np.array([[1, 2, 3, 9]], np.int32), "segments": np.array([[0, 0, 1, 1]], np.int32)}
    session, plain = EmulateEngine().compile(path, {"precision": precision}), OnnxRuntimeEngine().compile(path, {})
    got, exact = session.run(feed)["y"], plain.run(feed)["y"]
    session.close()
    plain.close()
    dtype = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}[precision]
    np.testing.assert_array_equal(got, got.astype(dtype).astype(np.float32))  # every result is one of the format
    step = float(ml_dtypes.finfo(dtype).eps)
    assert 0 < np.abs(got - exact).max() < 20 * step * np.abs(exact).max()


@pytest.mark.parametrize("precision", BLOCK_FORMATS, ids=lambda precision: precision.value)
def test_operands_of_products_are_in_blocks_along_the_axis_that_is_summed(tmp_path, precision):
    text = "g (float[3, 70] x, float[70, 5] w) => (float[3, 5] y) { [product] p = MatMul(x, w) [relu] y = Relu(p) }"
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 70), (70, 5)))
    session = EmulateEngine().compile(parsed(tmp_path / "p.onnx", text), {"precision": precision.value})
    block = BLOCK_FORMATS[precision]
    left, right = block.rounded(x, 1).astype(np.float64), block.rounded(w, 0).astype(np.float64)
    np.testing.assert_array_equal(session.run({"x": x, "w": w})["y"], np.maximum(left @ right, 0).astype(np.float32))


def test_a_convolution_has_blocks_of_channels(tmp_path):
    text = "g (float[1, 40, 3, 3] x, float[2, 40, 1, 1] w) => (float[1, 2, 3, 3] y) { [conv] y = Conv(x, w) }"
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 40, 3, 3), (2, 40, 1, 1)))
    session = EmulateEngine().compile(parsed(tmp_path / "c.onnx", text), {"precision": "mxfp4"})
    block = BLOCK_FORMATS[Precision.MXFP4]
    expected = np.einsum(
        "nchw,mc->nmhw", block.rounded(x, 1).astype(float), block.rounded(w, 1)[..., 0, 0].astype(float)
    )
    np.testing.assert_allclose(session.run({"x": x, "w": w})["y"], expected, rtol=1e-6)


def test_blocks_keep_no_nodes(square):
    with pytest.raises(UsageError) as caught:
        run(square, VALUES, precision="mxfp4", kept="square")
    assert caught.value.slug == "engine-option-value"

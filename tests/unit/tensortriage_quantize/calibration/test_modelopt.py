"""What is asked of TensorRT-Model-Optimizer, and what is made of its answer.

A stand-in with its signature (modelopt.onnx.quantization.quantize of nvidia-modelopt 0.47) answers with what ONNX
Runtime's quantizer makes: weights in float behind pairs, and a pair for all who read a tensor. The real one is asked
where MODELOPT_PYTHON names an interpreter that has it.
"""

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import models
import running
from tensortriage.errors import EngineMissing, ModelError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.precision.goal import GoalSample
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage_quantize.calibration.calibrated_model import Calibration, QuantizeOptions
from tensortriage_quantize.calibration.calibration_search import calibrated, usable_ways
from tensortriage_quantize.calibration.modelopt import ModelOptQuantizer, modelopt_python

STAND_IN = """
import os
import onnx
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

def quantize(onnx_path, quantize_mode="int8", calibration_data=None, calibration_method=None,
             calibration_data_reader=None, calibration_eps=("cpu",), output_path=None, log_level="INFO",
             high_precision_dtype="fp16"):
    assert (quantize_mode, calibration_method) == ("int8", "max"), (quantize_mode, calibration_method)
    assert high_precision_dtype == "fp32"
    first = calibration_data_reader.get_first()
    assert (first["x"] == calibration_data_reader.get_next()["x"]).all()
    calibration_data_reader.rewind()
    if any(node.op_type == "Erf" for node in onnx.load(onnx_path).graph.node):
        raise RuntimeError("no Erf today")
    quantize_static(
        onnx_path, output_path, calibration_data_reader, quant_format=QuantFormat.QDQ, per_channel=True,
        op_types_to_quantize=["MatMul"], activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options={
            "ActivationSymmetric": True, "WeightSymmetric": True, "AddQDQPairToWeight": True,
            "OpTypesToExcludeOutputQuantization": ["MatMul"], "QDQOpTypePerChannelSupportToAxis": {"MatMul": 1},
        },
    )
"""
NET = """
    g (float[N, 4] x) => (float[N, 2] y, float[N, 4] z)
    <float[4, 2] w = {1, -1, 0.5, 2, 0.25, 0.125, -3, 1}, float[4, 2] v = {2, 1, 1, 1, 0.5, 0.25, 1, 4}> {
        [first] a = MatMul(x, w)
        [second] b = MatMul(x, v)
        [sum] y = Add(a, b)
        [other] z = Neg(x)
    }"""
FEEDS = [
    Feed(f"f{seed}", {"x": np.random.default_rng(seed).uniform(-2, 2, (8, 4)).astype(np.float32)}, Origin.REAL)
    for seed in range(3)
]


@pytest.fixture
def python(tmp_path):
    """Return an interpreter that has the stand-in."""
    package = tmp_path / "site" / "modelopt" / "onnx" / "quantization"
    package.mkdir(parents=True)
    for folder in (package.parents[1], package.parent):
        (folder / "__init__.py").touch()
    (package / "__init__.py").write_text(STAND_IN)
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return str(script)


def asked(python, tmp_path, model=None, **more):
    options = {"method": "max", "float_weights": False, "folder": tmp_path, "python": python, **more}
    return ModelOptQuantizer(model or models.parse(NET), FEEDS, Precision.INT8, **options)


def readers(model):
    graph = model.graph
    pairs = {node.outputs[0] for node in graph.nodes if node.op_type == "DequantizeLinear"}
    return {node.name for node in graph.nodes if set(node.inputs) & pairs}


def test_any_choice_of_nodes_is_its_model_without_the_other_pairs(python, tmp_path):
    made = asked(modelopt_python(python), tmp_path)
    assert set(made.nodes) == {"first", "second", "other"}  # the stand-in hands the pair to all who read x
    assert readers(made.quantized()) == set(made.nodes)
    assert readers(made.quantized({"first", "other"})) == {"second"}
    largest = max(float(np.abs(feed.tensors["x"]).max()) for feed in FEEDS)
    assert made.ranges["x"] == pytest.approx((-largest, largest), rel=1e-5)


def test_its_weights_are_stored_in_8_bits_with_the_same_results(python, tmp_path):
    made = asked(modelopt_python(python), tmp_path)
    whole, light = made.quantized(float_weights=True), made.quantized()
    types = {value.const_value.dtype.name for value in light.ir.graph.initializers.values() if value.shape.rank() == 2}
    assert types == {"INT8"}
    onnx.checker.check_model(onnx.load(light.save(tmp_path / "light.onnx")))
    feed = FEEDS[0].tensors
    for name, array in running.run(whole, feed).items():
        np.testing.assert_array_equal(running.run(light, feed)[name], array)


def test_what_it_refuses_is_said_in_its_words(python, tmp_path):
    with pytest.raises(ModelError, match="no Erf today") as refused:
        asked(modelopt_python(python), tmp_path, models.parse(NET.replace("Neg", "Erf")))
    assert refused.value.slug == "quantize-failed"


@pytest.mark.parametrize(("op_type", "words"), [("Neg", {"minmax", "modelopt-max"}), ("Erf", {"minmax"})])
def test_it_is_one_of_the_ways_unless_it_refuses(python, tmp_path, op_type, words):
    model = models.parse(NET.replace("Neg", op_type))
    judges = [GoalSample(feed, running.run(model, feed.tensors)) for feed in FEEDS[2:]]
    calibrations = (Calibration.MINMAX, Calibration.MODELOPT_MAX)
    options = QuantizeOptions(op_types=("MatMul",), modelopt_python=python)
    with Lab() as lab:
        ways = calibrated(model, FEEDS[:2], judges, options=options, calibrations=calibrations, lab=lab)
    assert {way.tried.calibration for way in ways.found} == words
    assert {way.tried.quantized for way in ways.found} == {2}
    assert set(ways.refused) == {"minmax", "modelopt-max"} - words
    assert all("no Erf today" in why for why in ways.refused.values())


def test_it_is_asked_for_where_it_is_not_installed(python):
    for word in ("no-such-python", sys.executable, ""):
        with pytest.raises(EngineMissing) as missing:
            usable_ways("modelopt", word)
        assert (missing.value.slug, missing.value.exit_code) == ("modelopt-missing", 3)
        assert "--modelopt-python" in missing.value.cure
    assert [way.value for way in usable_ways("auto")] == ["minmax", "entropy", "percentile"]
    assert [way.value for way in usable_ways("auto", python)][3:] == ["modelopt", "modelopt-max"]


@pytest.mark.skipif("MODELOPT_PYTHON" not in os.environ, reason="MODELOPT_PYTHON names no interpreter")
@pytest.mark.parametrize("precision", [Precision.INT8, Precision.FP8E4M3])
def test_the_real_one(tmp_path, precision):
    examples = Path(__file__).parents[4] / "examples"
    model = Model.load(examples / "digits_cnn.onnx")
    with np.load(examples / "digits.npz") as stored:
        feed = Feed("digits", dict(stored), Origin.REAL)
    made = ModelOptQuantizer(
        model, [feed], precision, method="entropy", float_weights=False, folder=tmp_path,
        python=modelopt_python(os.environ["MODELOPT_PYTHON"]),
    )  # fmt: skip
    assert {"/block1/conv2/Conv", "/block2/conv2/Conv"} <= set(made.nodes)
    exact, found = (running.run(one, feed.tensors)["logits"] for one in (model, made.quantized()))
    assert np.linalg.norm(found - exact) / np.linalg.norm(exact) < 0.1

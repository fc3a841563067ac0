"""Kernels of ONNX Runtime and OpenVINO on a processor without VNNI: whether they compute as is said, and verdicts.

`tests/without_vnni.py` makes processes of such a processor; where it cannot, OpenVINO alone is limited by its variable.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import models
import without_vnni
from tensortriage_testing import feed_for, mlp, quantized, save_model

pytestmark = [pytest.mark.engine, pytest.mark.lengthy]
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def variables():
    """Return the environment of processes without VNNI."""
    if (found := without_vnni.limits()) is None:
        pytest.skip("this processor cannot be limited")
    return dict(found)


KERNELS = """
import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from tensortriage.compare.quantization.int16_sums import saturated_product, windows
from tensortriage.engines.cpu_features import computes_bf16, sums_in_int16

assert sums_in_int16() and not computes_bf16()
rng = np.random.default_rng(0)


def large(dtype, shape):
    ends = np.iinfo(dtype)
    high = rng.integers(ends.max - 60, ends.max, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.8, high, rng.integers(ends.min, ends.min + 40, shape)).astype(dtype)


def run(node, x, constants, kind, shape):
    types = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", types[x.dtype], x.shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


for first in (np.uint8, np.int8):
    for second in (np.int8, np.uint8):
        for rows, terms, columns in ((1, 8, 4), (5, 9, 7), (7, 64, 40), (40, 30, 3)):
            x, w = large(first, (rows, terms)), large(second, (terms, columns))
            node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
            found = run(node, x, {"w": w}, TensorProto.INT32, (rows, columns))
            saturates = (first, second) == (np.uint8, np.int8)
            right = saturated_product(x, w) if saturates else x.astype(np.int64) @ w.astype(np.int64)
            assert np.array_equal(found, right), (first, second, rows, terms, columns)

for channels, kernels, size, group in ((2, 3, 3, 1), (3, 4, 3, 1), (8, 8, 1, 1), (8, 8, 3, 2), (5, 7, 2, 1)):
    x, w = large(np.uint8, (1, channels, 6, 6)), large(np.int8, (kernels, channels // group, size, size))
    sides = []
    for part, some in zip(np.split(x, group, axis=1), np.split(w, group)):
        columns = np.moveaxis(some, 1, -1).reshape(len(some), -1).T
        sides.append(saturated_product(windows(part, (size, size), 0), columns))
    sums = np.concatenate(sides, axis=1)
    scale, one = np.float32(2 ** np.ceil(np.log2(np.abs(sums).max() / 255))), np.float32(1)
    zero, none = np.uint8(0), np.int8(0)
    constants = {"w": w, "one": one, "zero": zero, "none": none, "scale": scale}
    words = ["x", "one", "zero", "w", "one", "none", "scale", "zero"]
    node = helper.make_node("QLinearConv", words, ["y"], group=group)
    found = run(node, x, constants, TensorProto.UINT8, None)
    right = np.clip(np.rint(sums / scale), 0, 255)
    assert np.array_equal(found.reshape(kernels, -1).T, right), (channels, kernels, size, group)
"""


def test_where_the_processor_cannot_be_limited_commands_run_and_a_line_says_so(variables, tmp_path):
    """Without a compiler there is no library to put into processes, as where a machine does not fault at CPUID."""
    if not variables:
        pytest.skip("this processor has nothing to hide")
    script = [sys.executable, str(TESTS / "without_vnni.py")]
    shown = [sys.executable, "-c", "import os; print(os.environ['ONEDNN_MAX_CPU_ISA'])"]
    given = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([*script, *shown], env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "AVX2\n")
    assert len(done.stderr.splitlines()) == 1
    assert without_vnni.NOT_HERE in done.stderr
    required = subprocess.run([*script, "--required", *shown], env=given, capture_output=True, text=True, check=False)
    assert (required.returncode, required.stdout) == (1, "")


def test_onnx_runtime_adds_pairs_in_int16(variables):
    words = [sys.executable, "-c", KERNELS]
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def large_mlp(folder):
    """Write a network, and the same quantized, in which some sums do not fit; return both paths and that of a feed."""
    model = mlp()
    feed = {name: np.abs(array) + np.float32(0.5) for name, array in feed_for(model).items()}
    np.savez(folder / "feed.npz", **feed)
    made = quantized(model, feed)
    return save_model(model, folder / "m.onnx"), save_model(made, folder / "q.onnx"), folder / "feed.npz"


def on_integers(folder):
    """Write a MatMulInteger that saturates, and a feed; return both paths."""
    message = models.proto("g (uint8[4, 8] x) => (int32[4, 8] y) { [product] y = MatMulInteger(x, w) }")
    message.graph.initializer.append(numpy_helper.from_array(np.full((8, 8), 127, np.int8), "w"))
    np.savez(folder / "feed.npz", x=np.full((4, 8), 250, np.uint8))
    return models.write(folder / "i.onnx", message), folder / "feed.npz"


def triage(variables, *words):
    command = [sys.executable, "-c", "from tensortriage.cli import main; main()", *map(str, words)]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def diagnosed(folder, variables, *words):
    done = triage(variables, "diagnose", *words, "--case", folder / "case", "--json", "--no-repro")
    return done.returncode, json.loads(done.stdout)["verdict"]


def test_what_onnx_runtime_cuts_off_is_told_with_its_cures(tmp_path, variables):
    _, file, feed = large_mlp(tmp_path)
    code, verdict = diagnosed(tmp_path, variables, file, "--target", "onnxruntime", "--inputs", feed)
    assert (code, verdict["verdict"]) == (1, "quantization")
    assert "saturating int16" in verdict["summary"]
    assert "uint8" in verdict["remedy"]["summary"]
    assert any("config.session.x64quantprecision=1" in line for line in verdict["next"])
    case = json.loads((tmp_path / "case" / "case.json").read_text())
    assert case["versions"]["processor"] == "without VNNI and bf16"


def test_its_own_option_cures_it(tmp_path, variables):
    option = "config.session.x64quantprecision=1"
    _, file, feed = large_mlp(tmp_path)
    code, verdict = diagnosed(tmp_path, variables, file, "--target", f"onnxruntime:{option}", "--inputs", feed)
    assert (code, verdict["verdict"]) == (0, "match"), verdict["summary"]


def test_a_reference_that_cuts_off_is_none(tmp_path, variables):
    file, feed = on_integers(tmp_path)
    code, verdict = diagnosed(tmp_path, variables, file, "--target", "onnxruntime", "--inputs", feed)
    assert (code, verdict["verdict"]) == (1, "quantization"), verdict["summary"]
    assert "float64 is the reference: onnxruntime:optimization=none adds" in verdict["summary"]
    done = triage(variables, "run", file, "--reference", "onnxruntime", "--target", "float64", "--inputs", feed)
    assert "float64 is the reference" in done.stderr


LAYERS = {
    "DynamicQuantizeLSTM": ("LSTM", 'y, h, c = LSTM<hidden_size=16, direction="bidirectional">(x, w, r, b)'),
    "QAttention": ("Attention", "y = com.microsoft.Attention<num_heads=4>(x, w, b)"),
    "DynamicQuantizeMatMul": ("MatMul", "y = MatMul(x, w)"),
}
"""Operators of ONNX Runtime that quantize their data themselves or multiply inside, by what is quantized to them."""
SHAPES = {
    "DynamicQuantizeLSTM": {"w": (2, 64, 24), "r": (2, 64, 16), "b": (2, 128)},
    "QAttention": {"w": (24, 96), "b": (96,)},
    "DynamicQuantizeMatMul": {"w": (24, 8)},
}


@pytest.mark.parametrize("op_type", LAYERS)
def test_what_an_operator_cuts_off_inside_is_told(tmp_path, variables, op_type):
    """Weights near the ends of their range and data near the largest of theirs, so that most pairs do not fit."""
    kind, text = LAYERS[op_type]
    header = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
    message, rng = models.proto(f"{header} g (float[6,3,24] x) => (float y) {{ {text} }}"), np.random.default_rng(0)
    message.graph.output[0].type.tensor_type.ClearField("shape")
    for name, shape in SHAPES[op_type].items():
        weight = np.sign(rng.standard_normal(shape)) * rng.uniform(0.2, 0.3, shape)
        message.graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), name))
    original, file = models.write(tmp_path / "m.onnx", message), tmp_path / "q.onnx"
    quantize_dynamic(original, file, weight_type=QuantType.QInt8, op_types_to_quantize=[kind])
    if op_type == "DynamicQuantizeMatMul":  # which ONNX Runtime makes of MatMulInteger
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(file)
        ort.InferenceSession(file.read_bytes(), options, providers=["CPUExecutionProvider"])
    np.savez(tmp_path / "feed.npz", x=rng.uniform(0.8, 1.2, (6, 3, 24)).astype(np.float32))
    words = (file, "--target", "onnxruntime", "--inputs", tmp_path / "feed.npz")
    code, verdict = diagnosed(tmp_path, variables, *words)
    assert (code, verdict["verdict"]) == (1, "quantization"), verdict["summary"]
    assert verdict["culprits"][0]["op_type"] == op_type
    assert "saturating int16" in verdict["summary"]
    assert triage(variables, "run", *words, "--reference", "onnxruntime:optimization=none").returncode == 1


def test_golden_values_do_not_excuse_what_is_cut_off(tmp_path, variables):
    """What the row of the judge allows is evaluated in float64: the reference beside it would saturate as well."""
    model, file, feed = large_mlp(tmp_path)
    golden = tmp_path / "golden.npz"
    assert triage({}, "run", model, "--onnxrt", "--inputs", feed, "--save-outputs", golden).returncode == 0
    words = ("run", file, "--target", "onnxruntime", "--inputs", feed, "--load-outputs", golden)
    assert [triage(each, *words).returncode for each in ({}, variables)] == [0, 1]


OPENVINO = """
import numpy as np
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

from tensortriage.compare.quantization.int16_sums import saturated_product, windows
from tensortriage.model.quantization.int16_products import by_tap_padded

rng, core = np.random.default_rng(0), ov.Core()
for channels, kernels, size, group in ((1, 4, 3, 1), (3, 4, 3, 1), (4, 4, 3, 1), (7, 8, 1, 1), (6, 4, 3, 2)):
    x = rng.integers(120, 255, (1, channels, 6, 6), endpoint=True).astype(np.uint8)
    w = rng.integers(-127, 127, (kernels, channels // group, size, size), endpoint=True).astype(np.int8)
    constants = {"one": np.float32(1), "w": w, "z": np.uint8(0), "n": np.int8(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "one", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "one", "n"], ["v"]),
        helper.make_node("Conv", ["d", "v"], ["y"], group=group),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    read = core.read_model(model.SerializeToString())
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = next(iter(compiled({"x": x.astype(np.float32)}).values()))
    sides = []
    for part, some in zip(np.split(x, group, axis=1), np.split(w, group)):
        part, some = (by_tap_padded(part), by_tap_padded(some)) if group == 1 else (part, some)
        columns = np.moveaxis(some, 1, -1).reshape(len(some), -1).T
        sides.append(saturated_product(windows(part, (size, size), 0), columns))
    right = np.concatenate(sides, axis=1).T.reshape(found.shape)
    assert np.allclose(found, right, rtol=1e-6), (channels, kernels, size, group)
"""


def test_openvino_adds_pairs_within_a_tap():
    pytest.importorskip("openvino")
    words, given = [sys.executable, "-c", OPENVINO], {**os.environ, **without_vnni.OPENVINO_ALONE}
    done = subprocess.run(words, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CONCAT = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,6,6] x, float[1,8,6,6] z) => (float[1,4,4,4] y) <float s = {0.02}, float t = {0.01}, int8 n = {0}> {
    [left] l = Relu(x)
    [right] r = Tanh(z)
    [concat] c = Concat<axis=1>(l, r)
    [q] a = QuantizeLinear(c, s, n)
    [d] b = DequantizeLinear(a, s, n)
    [e] v = DequantizeLinear(w, t, n)
    [conv] o = Conv(b, v)
    [end] y = Relu(o)
}"""


def test_what_openvino_loses_behind_a_concat_is_told_with_its_cure(tmp_path):
    pytest.importorskip("openvino")
    message, rng = models.proto(CONCAT), np.random.default_rng(0)
    message.graph.initializer.append(numpy_helper.from_array(rng.integers(-40, 41, (4, 16, 3, 3)).astype(np.int8), "w"))
    np.savez(tmp_path / "feed.npz", **{n: rng.uniform(-2.5, 2.5, (1, 8, 6, 6)).astype(np.float32) for n in "xz"})
    file = models.write(tmp_path / "c.onnx", message)
    words = (file, "--target", "openvino:precision=fp32", "--inputs", tmp_path / "feed.npz")
    code, verdict = diagnosed(tmp_path, without_vnni.OPENVINO_ALONE, *words)
    assert (code, verdict["verdict"]) == (1, "fusion-fault"), verdict["summary"]
    assert {"concat", "q", "d", "conv"} <= {culprit["node"] for culprit in verdict["culprits"]}
    assert "cut real numbers to whole ones" in verdict["summary"]
    assert "activation_type=QUInt8" in verdict["summary"]


def test_openvino_cuts_off_by_its_own_limit(tmp_path):
    pytest.importorskip("openvino")
    _, file, feed = large_mlp(tmp_path)
    words = (file, "--target", "openvino:precision=fp32", "--inputs", feed)
    code, verdict = diagnosed(tmp_path, without_vnni.OPENVINO_ALONE, *words)
    assert (code, verdict["verdict"]) == (1, "quantization"), verdict["summary"]
    assert "saturating int16" in verdict["summary"]

"""LiteRT behind onnx2tf, where its environment was made (``triage engines install litert``)."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import tensortriage_engines
import tensortriage_worker
from converted_engines import IMAGES, MODEL, check_inner_values
from diagnosing import ask, step
from tensortriage.errors import BuildFailed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_input_shapes
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.install.environments import environments
from tensortriage_engines.litert.engine import LiteRtEngine

MADE = [environment for environment in environments() if environment.engine == "litert"]
pytestmark = pytest.mark.skipif(not MADE, reason="no environment: triage engines install litert")
ENGINE = LiteRtEngine()
OPTIONS = {"worker": MADE[0].python} if MADE else {}
EDIT = """
import sys, numpy as np
from pathlib import Path
from tensortriage_engines.litert.worker.adapter import _converted, _unpacked
from ai_edge_litert import schema_py_generated as schema
inputs = [{"name": "image", "dtype": "float32", "shape": [4, 1, 8, 8]}]
content = bytearray(_unpacked(_converted(Path(sys.argv[1]), {"precision": "fp32"}, inputs))[0])
model = schema.Model.GetRootAs(bytes(content), 0)
graph = model.Subgraphs(0)
tensors = {graph.Tensors(i).Name().decode(): graph.Tensors(i) for i in range(graph.TensorsLength())}
weight = bytes(model.Buffers(tensors["wa/block2/conv1/Conv_conv_filter"].Buffer()).DataAsNumpy())
at = bytes(content).index(weight)
content[at:at + len(weight)] = (np.frombuffer(weight, "<f4") * np.float32(1.1)).tobytes()
Path(sys.argv[2]).write_bytes(content)
"""
"""Converts argv[1], multiplies one weight of the file by 1.1, and writes argv[2]."""


def test_it_conforms():
    report = check_engine_conformance(ENGINE, OPTIONS)
    assert len(report.passed) + len(report.refused) >= 30


def test_inner_values_are_those_of_the_model(tmp_path):
    nodes, planned = check_inner_values(ENGINE, OPTIONS, tmp_path, fewest=12)
    assert planned == nodes


@pytest.mark.parametrize("op", ["MaxPool<kernel_shape = [2, 2], strides = [2, 2]>", "LRN<size = 1, alpha = 0.0>"])
def test_outputs_have_the_layout_of_the_model(op, tmp_path):
    """All axes have one size, so that only the operator of the file tells which of them are the channels."""
    size = 2 if op.startswith("MaxPool") else 4
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,{size},4,4] x) => (float[1,{size},{size},{size}] y) {{
        y = {op}(x) }}"""
    onnx.save(parser.parse_model(text), tmp_path / "model.onnx")
    x = np.arange(size * 16, dtype=np.float32).reshape(1, size, 4, 4)
    session = ENGINE.compile(tmp_path / "model.onnx", OPTIONS)
    try:
        found = session.run({"x": x})["y"]
    finally:
        session.close()
    np.testing.assert_allclose(found, x[:, :, 1::2, 1::2] if size == 2 else x, rtol=1e-6)  # LRN divides by 1 ** 0.75


def test_a_refusal_is_told_in_the_words_of_who_refuses(tmp_path):
    words = "the runtime refuses the converted file"
    session = ENGINE.compile(MODEL, {**OPTIONS, "precision": "fp16"})
    with closing(session), pytest.raises(BuildFailed, match=words):
        session.run({"image": IMAGES[:1]})
    shutil.copy(MODEL.with_name("digits.npz"), tmp_path / "model.tflite")
    session = ENGINE.compile(MODEL, {**OPTIONS, "file": str(tmp_path / "model.tflite")})
    with closing(session), pytest.raises(BuildFailed, match=words):
        session.run({"image": IMAGES[:1]})


def test_a_weight_edited_in_the_converted_file_is_found(tmp_path):
    """The ONNX model is right, op by op: only the run of the file itself shows the fault."""
    fixed = with_input_shapes(Model.load(MODEL), {"image": (4, 1, 8, 8)}).save(tmp_path / "fixed.onnx")
    file = tmp_path / "edited.tflite"
    ours = [str(Path(package.__file__).parents[1]) for package in (tensortriage_worker, tensortriage_engines)]
    subprocess.run(
        [MADE[0].python, "-c", EDIT, str(fixed), str(file)],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ours)},
    )
    spec = f"litert:worker={MADE[0].python},file={file}"
    verdict, _ = ask(tmp_path, MODEL, {"image": IMAGES[:4]}, spec, repro=True)
    assert (verdict.verdict, verdict.culprits[0].node) == ("local-fault", "/block2/conv1/Conv")
    assert "explains > 99 % of the output error" in step(verdict, "where does the target's own run go wrong?").answer
    assert verdict.repro is None  # the file does not run parts


def converted(path, folder):
    """Return the file that onnx2tf makes of a model with its defaults: images have their channels last."""
    shutil.copy(path, folder / "own.onnx")
    here = str(Path(MADE[0].python).parent)
    command = [MADE[0].python, "-m", "onnx2tf", "-i", "own.onnx", "-o", ".", "-n"]
    environment = {**os.environ, "PATH": here + os.pathsep + os.environ["PATH"]}
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    return folder / "own_float32.tflite"


@pytest.mark.slow
@pytest.mark.parametrize("side", [8, 3])
def test_a_file_with_channels_last_is_fed_so(tmp_path, side):
    """With three channels of 3 x 3 pixels no shape tells the layout, and results do."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,3,{side},{side}] x) => (float[1,4] y) {{
        [conv] a = Conv<pads = [1, 1, 1, 1]>(x, w)
        [relu] b = Relu(a)
        [mean] y = ReduceMean<axes = [2, 3], keepdims = 0>(b) }}"""
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    file = converted(tmp_path / "model.onnx", tmp_path)
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    feed = {"x": rng.standard_normal((1, 3, side, side)).astype(np.float32)}
    spec = f"litert:worker={MADE[0].python},file={file}"
    verdict, _ = ask(tmp_path / "right", tmp_path / "model.onnx", feed, spec)
    assert verdict.verdict == "match"
    told = step(verdict, "which data layout does the given file expect?").answer
    assert told.startswith("'x' with axes nhwc")
    assert ("no other order fits" in told) == (side == 8)
    content = file.read_bytes()
    held = np.moveaxis(weight, 1, -1)
    assert held.tobytes() in content
    file.write_bytes(content.replace(held.tobytes(), (held * np.float32(1.2)).tobytes()))
    verdict, _ = ask(tmp_path / "wrong", tmp_path / "model.onnx", feed, spec)
    assert (verdict.verdict, [each.node for each in verdict.culprits][:1]) == ("local-fault", ["conv"]), verdict


def test_the_users_file_is_left_alone(tmp_path):
    """The converter writes to the file that it is given, even where nothing in it changes."""
    path = with_input_shapes(Model.load(MODEL), {"image": (2, 1, 8, 8)}).save(tmp_path / "fixed.onnx")
    before = path.stat().st_mtime_ns
    ENGINE.compile(path, OPTIONS).close()
    assert path.stat().st_mtime_ns == before

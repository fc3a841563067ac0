"""Tensors are compared with the noise floor of the format that the target computes in."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from registered_engines import register
from stored_file import stored, write_file
from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.workflows.common.judged import HealthyJudge

PRODUCT = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4,64] x, float[64,16] w) => (float[4,16] y) { y = MatMul(x, w) }'
)


@pytest.fixture
def lab():
    with Lab() as made:
        yield made


def in_tf32(array):
    """Return float32 numbers rounded to the 10 bits of fraction that TF32 keeps of 23."""
    bits = array.view(np.uint32) + np.uint32(1 << 12)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize(("precision", "within", "basis"), [("tf32", True, Basis.FORMAT), ("fp32", False, Basis.FLOOR)])
def test_shortened_operands_are_allowed_to_a_target_in_tf32_alone(tmp_path, lab, precision, within, basis):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 64), np.float32), rng.standard_normal((64, 16), np.float32)
    exact, shortened = (np.float32(np.float64(a) @ np.float64(b)) for a, b in ((x, w), (in_tf32(x), in_tf32(w))))
    path, script = tmp_path / "m.onnx", tmp_path / "engine.py"
    onnx.save(onnx.parser.parse_model(PRODUCT), path)
    script.write_text("class Engine:\n    def compile(self, model, options):\n        raise NotImplementedError\n")
    judge = HealthyJudge(
        Model.load(path),
        reference=EngineSpec("onnxruntime", {"optimization": "none"}),
        target=EngineSpec("script", {"file": str(script), "precision": precision}),
        lab=lab,
    )
    feed = Feed("feed", {"x": x, "w": w}, Origin.REAL)
    judged = judge.judge(feed, {"y": measure(exact, shortened)}, {"y": exact})["y"]
    assert (judged.within, judged.basis) == (within, basis)


@pytest.mark.parametrize(
    ("target", "within", "basis"),
    [
        (EngineSpec("tensorrt", {"precision": "fp16"}), True, Basis.HARDWARE),
        (EngineSpec("openvino", {"precision": "fp16", "device": "NPU"}), True, Basis.HARDWARE),
        (EngineSpec("openvino", {"precision": "fp16"}), False, Basis.FORMAT),
        (EngineSpec("tensorrt", {"precision": "fp32"}), False, Basis.FLOOR),
    ],
    ids=str,
)
def test_sums_in_float16_are_allowed_to_hardware_that_keeps_them_so(tmp_path, lab, target, within, basis):
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((4, 768), (768, 16)))
    total = np.zeros((4, 16), np.float16)
    for start in range(0, 768, 16):  # as TensorRT 8.5.3 adds up on a GPU, see fp16-accumulator
        part = slice(start, start + 16)
        total = np.float16(total + np.float16(x)[:, part].astype(np.float32) @ np.float16(w)[part].astype(np.float32))
    exact = np.float32(np.float64(x) @ np.float64(w))
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(PRODUCT.replace("64", "768")), path)
    judge = HealthyJudge(
        Model.load(path),
        reference=EngineSpec("onnxruntime", {"optimization": "none"}),
        target=target,
        lab=lab,
    )
    feed = Feed("feed", {"x": x, "w": w}, Origin.REAL)
    figure = measure(exact, np.float32(total))
    judged = judge.judge(feed, {"y": figure}, {"y": exact})["y"]
    assert (judged.within, judged.basis) == (within, basis)
    tripled = measure(exact, np.float32(exact + 3 * (total - exact)))
    assert not judge.judge(feed, {"y": tripled}, {"y": exact})["y"].within


@pytest.mark.parametrize(
    ("weight", "computed", "narrow", "within", "basis"),
    [
        (1.0, 1.0, [], True, Basis.FORMAT),  # the model's weight, rounded to the scales of the file
        (1.02, 1.02, [], False, Basis.FLOOR),  # another weight, by less than int8 might cost anywhere
        (1.0, 1.005, [], False, Basis.FORMAT),  # the weight is right, and the engine is not
        (1.005, 1.005, None, True, Basis.FORMAT),  # integers throughout: judged by the format
    ],
)
def test_a_file_of_integers_may_lose_what_its_own_weights_cost(
    tmp_path, monkeypatch, lab, weight, computed, narrow, within, basis
):
    register(monkeypatch, tmp_path, stored="stored_file:StoredFile")
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 64), np.float32), rng.standard_normal((64, 16), np.float32)
    message = onnx.parser.parse_model(PRODUCT.replace(", float[64,16] w)", ")").replace("{ y", "<float[64,16] w> { y"))
    message.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.save(message, tmp_path / "m.onnx")
    numbers, step = stored(w * np.float32(weight))
    held = {"w": numbers * computed / weight}
    file = write_file(tmp_path / "file.onnx", message, {"w": (numbers, step)}, narrow=narrow, computed=held)
    judge = HealthyJudge(
        Model.load(tmp_path / "m.onnx"),
        reference=EngineSpec("onnxruntime", {"optimization": "none"}),
        target=EngineSpec("stored", {"file": str(file), "precision": "int8"}),
        lab=lab,
    )
    exact, given = (np.float32(np.float64(x) @ np.float64(a)) for a in (w, held["w"]))
    judged = judge.judge(Feed("feed", {"x": x}, Origin.REAL), {"y": measure(exact, given)}, {"y": exact})["y"]
    assert (judged.within, judged.basis) == (within, basis)

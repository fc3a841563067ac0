"""Tensors are held against the noise floor of the format that the target computes in."""

import numpy as np
import onnx
import pytest

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.workflows.common.noise_floor_judge import FloorJudge

PRODUCT = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4,64] x, float[64,16] w) => (float[4,16] y) { y = MatMul(x, w) }'
)


def in_tf32(array):
    """Return float32 numbers rounded to the 10 bits of fraction that TF32 keeps of 23."""
    bits = array.view(np.uint32) + np.uint32(1 << 12)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


@pytest.mark.parametrize(("precision", "within", "basis"), [("tf32", True, Basis.FORMAT), ("fp32", False, Basis.FLOOR)])
def test_shortened_operands_are_allowed_to_a_target_in_tf32_alone(tmp_path, precision, within, basis):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((4, 64), np.float32), rng.standard_normal((64, 16), np.float32)
    exact, shortened = (np.float32(np.float64(a) @ np.float64(b)) for a, b in ((x, w), (in_tf32(x), in_tf32(w))))
    path, script = tmp_path / "m.onnx", tmp_path / "engine.py"
    onnx.save(onnx.parser.parse_model(PRODUCT), path)
    script.write_text("class Engine:\n    def compile(self, model, options):\n        raise NotImplementedError\n")
    judge = FloorJudge(
        Model.load(path),
        reference=EngineSpec("onnxruntime", {"optimization": "none"}),
        target=EngineSpec("script", {"file": str(script), "precision": precision}),
        folder=tmp_path,
    )
    feed = Feed("feed", {"x": x, "w": w}, Origin.REAL)
    judged = judge.judge(feed, {"y": measure(exact, shortened)}, {"y": exact})["y"]
    assert (judged.within, judged.basis) == (within, basis)

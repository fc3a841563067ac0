"""A mask that absorbs what it is added to: fp32 engines agree about it, float64 does not, and neither may hide a fault.

``x + -1e9`` is -1e9 in float32 whatever x is, so that a Softmax over a masked row gives equal weights; float64 keeps x.
An evaluation in float64 is 7.5e-2 away from every engine then, which used to be the floor.
"""

import numpy as np
import pytest
from onnx import numpy_helper

from diagnosing import ask, named

pytestmark = pytest.mark.lengthy

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[6, 16] x, float[6, 8] mask) => (float[6, 4] y)
  <int64[1] starts = {2}, int64[1] ends = {10}, int64[1] axes = {1}> {
    scores = MatMul(x, w)
    part = Slice(scores, starts, ends, axes)
    masked = Add(part, mask)
    weights = Softmax<axis = 1>(masked)
    y = MatMul(weights, v)
}"""
ENGINE = """
from tensortriage_testing import SimulatedAccelerator as Engine
"""


def model():
    rng = np.random.default_rng(2)
    made = named(MODEL, "scores", "cut", "mask", "softmax", "sum")
    for name, shape in (("w", (16, 12)), ("v", (8, 4))):
        made.graph.initializer.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
    return made


def feed():
    mask = np.zeros((6, 8), np.float32)
    mask[4] = -1e9  # a whole row, as for a padded token
    return {"x": np.random.default_rng(3).normal(size=(6, 16)).astype(np.float32), "mask": mask}


@pytest.mark.parametrize("target", ["onnxruntime", "openvino:precision=fp32", "emulate:precision=bf16"])
def test_healthy_engines_pass(tmp_path, target):
    if target.startswith("openvino"):
        pytest.importorskip("openvino")
    verdict, _ = ask(tmp_path, model(), feed(), target, random_too=False)
    assert verdict.verdict in ("match", "rounding"), verdict.summary


@pytest.mark.parametrize(
    ("options", "verdicts", "node"),
    [
        ("kind=off-by-one,node=cut", ("local-fault", "layout"), "cut"),
        ("kind=noise,node=scores,amount=0.02", ("local-fault",), "scores"),
        ("kind=nondeterministic,node=scores,amount=0.02", ("nondeterministic-run",), "scores"),
    ],
    ids=["slice-off-by-one", "noise", "noise-per-run"],
)
def test_faults_behind_it_are_found(tmp_path, options, verdicts, node):
    (tmp_path / "engine.py").write_text(ENGINE)
    target = f"script:{tmp_path / 'engine.py'},{options}"
    verdict, _ = ask(tmp_path, model(), feed(), target, random_too=False)
    assert verdict.verdict in verdicts, verdict.summary
    assert verdict.culprits[0].node == node

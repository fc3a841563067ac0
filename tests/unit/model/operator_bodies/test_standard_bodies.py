"""Composite operators in the steps that ONNX's bodies give them."""

import numpy as np
import onnx
from onnx import parser

from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.model.model import Model
from tensortriage.model.operator_bodies.replace_nodes import with_bodies

TYPES = "float[1,2,4,8]"
TWO = f"""<ir_version: 10, opset_import: ["" : 23]>
g ({TYPES} q, {TYPES} k, {TYPES} v) => ({TYPES} y) {{ h = Attention(q, k, v)  y = Attention(h, k, v) }}"""


def made(tmp_path):
    onnx.save(parser.parse_model(TWO), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def run(path, **options):
    random = np.random.default_rng(0)
    feed = {name: random.standard_normal((1, 2, 4, 8), np.float32) for name in "qkv"}
    return Float64Engine().compile(path, options).run(feed)["y"]


def test_values_keep_their_names_and_bodies_compute_the_same(tmp_path):
    path = made(tmp_path)
    written = with_bodies(Model.load(path))
    kinds = [node.op_type for node in written.graph.nodes]
    assert "Attention" not in kinds
    assert kinds.count("Softmax") == 2
    names = [value for node in written.graph.nodes for value in node.outputs if value]
    assert len(set(names)) == len(names)
    assert {"h", "y"} <= set(names)
    np.testing.assert_allclose(run(written.save(tmp_path / "written.onnx")), run(path), rtol=1e-6)  # scales in float32


def test_a_model_without_them_is_handed_on(tmp_path):
    model = Model.load(made(tmp_path))
    assert with_bodies(written := with_bodies(model)) is written
    assert "Attention" in [node.op_type for node in model.graph.nodes]


def test_a_format_and_approximations_show_inside(tmp_path):
    path = made(tmp_path)
    exact = run(path)

    def off(**options):
        return float(np.sqrt(np.mean((run(path, rounding="results", **options) - exact) ** 2) / np.mean(exact**2)))

    rounded, biased = off(format="fp16"), off(format="fp16", functions="npu", seed="2")
    assert off() < 1e-7 < 1e-4 < rounded < 2e-3  # half a unit of fp16 is 2.4e-4
    assert 2 * rounded < biased < 0.01  # a factor of 1.02 stays a fault


def test_operands_before_the_last_may_be_left_out(tmp_path):
    """ONNX's own inliner asks for their types, and fails."""
    text = f"""<ir_version: 10, opset_import: ["" : 24]>
      g ({TYPES} q, {TYPES} k, {TYPES} v, int64[1] n) => ({TYPES} y) {{
        y = Attention<is_causal = 1>(q, k, v, , , , n) }}"""
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    model = Model.load(tmp_path / "m.onnx")
    written = with_bodies(model)
    assert "Attention" not in [node.op_type for node in written.graph.nodes]
    random = np.random.default_rng(0)
    feed = {name: random.standard_normal((1, 2, 4, 8), np.float32) for name in "qkv"} | {"n": np.array([4])}
    found = Float64Engine().compile(written.save(tmp_path / "written.onnx"), {}).run(feed)["y"]
    scores = np.einsum("bhqd,bhkd->bhqk", *(feed[name].astype(np.float64) for name in "qk")) / np.sqrt(8)
    scores[..., np.triu(np.ones((4, 4), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, weights @ feed["v"], rtol=1e-5)

"""Random data on which a healthy engine only takes a freedom of its hardware are no reason to call it sensitive."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from diagnosing import ask, step
from tensortriage.testing import feed_for, mlp, quantized

QUESTION = "does the target fail on random data as well?"


def diagnosed(tmp_path, hardware):
    """Diagnose a product with operands in TF32 (11 bits): the real data are small whole numbers, which it holds."""
    (tmp_path / "accelerator.py").write_text("from tensortriage.testing import SimulatedAccelerator as Engine\n")
    w = np.random.default_rng(0).integers(-8, 9, (32, 16)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16])],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    target = f"script:{tmp_path / 'accelerator.py'},operands=tf32,hardware={hardware}"
    verdict, _ = ask(tmp_path, model, {"x": np.arange(32, dtype=np.float32)[None] - 16}, target)
    return verdict


def test_a_gpu_may_shorten_the_operands_of_random_data(tmp_path):
    verdict = diagnosed(tmp_path, "gpu")
    assert verdict.verdict == "match", verdict.summary
    assert step(verdict, QUESTION).answer == "no: they pass too"


def test_a_cpu_that_fails_on_random_data_only_is_sensitive(tmp_path):
    verdict = diagnosed(tmp_path, "cpu")
    assert verdict.verdict == "input-sensitive", verdict.summary


def test_integer_arithmetic_that_shows_on_random_data_only_is_none_of_it(tmp_path):
    """ONNX Runtime rounds biases to int32; on the real data of this model that moves nothing, on random data a step."""
    model = mlp(seed=5)
    verdict, _ = ask(tmp_path, quantized(model, feed_for(model)), feed_for(model), "onnxruntime")
    assert verdict.verdict == "match", verdict.summary
    assert step(verdict, QUESTION).answer.startswith("no: integer arithmetic explains their error")

"""One integer kernel for DequantizeLinear, Softmax and QuantizeLinear cuts off where these round: no fault."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from diagnosing import ask, step
from tensortriage.compare.judgement.within import cuts_off
from tensortriage.diagnose.rungs.fusion.integer_kernels import QUESTION


@pytest.mark.parametrize(
    ("steps", "fine"),
    [([0, -1, 0, 0], True), ([0, -1, 1, 0], True), ([-1, -1, -1, 0], False), ([0, 0, 0, 2], False)],
)
def test_one_step_in_half_of_the_results_is_cut_off(steps, fine):
    assert cuts_off(np.array(steps, np.int64)) is fine


def quantized_softmax():
    def pair(value, name):
        return [
            helper.make_node("QuantizeLinear", [value, f"{name}_scale", f"{name}_zero"], [f"{name}_q"], f"{name}/q"),
            helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_scale", f"{name}_zero"], [name], f"{name}/dq"),
        ]

    softmax = helper.make_node("Softmax", ["scores"], ["soft"], "softmax")
    mix = helper.make_node("MatMul", ["shares", "w"], ["y"], "mix")
    nodes = [*pair("x", "scores"), softmax, *pair("soft", "shares"), mix]
    weight = np.random.default_rng(1).standard_normal((16, 4)).astype(np.float32)
    constants = {"scores_scale": np.float32(0.05), "scores_zero": np.uint8(128), "shares_scale": np.float32(1 / 255),
                 "shares_zero": np.uint8(0), "w": weight}  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [64, 16])],
        [helper.make_tensor_value_info("y", 1, [64, 4])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
def test_an_integer_softmax_is_no_fusion_fault(tmp_path):
    feed = {"x": np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)}
    verdict, _ = ask(tmp_path, quantized_softmax(), feed, "onnxruntime", random_too=False)
    assert verdict.verdict == "rounding", verdict.summary
    assert step(verdict, QUESTION).evidence["largest_step"] == 1
    assert "'softmax'" in verdict.summary

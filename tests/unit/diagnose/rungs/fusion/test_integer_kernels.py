"""One integer kernel for DequantizeLinear, Softmax and QuantizeLinear cuts off where these round: no fault."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

from diagnosing import ask, step
from engine_scripts import engine_file
from tensortriage.compare.judgement.within import always_cuts_off, cuts_off
from tensortriage.diagnose.rungs.fusion.integer_kernels import QUESTION, SOFTMAX_SHARE, in_units


@pytest.mark.parametrize(
    ("steps", "fine"),
    [([0, -1, 0, 0], True), ([0, -1, 1, 0], True), ([-1, -1, -1, 0], False), ([0, 0, 0, 2], False)],
)
def test_one_step_in_half_of_the_results_is_cut_off(steps, fine):
    assert cuts_off(np.array(steps, np.int64)) is fine


NUMBERS = np.random.default_rng(0).uniform(-20.0, 20.0, 400)
ROUNDED = np.rint(NUMBERS).astype(np.int64)


@pytest.mark.parametrize(
    ("found", "always"),
    [
        (np.floor(NUMBERS), True),
        (np.trunc(NUMBERS), True),
        (ROUNDED, False),
        (np.rint(NUMBERS * 255 / 256 - 0.3), False),
        (np.where(np.arange(400) % 2, ROUNDED, np.floor(NUMBERS)), False),
    ],
    ids=["downwards", "towards zero", "rounded", "another factor", "half of them"],
)
def test_what_never_rounds_is_told_from_what_rounds_otherwise(found, always):
    assert always_cuts_off(found.astype(np.int64), ROUNDED, NUMBERS, NUMBERS) is always


def test_a_softmax_of_two_takes_half_a_step_less_of_each():
    shares = np.random.default_rng(0).uniform(105.0, 150.0, 200)
    numbers = np.concatenate([shares, 255.0 - shares])
    found, rounded = (np.rint(each).astype(np.int64) for each in (numbers * SOFTMAX_SHARE, numbers))
    assert always_cuts_off(found, rounded, numbers, numbers)
    assert not always_cuts_off(found, rounded, numbers, numbers * SOFTMAX_SHARE)
    assert always_cuts_off(np.floor(numbers).astype(np.int64), rounded, numbers, numbers * SOFTMAX_SHARE)


def test_nor_do_whole_numbers_or_those_beyond_the_range_tell():
    below = np.arange(400) - 1e-5
    assert not always_cuts_off(np.arange(400), np.arange(400), below, below)
    assert not always_cuts_off(np.full(400, 255), np.full(400, 255), NUMBERS + 300.7, NUMBERS)


def model_of(nodes, constants):
    """Return the message of a model of 64 rows, from 16 numbers of x to 4 of y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [64, 16])],
        [helper.make_tensor_value_info("y", 1, [64, 4])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pair(value, name):
    return [
        helper.make_node("QuantizeLinear", [value, f"{name}_scale", f"{name}_zero"], [f"{name}_q"], f"{name}/q"),
        helper.make_node("DequantizeLinear", [f"{name}_q", f"{name}_scale", f"{name}_zero"], [name], f"{name}/dq"),
    ]


def quantized_softmax():
    softmax = helper.make_node("Softmax", ["scores"], ["soft"], "softmax")
    mix = helper.make_node("MatMul", ["shares", "w"], ["y"], "mix")
    nodes = [*pair("x", "scores"), softmax, *pair("soft", "shares"), mix]
    weight = np.random.default_rng(1).standard_normal((16, 4)).astype(np.float32)
    constants = {"scores_scale": np.float32(0.05), "scores_zero": np.uint8(128), "shares_scale": np.float32(1 / 255),
                 "shares_zero": np.uint8(0), "w": weight}  # fmt: skip
    return model_of(nodes, constants)


@pytest.mark.slow
def test_an_integer_softmax_is_no_fusion_fault(tmp_path):
    feed = {"x": np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)}
    verdict, _ = ask(tmp_path, quantized_softmax(), feed, "onnxruntime", random_too=False)
    assert (verdict.verdict, verdict.allowed_by) == ("rounding", ("softmax-steps",))


CUTTING = """
import onnx
from onnx import helper
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine

class Engine:
    def compile(self, model, options):
        changed = onnx.load(model)
        made = {name: node for node in changed.graph.node for name in node.output}
        shown = {value.name for value in changed.graph.output}
        nodes = []
        for node in changed.graph.node:
            inner = made.get(node.input[0])
            if node.op_type == "QuantizeLinear" and inner is not None and inner.op_type == "Resize":
                first = made.get(inner.input[0])
                apart = first is None or {*first.output, *inner.output} & shown
                if not apart and first.op_type == "DequantizeLinear":
                    steps, scale = node.output[0] + "/steps", node.input[1]
                    nodes += [
                        helper.make_node("Div", [node.input[0], scale], [steps]),
                        helper.make_node("Floor", [steps], [steps + "/whole"]),
                        helper.make_node("Mul", [steps + "/whole", scale], [steps + "/cut"]),
                    ]
                    node.input[0] = steps + "/cut"
            nodes.append(node)
        del changed.graph.node[:]
        changed.graph.node.extend(nodes)
        onnx.save(changed, model.with_name("cut.onnx"))
        return OnnxRuntimeEngine().compile(model.with_name("cut.onnx"), {"optimization": "none"})
"""
"""A linear Resize between quantizers is one kernel of integers, which cuts off (onnxruntime#28448)."""


@pytest.mark.lengthy
@pytest.mark.slow
@pytest.mark.parametrize("zero", [np.uint8(128), np.int8(0)], ids=["uint8", "int8"])
def test_an_integer_resize_that_never_rounds_is_named(tmp_path, zero):
    constants = {"small_scale": np.float32(0.02), "large_scale": np.float32(0.02), "small_zero": zero,
                 "large_zero": zero, "sizes": np.array([64, 32]), "w": np.ones((32, 4), np.float32)}  # fmt: skip
    resize = helper.make_node("Resize", ["small", "", "", "sizes"], ["wide"], "resize", mode="linear")
    mix = helper.make_node("MatMul", ["large", "w"], ["y"], "mix")
    model = model_of([*pair("x", "small"), resize, *pair("wide", "large"), mix], constants)
    file = engine_file(CUTTING)
    feed = {"x": np.random.default_rng(0).uniform(-2, 2, (64, 16)).astype(np.float32)}
    verdict, _ = ask(tmp_path, model, feed, f"script:{file}", random_too=False)
    assert verdict.verdict == "fusion-fault", verdict.summary
    assert {"resize", "large/q"} <= {culprit.node for culprit in verdict.culprits}
    assert "is cut off everywhere" in step(verdict, QUESTION).answer


class Feeds(CalibrationDataReader):
    def __init__(self):
        self._seeds = iter(range(3))

    def get_next(self):
        seed = next(self._seeds, None)
        return None if seed is None else {"x": drawn(seed)}


def drawn(seed):
    return np.random.default_rng(seed).standard_normal((64, 16)).astype(np.float32)


def router():
    """Product, Softmax, the four largest shares, product: the choice of experts."""
    random = np.random.default_rng(1)
    constants = {"a": random.standard_normal((16, 16)).astype(np.float32), "four": np.array([4]),
                 "w": random.standard_normal((4, 4)).astype(np.float32)}  # fmt: skip
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["scores"], "project"),
        helper.make_node("Softmax", ["scores"], ["soft"], "softmax"),
        helper.make_node("TopK", ["soft", "four"], ["largest", "places"], "pick"),
        helper.make_node("MatMul", ["largest", "w"], ["y"], "mix"),
    ]
    return model_of(nodes, constants)


@pytest.mark.lengthy
@pytest.mark.slow
def test_nor_is_one_whose_integers_are_seen_behind_a_dequantizer(tmp_path):
    onnx.save(router(), tmp_path / "float.onnx")
    # In 7 bits no kernel has to cut sums off, whatever the processor.
    quantize_static(tmp_path / "float.onnx", tmp_path / "quantized.onnx", Feeds(), reduce_range=True)
    verdict, _ = ask(tmp_path, onnx.load(tmp_path / "quantized.onnx"), {"x": drawn(9)}, "onnxruntime", random_too=False)
    assert (verdict.verdict, verdict.allowed_by) == ("rounding", ("softmax-steps",))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_is_dequantized_is_a_number_of_steps(dtype):
    """An integer times its scale, rounded once; a number between two steps is none."""
    unit = np.dtype(dtype).type(0.0123)
    steps = np.arange(-128, 128)
    assert np.array_equal(in_units((steps.astype(dtype) * unit).astype(dtype), float(unit)), steps)
    assert in_units(np.array([10.4], dtype) * unit, float(unit)) is None

"""Reasons, settings of other tools, and the share of work, from models whose numbers are written here."""

import json

import numpy as np
import pytest
from onnx import helper

from models import of_nodes, parse
from tensortriage.precision.low_precision_work import low_share
from tensortriage.precision.reasons import reason_for
from tensortriage.precision.tool_settings import settings_for
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

GRAPH = """
    g (float[2] x) => (float[2] y) {
        [square] a = Mul(x, x)
        [root] b = Sqrt(a)
        [minus] c = Sub(b, x)
        [keep] y = Tanh(c)
    }"""


def f32(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("node", "values", "words"),
    [
        ("square", {"a": f32(3e5, 1.0)}, "max 300,000 > 65,504"),
        ("root", {"a": f32(3e5, 1.0), "b": f32(500.0, 1.0)}, "operand 'a' reaches 300,000 > 65,504"),
        ("square", {"a": f32(1e-6, 1.0)}, "50 % of its result is below 6.1e-05"),
        ("minus", {"b": f32(900.0, 800.0), "x": f32(900.5, 799.5), "c": f32(-0.5, 0.5)}, "cancellation"),
        ("keep", {"c": f32(0.5, 0.25), "y": f32(0.4, 0.2)}, ""),
        ("keep", {"c": f32(np.inf, 0.25), "y": f32(1.0, 0.2)}, ""),  # an infinity fits every format
    ],
)
def test_reasons(node, values, words):
    graph = parse(GRAPH).graph
    found = reason_for(graph.node(node), values, graph, Precision.FP16)
    assert found.startswith(words)
    assert bool(found) is bool(words)


TURNS = """
    g (int64[2] ids) => (float[2] y) {
        [cast] a = Cast <to = 1> (ids)
        [angle] b = Mul(a, a)
        [sin] y = Sin(b)
    }"""


@pytest.mark.parametrize(
    ("node", "values", "words"),
    [
        ("cast", {"a": f32(1001.0, 1002.0)}, "whole numbers up to 1,002; bf16 has all only up to 256"),
        ("cast", {"a": f32(1000.0, 1004.0)}, ""),  # multiples of 4 are exact below 1024
        ("angle", {"a": f32(1.5, 2.5), "b": f32(3001.0, 0.1)}, "angles up to 3,001 rad, off by up to 8 rad in bf16"),
        ("sin", {"b": f32(3001.0, 0.1), "y": f32(0.5, 0.1)}, "angles up to 3,001 rad, off by up to 8 rad in bf16"),
        ("sin", {"b": f32(3.0, 0.1), "y": f32(0.1, 0.1)}, ""),
    ],
)
def test_reasons_of_positions(node, values, words):
    """bf16 has 8 significant bits: between 2048 and 4096 its numbers are 16 apart, and rounding is off by 8 at most."""
    graph = parse(TURNS).graph
    assert reason_for(graph.node(node), values, graph, Precision.BF16) == words


def test_a_constant_beyond_the_range():
    nodes = [helper.make_node("Mul", ["x", "big"], ["y"], name="mask")]
    model = of_nodes(nodes, inputs={"x": (1,)}, outputs={"y": (1,)}, initializers={"big": f32(-1e9)})
    found = reason_for(model.graph.node("mask"), {"x": f32(0.0), "y": f32(0.0)}, model.graph, Precision.FP16)
    assert found == "constant 'big' reaches 1 billion > 65,504"
    assert reason_for(model.graph.node("mask"), {"x": f32(0.0)}, model.graph, Precision.BF16) == ""


def test_settings_name_the_nodes_in_the_words_of_each_tool():
    graph = parse(GRAPH).graph
    found = settings_for(graph, ["minus", "square"], Precision.FP16)
    assert found["tensorrt"] == "--fp16 --precisionConstraints=obey --layerPrecisions=square:fp32,minus:fp32"
    lists = json.loads(found["onnxconverter-common"])
    assert lists == {"node_block_list": ["square", "minus"], "op_block_list": ["Mul", "Sub"]}
    assert found["modelopt"] == "--low_precision_type fp16 --nodes_to_exclude ^square$ ^minus$"
    assert found["triage"] == "--precision fp16 --keep-nodes square minus"
    assert json.loads(found["openvino"]) == {"INFERENCE_PRECISION_HINT": "dynamic"}


def test_an_operator_of_which_one_node_is_not_kept_is_no_block_list():
    graph = parse("g (float[2] x) => (float[2] y) { [one] a = Exp(x) [two] y = Exp(a) }").graph
    assert json.loads(settings_for(graph, ["one"], Precision.BF16)["onnxconverter-common"])["op_block_list"] == []


def test_the_share_of_work_counts_multiplications():
    graph = parse("g (float[4,8] x, float[8,2] w, float[2,6] v) => (float[4,6] y) {"
                  " [small] a = MatMul(x, w) [large] y = MatMul(a, v) }").graph  # fmt: skip
    shapes = {"x": (4, 8), "w": (8, 2), "v": (2, 6), "a": (4, 2), "y": (4, 6)}
    specs = {name: ValueSpec(name, None, shape) for name, shape in shapes.items()}
    assert low_share(graph, specs, ["small"]) == pytest.approx(48 / (64 + 48))
    assert low_share(graph, specs, []) == 1.0
    assert low_share(graph, {**specs, "a": ValueSpec("a", None, None)}, []) is None

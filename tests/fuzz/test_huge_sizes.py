"""A node that stands for a million million numbers: every command answers, in little memory."""

import pytest

import models
from hostile.command_lines import WRITTEN

NODES = {
    "ConstantOfShape": "<int64[1] n = {1000000000000}> { big = ConstantOfShape(n)",
    "Expand": "<int64[2] n = {1000000000000, 2}> { big = Expand(x, n)",
    "Tile": "<int64[1] n = {1000000000000}> { big = Tile(x, n)",
    "Range": "<int64 a = {0}, int64 n = {1000000000000}, int64 c = {1}> { r = Range(a, n, c) big = Cast<to = 1>(r)",
}
TARGET = ["--target", "emulate:precision=fp16", "--budget", "20"]
COMMANDS = {
    "inspect": ["inspect", "model", "m.onnx", "--show", "layers", "weights"],
    "lint": ["check", "lint", "m.onnx"],
    "run": ["run", "m.onnx", "--target", "onnxruntime", "--onnx-outputs", "mark", "all"],
    "float64": ["run", "m.onnx", "--target", "float64"],
    "sanitize": ["surgeon", "sanitize", "m.onnx", "--fold-constants", "-o", "o.onnx"],
    "extract": ["surgeon", "extract", "m.onnx", "--op-types", "Add", "--with-inputs", "random", "-o", "o.onnx"],
    "convert": ["convert", "m.onnx", "--precision", "fp16", "-o", "o.onnx"],
    "quantize": ["convert", "m.onnx", "--int8", "-o", "o.onnx"],
    "diagnose": ["diagnose", "m.onnx", *TARGET],
    "reduce": ["debug", "reduce", "m.onnx", "-o", "o.onnx", *TARGET],
    "precision": ["debug", "precision", "m.onnx", "-o", "o.onnx", *TARGET],
}  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_node_of_huge_dimensions(commands, words):
    for op, node in NODES.items():
        text = f"g (float[2] x) => (float[2] y) {node} s = ReduceMax<keepdims = 0>(big) y = Add(x, s) }}"
        ended = commands.run(words, {"m.onnx": models.proto(text).SerializeToString()})
        assert not ended.faults(WRITTEN), f"{op}: {ended}"
        assert ended.peak_bytes < 1 << 30, op


@pytest.mark.lengthy
@pytest.mark.parametrize("size", [2**31, 2**40, 2**62])
def test_an_input_of_huge_dimensions(commands, size):
    model = models.proto("g (uint8[2] x) => (float[] y) { f = Cast<to = 1>(x) y = ReduceMax<keepdims = 0>(f) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = size
    for words in (COMMANDS["run"], COMMANDS["convert"], COMMANDS["diagnose"]):
        ended = commands.run(words, {"m.onnx": model.SerializeToString()})
        assert not ended.faults(WRITTEN), ended
        assert ended.peak_bytes < 1 << 30


@pytest.mark.parametrize(
    "words", [["froboz"], ["debug", "froboz"], ["surgeon", "froboz"], ["inspect", "x"], ["check"], ["data", "-x"], []]
)
def test_an_unknown_command_is_told(commands, words):
    ended = commands.run(words)
    assert (ended.code, ended.faults()) == (2, []) or (words in ([], ["check"]) and ended.code == 2), ended

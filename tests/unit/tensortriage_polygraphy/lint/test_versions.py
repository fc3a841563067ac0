"""Softmax before and after opset 13 (onnx.ai, Softmax-11 and -13), LayerNormalization before 17."""

import pytest

from lint_models import found


def softmax(opset, shape, axis=None, kind="Softmax"):
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[{shape}] x) => (float[{shape}] y) {{ [sm] y = {kind} {attribute} (x) }}"""


@pytest.mark.parametrize(
    ("opset", "shape", "axis", "slug"),
    [
        (11, "2, 3, 4", None, "softmax-flattened"),
        (11, "2, 3, 4", 1, "softmax-flattened"),
        (11, "2, 3, 4", -1, None),
        (11, "2, 3", None, None),
        (9, "1, 1000, 1, 1", 1, None),
        (11, "2, 3, n", 1, "softmax-flattened"),
        (13, "2, 3, 4", 1, None),
        (13, "2, 1024, 4", 1, "softmax-inner-axis"),
        (13, "2, 1024, 1", 1, None),
        (13, "2, 3, 4096", None, None),
    ],
)
def test_softmax(opset, shape, axis, slug):
    assert found(softmax(opset, shape, axis)) == ([] if slug is None else [(slug, "hint", "sm")])


def test_log_softmax_too():
    assert found(softmax(11, "2, 3, 4", kind="LogSoftmax"))[0][0] == "softmax-flattened"


@pytest.mark.parametrize(("opset", "count"), [(16, 1), (17, 0)])
def test_layer_normalization(opset, count):
    text = f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[2, 3] x) => (float[2, 3] y) <float[3] s = {{1, 1, 1}}> {{ [ln] y = LayerNormalization(x, s) }}"""
    rows = [row for row in found(text) if row[0] != "onnx-checker"]
    assert rows == [("layernorm-before-opset-17", "problem", "ln")] * count

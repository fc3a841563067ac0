"""BatchNormalization-1, -7 and -14, Dropout-1, -7 and -12 (onnx.ai, operator changelog): who says that it trains."""

import pytest

from lint_models import found

NORM = "x, s, b, m, v"
WEIGHTS = "<float[3] s = {1, 1, 1}, float[3] b = {0, 0, 0}, float[3] m = {0, 0, 0}, float[3] v = {1, 1, 1}>"


def norm(opset, attribute="", outputs="y"):
    return f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[2, 3] x) => (float[2, 3] y) {WEIGHTS} {{
            [bn] {outputs} = BatchNormalization {attribute} ({NORM}) }}"""


def trained(rows):
    return [row for row in rows if row[0].endswith("in-training")]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (norm(15), 0),
        (norm(15, "<training_mode = 0>"), 0),
        (norm(15, "<training_mode = 1>"), 1),
        (norm(15, "<training_mode = 1>", "y, mean, var"), 1),
        (norm(9), 0),
        (norm(9, outputs="y, mean, var, saved, saved_var"), 1),
        (norm(6, "<is_test = 1>"), 0),
        (norm(6), 1),
    ],
)
def test_batch_normalization(text, count):
    assert trained(found(text)) == [("batchnorm-in-training", "problem", "bn")] * count


def dropout(
    opset, operands="x", attribute="", constants="bool on = {1}, bool off = {0}, float half = {0.5}, float none = {0}"
):
    return f"""
        <ir_version: 8, opset_import: ["": {opset}]>
        g (float[2, 3] x) => (float[2, 3] y) <{constants}> {{ [drop] y = Dropout {attribute} ({operands}) }}"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (dropout(13), 0),
        (dropout(13, "x, half"), 0),
        (dropout(13, "x, half, off"), 0),
        (dropout(13, "x, half, on"), 1),
        (dropout(13, "x, , on"), 1),
        (dropout(13, "x, none, on"), 0),
        (dropout(10), 0),
        (dropout(6), 1),
        (dropout(6, attribute="<is_test = 1>"), 0),
    ],
)
def test_dropout(text, count):
    assert trained(found(text)) == [("dropout-in-training", "problem", "drop")] * count


def test_in_a_body():
    rows = found(f"""
        <ir_version: 8, opset_import: ["": 15]>
        g (bool c, float[2, 3] x) => (float[2, 3] y) {WEIGHTS} {{
            y = If (c) <then_branch = t () => (float[2, 3] t) {{
                            [inner] t = BatchNormalization <training_mode = 1> ({NORM}) }},
                        else_branch = e () => (float[2, 3] e) {{ e = Neg(x) }}> }}""")
    assert trained(rows) == [("batchnorm-in-training", "problem", "inner")]

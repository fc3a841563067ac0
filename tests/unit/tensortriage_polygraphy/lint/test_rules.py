"""The table of rules, bodies and functions, and that healthy models raise no alarm."""

import re
from pathlib import Path

import onnx
import pytest

import models
from lint_models import FP16, findings, found
from running_cli import EXAMPLES, REPOSITORY
from tensortriage.model.io.parse import Message, read_message
from tensortriage.model.lint.finding import Aims
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision
from tensortriage_polygraphy.lint.node_build_check import SLUGS as ENGINE_SLUGS
from tensortriage_polygraphy.lint.rules import SLUGS, lint

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
HEALTHY = [*LIGHT, *(EXAMPLES / f"{name}.onnx" for name in ("digits_vit", "digits_cnn", "openvino_crash"))]
BODY = """
    g (bool c, float[2] x) => (float[2] y) <float[1] m = {-1e9}> {
        [i] y = If (c) <then_branch = yes () => (float[2] a) { [inner] a = Mul(x, m) },
                        else_branch = no () => (float[2] b) { b = Identity(x) }> }"""


def test_every_rule_is_documented_and_nothing_else():
    text = (REPOSITORY / "docs/lint.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### `([a-z0-9-]+)`$", text, re.MULTILINE)
    assert sorted(sections) == sorted({**SLUGS, **ENGINE_SLUGS})
    assert len(sections) == len({*sections})


def test_every_rule_is_tested():
    folder = Path(__file__).parent
    training = folder.parents[1] / "model/lint/test_training.py"
    text = "".join(path.read_text() for path in (*folder.glob("test_*.py"), training))
    assert [slug for slug in {**SLUGS, **ENGINE_SLUGS} if f'"{slug}"' not in text] == []


@pytest.mark.lengthy
@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "aims", [Aims(), Aims(frozenset({Precision.FP16, Precision.BF16}), True, True)], ids=["none", "all"]
)
def test_healthy_models_get_hints_only(path, aims):
    assert [f for f in lint(Model.load(path), read_message(path), aims) if f.severity.fails] == []


def test_the_mask_that_breaks_fp16():
    path = EXAMPLES / "digits_vit_mask.onnx"
    rows = [f for f in lint(Model.load(path), read_message(path), FP16) if f.severity.fails]
    assert [(f.slug, f.node) for f in rows] == [("mask-beyond-range", "/attention_bias/Mul")]


def test_bodies_see_the_constants_around_them():
    (finding,) = (f for f in findings(BODY, FP16) if f.source == "rule")
    assert (finding.slug, finding.node, finding.where) == ("mask-beyond-range", "inner", "i/yes")
    assert finding.severity.fails


def test_functions():
    text = """
        <ir_version: 10, opset_import: ["": 18, "l": 1]>
        g (float[2] x) => (float[2] y) { [a] y = l.hide(x) }
        <domain: "l", opset_import: ["": 18]>
        hide (i) => (o) { m = Constant <value_float = -1e9> ()  [inner] o = Mul(i, m) }"""
    (finding,) = (f for f in findings(text, FP16) if f.source == "rule")
    assert (finding.node, finding.where) == ("inner", "function l::hide")


def test_what_the_checker_refuses():
    message = models.proto("g (float[2] x) => (float[2] y) { [a] y = Relu(x) }")
    message.graph.node[0].input.append("x")
    (finding,) = lint(models.of_message(message), Message(message, {}), Aims())
    assert (finding.slug, finding.severity.value, finding.source) == ("onnx-checker", "exception", "onnx_checker")


def test_foreign_operators_of_the_same_name_are_not_judged():
    text = """
        <ir_version: 10, opset_import: ["": 18, "other": 1]>
        g (float[2] x) => (float[2] y) <float[1] m = {-1e9}> { [a] y = other.Mul(x, m) }"""
    assert [row for row in found(text, FP16) if row[0] != "onnx-checker"] == []

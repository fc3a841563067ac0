"""Normalizations and activations written out; the formulas are those of the ONNX operator pages."""

import pytest

from lint_models import FP16, found
from running_cli import EXAMPLES
from tensortriage.model.io.parse import read_message
from tensortriage.model.lint.finding import Aims
from tensortriage.model.model import Model
from tensortriage_polygraphy.lint.rules import lint

CONSTANTS = """
    <int64[1] last = {-1}, float two = {2}, float eps = {0.00001}, float three = {3}, float c = {0.044715},
     float s = {0.7978846}>"""


def net(body, kind="float"):
    return f"g ({kind}[2, 8] x) => ({kind}[2, n] y) {CONSTANTS} {{ {body} }}"


LAYERNORM = """
    m = ReduceMean(x, last)  d = Sub(x, m)  [sq] q = {square}  v = ReduceMean(q, last)
    e = Add(v, eps)  r = Sqrt(e)  y = Div(d, r)"""


@pytest.mark.parametrize("square", ["Pow(d, two)", "Mul(d, d)"])
def test_layer_normalization(square):
    assert found(net(LAYERNORM.format(square=square))) == [("layernorm-decomposed", "hint", "sq")]


def test_it_stays_a_hint_for_fp16_because_the_data_decide():
    """digits_vit.onnx has ten of them and is as right in float16 as in float32 (examples/README.md)."""
    assert found(net(LAYERNORM.format(square="Pow(d, two)")), FP16)[0][1] == "hint"


def test_the_example_has_one_per_layer_normalization():
    path = EXAMPLES / "digits_vit_overflow.onnx"
    rows = list(lint(Model.load(path), read_message(path), Aims()))
    assert {finding.slug for finding in rows} == {"layernorm-decomposed"}
    assert len(rows) == 10
    assert rows[0].node == "/norm_pre/Pow"


def test_rms_normalization():
    body = "[sq] q = Pow(x, two) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) y = Mul(x, i)"
    assert found(net(body)) == [("rmsnorm-decomposed", "hint", "sq")]


def test_the_cast_that_keeps_it_safe():
    body = """
        f = Cast <to = 1> (x)  m = ReduceMean(f, last)  d = Sub(f, m)  q = Pow(d, two)
        v = ReduceMean(q, last)  e = Add(v, eps)  r = Sqrt(e)  y = Div(d, r)"""
    assert found(net(body, "float16").replace("float16[2, n] y", "float[2, n] y")) == []


@pytest.mark.parametrize(
    "body",
    [
        "d = Sub(x, x) q = Pow(d, two) y = ReduceMean(q, last)",  # a mean squared error
        "q = Pow(x, three) v = ReduceMean(q, last) e = Add(v, eps) r = Sqrt(e) y = Div(x, r)",
        "y = ReduceMean(x, last)",
    ],
)
def test_what_is_no_normalization(body):
    assert found(net(body)) == []


@pytest.mark.parametrize("body", ["[n] y = ReduceL2(x, last)", "[n] y = ReduceSumSquare(x, last)",
                                  "q = Mul(x, x) [n] y = ReduceSum(q, last)"])  # fmt: skip
def test_sums_of_squares(body):
    assert found(net(body)) == [("sum-of-squares", "hint", "n")]


def test_gelu_by_tanh():
    body = """
        [cube] p = Pow(x, three)  w = Mul(p, c)  a = Add(x, w)  b = Mul(a, s)  t = Tanh(b)  y = Mul(x, t)"""
    assert found(net(body)) == [("gelu-cubic", "hint", "cube")]


def test_gelu_by_erf_has_no_cube():
    assert found(net("d = Div(x, two) e = Erf(d) y = Mul(x, e)")) == []


def test_softmax_without_maximum():
    assert found(net("[e] e = Exp(x) t = ReduceSum(e, last) y = Div(e, t)")) == [("softmax-without-max", "hint", "e")]
    safe = "m = ReduceMax(x, last) d = Sub(x, m) e = Exp(d) t = ReduceSum(e, last) y = Div(e, t)"
    assert found(net(safe)) == []

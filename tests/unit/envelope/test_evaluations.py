"""Which evaluations are healthy for a model, and the limit that their figures give."""

import math

import numpy as np
import onnx
import pytest

from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import Hardware
from tensortriage.envelope.evaluations import Healthy
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, Usual
from tensortriage.envelope.healthy_values import limit_of
from tensortriage.envelope.registry import freedoms_of, orders_of
from tensortriage.model.model import Model
from tensortriage.values.dtype import Precision

RIGHT = np.random.default_rng(0).standard_normal(4096)
NOISE = np.random.default_rng(1).standard_normal(4096)
NOISE *= np.sqrt(np.mean(RIGHT**2) / np.mean(NOISE**2))


def off_by(error):
    return measure(RIGHT, RIGHT + error * NOISE)


def model(tmp_path, body="y = MatMul(x, x)", kind="float"):
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({kind}[4,4] x) => ({kind}[4,4] y) {{ {body} }}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    return Model.load(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, ["order-of-sums"]),
        ({"body": "y = Round(x)"}, ["order-of-sums", "order-of-sums-2", "order-of-sums-3"]),
        ({"kind": "float16"}, ["order-of-sums", "unrounded"]),
    ],
    ids=["plain", "rounds", "narrow"],
)
def test_what_fp32_may_make_of_a_model_depends_on_it(tmp_path, words, expected):
    asked = model(tmp_path, **words)
    assert [*Healthy.of(asked, Precision.FP32, orders=orders_of(asked)).order] == expected


@pytest.mark.parametrize(
    ("precision", "kept", "expected"),
    [
        (Precision.FP16, (), {"rounding": "results", "format": "fp16"}),
        (Precision.TF32, (), {"rounding": "results", "operands": "tf32"}),
        (Precision.INT8, (), {"precision": "int8"}),
        (Precision.BF16, ("b", "a"), {"precision": "bf16", "kept": "a+b"}),
    ],
)
def test_a_format_is_evaluated_or_emulated(tmp_path, precision, kept, expected):
    assert Healthy.of(model(tmp_path), precision, kept=kept).format["format"].options == expected


def test_whole_numbers_on_the_edge_fall_to_either_side(tmp_path):
    found = Healthy.of(model(tmp_path, "y = Floor(x)"), Precision.FP16)
    assert [*found.format] == ["format", "format fused"]
    assert Healthy.of(model(tmp_path, "y = Floor(x)"), Precision.FP32).format == {}


def test_what_is_additive_is_evaluated_apart_and_added_in_quadrature(tmp_path):
    seldom = freedoms_of(Hardware.GPU, Precision.FP16, Usual.SELDOM)
    found = Healthy.of(
        model(tmp_path), Precision.FP16, (*freedoms_of(Hardware.GPU, Precision.FP16, Usual.EXPECTED), *seldom)
    )
    assert [*found.with_freedoms] == ["format", "taken 0", "taken 1"]
    assert "conv_results" not in found.taken[0]["taken 0"].options
    figures = {"format": off_by(1e-3), "taken 0": off_by(2e-3), "taken 1": off_by(3e-3)}
    assert found.cost_of_freedoms(figures) == pytest.approx(math.sqrt(1 + 3 + 8) * 1e-3)


def test_the_limit_is_what_allows_most(tmp_path):
    narrow = model(tmp_path)
    freedoms = freedoms_of(Hardware.GPU, Precision.FP16, Usual.EXPECTED)
    found = Healthy.of(narrow, Precision.FP16, freedoms, orders=orders_of(narrow))
    figures = {"order-of-sums": off_by(1e-6), "format": off_by(1e-3), "taken 0": off_by(2e-3)}
    assert limit_of(found, figures, 4096).basis is Basis.HARDWARE
    without = {name: figure for name, figure in figures.items() if name != "taken 0"}  # of another shape, say
    assert limit_of(found, without, 4096).basis is Basis.FORMAT
    assert limit_of(found, {**figures, "order-of-sums": off_by(1e-2)}, 4096).basis is Basis.FLOOR


def test_nothing_is_below_one_rounding(tmp_path):
    plain = model(tmp_path)
    found = Healthy.of(plain, Precision.FP16, orders=orders_of(plain))
    assert found.floor({"order-of-sums": off_by(0.0), "format": off_by(0.0)}) > 1e-4
    assert CORRECTLY_ROUNDED not in found.all.values()

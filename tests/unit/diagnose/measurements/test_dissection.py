"""The pattern of an error is told of the culprit, where it is born, and of the worst output."""

import numpy as np
import pytest

from diagnosing import ask, named
from models import parse
from tensortriage.diagnose.measurements.dissection import wrong_direction

pytestmark = pytest.mark.slow

CHAIN = """main (float[6, 32] x) => (float[6, 32] y) {
    a = Tanh(x)
    b = Mul(a, a)
    y = Neg(b)
}"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("fault", "born", "seen"),
    [
        ("kind=scale,amount=1.25", "the target is 1.25 times the reference", "the target is 1.25 times the reference"),
        ("kind=sign", "the sign is flipped", "the sign is flipped"),
        ("kind=zero-tail", "the reference's non-zero elements are zero in the target", "are zero in the target"),
        ("kind=off-by-one", "1 place", "1 place"),
    ],
)
def test_patterns_of_planted_faults(tmp_path, fault, born, seen):
    x = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32)
    verdict, report = ask(tmp_path, named(CHAIN, "tanh", "mul", "neg"), {"x": x}, f"fault:node=mul,{fault}")
    culprit = verdict.culprits[0] if verdict.culprits else None
    told = culprit.anatomy if culprit else ()
    assert verdict.verdict in ("local-fault", "layout"), verdict.summary
    if verdict.verdict == "local-fault":
        assert culprit.node == "mul"
        assert born in told[0], told
    assert any(seen in sentence for sentence in verdict.anatomy), verdict.anatomy
    assert report.verdict.anatomy == verdict.anatomy


def test_agreement_has_no_pattern(tmp_path):
    x = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32)
    verdict, _ = ask(tmp_path, named(CHAIN, "tanh", "mul", "neg"), {"x": x}, "onnxruntime")
    assert (verdict.verdict, verdict.anatomy) == ("match", ())


def test_rounding_to_a_format_is_no_pattern_but_rounding(tmp_path):
    x = np.random.default_rng(0).standard_normal((6, 32)).astype(np.float32)
    verdict, report = ask(tmp_path, named(CHAIN, "tanh", "mul", "neg"), {"x": x}, "emulate:precision=bf16")
    assert verdict.verdict == "rounding"
    assert verdict.anatomy == () or "bfloat16" in verdict.anatomy[0]
    row = report.outputs.rows[0]
    assert report.judgement(row) == "as predicted"
    assert row.predicted > 100 * row.floor


LAYER = """<ir_version: 8, opset_import: ["": 17]>
main (float[5, 2, 3] x, float[2, 16, 3] w, float[2, 16, 4] r) => (float[5, 2, 2, 4] y, float[2, 2, 4] h) {
    y, h = LSTM<hidden_size=4, direction="bidirectional"OTHER>(x, w, r)
}"""


@pytest.mark.parametrize(("index", "word"), [(0, "forward"), (1, "backward")])
@pytest.mark.parametrize(
    ("value", "shape", "axis", "other"),
    [("y", (5, 2, 2, 4), 1, ""), ("h", (2, 2, 4), 0, ""), ("y", (2, 5, 2, 4), 2, ", layout=1"),
     ("h", (2, 2, 4), 1, ", layout=1")],
)  # fmt: skip
def test_the_direction_of_a_layer_that_is_wrong(index, word, value, shape, axis, other):
    node = next(iter(parse(LAYER.replace("OTHER", other)).graph.nodes))
    right = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    target = right * np.float32(1 + 1e-6)
    np.moveaxis(target, axis, 0)[index] *= 1.3
    found = wrong_direction(node, value, right, target)
    assert found is not None
    assert found.effect == f"is wrong in its {word} direction"
    assert f"(index {index} of axis {axis}) is off by 30 %" in found.sentence
    assert wrong_direction(node, value, right, right * np.float32(1.3)) is None

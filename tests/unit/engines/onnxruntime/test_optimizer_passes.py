"""Which passes may be to blame: rules by their own names, all that releases have where a worker runs the model."""

from pathlib import Path

import pytest

from tensortriage.engines.onnxruntime import optimizer_passes
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine
from tensortriage.engines.onnxruntime.optimizer_passes import PASSES, RULES


@pytest.fixture
def engine():
    return OnnxRuntimeEngine()


def test_rules_stand_in_the_place_of_their_transformer(engine, monkeypatch):
    told = ("ConstantFolding", "Level1_RuleBasedTransformer", "GeluFusionL2", "Level2_RuleBasedTransformer")
    monkeypatch.setattr(optimizer_passes, "passes_of", lambda model, options: told)
    assert engine.passes(Path("m.onnx"), {}) == ("ConstantFolding", "GeluFusionL2", *RULES)
    monkeypatch.setattr(optimizer_passes, "passes_of", lambda model, options: told[:1])
    assert engine.passes(Path("m.onnx"), {}) == told[:1]


def test_a_worker_may_have_any_and_a_provider_none(engine):
    found = engine.passes(Path("m.onnx"), {"worker": "/opt/python"})
    assert {*RULES, "MatMulAddFusion", "LayerNormFusionL1"} <= {*found}
    assert len(found) == len({*found}) == len({*PASSES, *RULES}) - 2
    assert engine.passes(Path("m.onnx"), {"ep": "x"}) == ()


def test_how_users_leave_passes_out(engine):
    told = engine.leaving_out(["GemmTransposeFusion", "MatMulAddFusion"])
    assert "disabled_optimizers=['GemmTransposeFusion', 'MatMulAddFusion']" in told
    assert '"optimization.disable_specified_optimizers", "GemmTransposeFusion;MatMulAddFusion"' in told


def test_where_a_model_is_refused_all_may_be_to_blame(tmp_path):
    (tmp_path / "none.onnx").write_bytes(b"no model")
    assert optimizer_passes.passes_of(tmp_path / "none.onnx", {}) == PASSES

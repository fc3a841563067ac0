"""Which ways to keep ops in fp32 are tried on which engine, the least intrusive first."""

from types import SimpleNamespace

import numpy as np
import pytest

from precision_numbers import write_loud
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import Precision
from tensortriage.workflows.diagnosis.remedy import kept_alone, proposals


@pytest.mark.parametrize(
    ("target", "tried"),
    [
        ("tensorrt:precision=fp16", ["precision=fp16,kept=/loud_0", "precision=mixed"]),
        ("openvino:precision=fp16", ["precision=dynamic"]),
        ("onnxruntime:precision=fp16,optimization=all", ["optimization=all"]),
        ("emulate:precision=fp16", ["precision=fp16,kept=/loud_0"]),  # its option and a typed file are one
    ],
)
def test_an_engines_own_option_comes_before_the_types_of_the_file(tmp_path, target, tried):
    write_loud(tmp_path)
    model = Model.load(tmp_path / "m.onnx")
    question = SimpleNamespace(target=EngineSpec.parse(target))
    inv = SimpleNamespace(
        question=question,
        precision=Precision.FP16,
        model=model,
        golden=SimpleNamespace(specs=lambda feed: value_specs(model)),
    )
    found = list(kept_alone(inv, SimpleNamespace(feed=None, results=("one",)), ("/loud_0",)))
    assert [str(proposal.spec).partition(":")[2] for proposal in found] == tried
    for proposal, words in zip(found, tried, strict=True):
        assert (proposal.model is model) is ("kept=" in words)
        types = {np.dtype(spec.dtype.numpy) for spec in value_specs(proposal.file).values() if spec.dtype.is_float}
        assert types == {np.dtype(np.float16), np.dtype(np.float32)}


@pytest.mark.parametrize(("wrong_in_fp32", "kinds"), [(False, ["keep-fp32", "keep-fp32"]), (True, [])])
def test_ops_are_not_kept_in_fp32_where_the_target_is_wrong_in_fp32_throughout(tmp_path, wrong_in_fp32, kinds):
    write_loud(tmp_path)
    model = Model.load(tmp_path / "m.onnx")
    question = SimpleNamespace(target=EngineSpec.parse("tensorrt:precision=fp16"), feeds=("one",), taken=())
    inv = SimpleNamespace(
        question=question,
        precision=Precision.FP16,
        model=model,
        golden=SimpleNamespace(specs=lambda feed: value_specs(model)),
        lab=SimpleNamespace(plan=lambda spec, of: None),
    )
    fault = Conclusion(VerdictKind.LOCAL_FAULT, 0.9, "", (Culprit("/loud_0", "Mul", ""),))
    found = list(proposals(inv, Evidence(wrong_in_fp32=wrong_in_fp32), fault))
    assert [proposal.kind for proposal in found if proposal.kind != "sanitize"] == kinds

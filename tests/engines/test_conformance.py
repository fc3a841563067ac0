"""Every engine of this package against the public suite."""

import pytest

from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.testing import check_engine_conformance

CONFORMING = {
    "onnxruntime": {"model bfloat16"},
    "onnxruntime:optimization=none": {"model bfloat16"},
    "onnxruntime:optimization=basic,threads=1,deterministic=true": {"model bfloat16"},
    "onnxruntime:precision=fp16": {"model bfloat16"},
    "emulate:precision=fp16": {"model bfloat16"},
    "emulate:precision=fp8e5m2": {"model bfloat16"},
    "float64": set(),
}
"""Engine specs with the optional models that they refuse."""


@pytest.mark.parametrize("text", CONFORMING)
def test_engine_conforms(text):
    spec = EngineSpec.parse(text)
    report = check_engine_conformance(create(spec), spec.options)
    assert report.engine == spec.name
    assert set(report.refused) == CONFORMING[text]
    assert "plan" in report.passed

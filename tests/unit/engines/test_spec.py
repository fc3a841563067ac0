"""Specs of engines, and the one word that every engine's may have."""

import pytest

from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import HARDWARE, EngineSpec, Hardware
from tensortriage.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensorrt:precision=fp16", Hardware.GPU), ("openvino", Hardware.CPU), ("openvino:device=NPU", Hardware.NPU),
        ("script:mine.py", Hardware.ANY), ("script:mine.py,hardware=npu", Hardware.NPU),
        ("onnxruntime:optimization=all,hardware=GPU", Hardware.GPU), ("tensorrt:hardware=any", Hardware.ANY),
    ],
)  # fmt: skip
def test_the_hardware_is_known_or_said(text, expected):
    spec = EngineSpec.parse(text)
    assert resolve(spec).hardware is expected
    assert EngineSpec.parse(str(spec)) == spec
    assert "hardware" not in spec.options
    assert spec.with_options({"precision": "fp32"}).hardware == spec.hardware


def test_every_class_has_its_word():
    assert {hardware.value for hardware in Hardware} == set(HARDWARE)


def test_another_word_is_refused():
    with pytest.raises(UsageError, match="hardware=tpu is no class of hardware") as caught:
        EngineSpec.parse("openvino:hardware=tpu")
    assert "cpu, light, gpu, npu, any" in caught.value.cure

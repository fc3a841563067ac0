"""What the machine that runs the tests can do."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from tensortriage.engines.openvino import OpenVinoEngine

CRASH = Path(__file__).resolve().parents[1] / "examples" / "openvino_crash.onnx"
CRASHING = "openvino:precision=fp32"
"""The engine that the example of a crash is for; in bf16, on CPUs that have it, it is healthy."""


def bf16_target():
    """Return an engine that computes in bf16 here: OpenVINO where the CPU can, else the emulation of the format."""
    engine = OpenVinoEngine()
    can = engine.availability().usable and engine.precision({}) == "bf16"
    return "openvino:precision=bf16" if can else "emulate:precision=bf16"


@functools.cache
def openvino_crashes():
    """Whether OpenVINO dies of the example that is to make it die: which kernels it has depends on the CPU."""
    if not OpenVinoEngine().availability().usable:
        return False
    words = "import sys, openvino; openvino.compile_model(sys.argv[1], 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})"
    return subprocess.run([sys.executable, "-c", words, CRASH], capture_output=True, check=False).returncode < 0


def needs_openvino_crash():
    """Skip a test where OpenVINO is absent or survives the example."""
    if not openvino_crashes():
        pytest.skip("no OpenVINO here that the example brings down")

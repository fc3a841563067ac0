"""What the machine that runs the tests can do."""

import contextlib
import functools
from pathlib import Path

import numpy as np
import pytest

from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.engines.registry import create
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineCrashed
from tensortriage_engines.openvino.engine import OpenVinoEngine

CRASH = Path(__file__).resolve().parents[1] / "examples" / "openvino_crash.onnx"
CRASHING = "openvino:precision=fp32"
"""The engine that the example of a crash is for; in bf16, on CPUs that have it, it is healthy."""


@functools.cache
def bf16_target():
    """Return an engine that computes in bf16 here: OpenVINO where the CPU can, else the emulation of the format."""
    engine = OpenVinoEngine()
    can = engine.availability().usable and engine.precision({}) == "bf16"
    return "openvino:precision=bf16" if can else "emulate:precision=bf16"


@functools.cache
def openvino_crashes():
    """Whether OpenVINO dies of the example that is to make it die: which kernels it has depends on the CPU."""
    spec = EngineSpec.parse(CRASHING)
    engine = create(spec)
    if not engine.availability().usable:
        return False
    try:
        engine.compile(CRASH, spec.options).close()
    except EngineCrashed:
        return True
    return False


def needs_openvino_crash():
    """Skip a test where OpenVINO is absent or survives the example."""
    if not openvino_crashes():
        pytest.skip("no OpenVINO here that the example brings down")


exact_int8 = pytest.mark.skipif(sums_in_int16(), reason="the processor sums 8-bit products in int16: it has no VNNI")
"""A test of int8 kernels that sum products of 8-bit numbers exactly."""


OLDER = frozenset({"ssse3", "avx2", "fma"})
"""Flags of a processor without VNNI and bf16 (Haswell, Zen 3)."""

NEWER = OLDER | {"avx512_vnni", "avx512_bf16"}
"""Flags of one with both (Cooper Lake, Zen 4)."""


def be_processor(monkeypatch, flags):
    """Let this process take its processor for one with these flags: its own engines compute as they do."""
    monkeypatch.setattr("tensortriage.engines.cpu_features._flags", lambda: flags)


@contextlib.contextmanager
def numpy_seeded():
    """Draw the same numbers from numpy's global generator, which ONNX's examples use as they are imported."""
    state = np.random.get_state()  # noqa: NPY002 - the generator that they use
    np.random.seed(0)  # noqa: NPY002 - as above
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002 - as above

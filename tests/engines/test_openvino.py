"""OpenVINO itself, in worker processes: types, names, precisions and failures of the real engine."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.testing import check_engine_conformance
from tensortriage_engines.openvino.engine import OpenVinoEngine

LIMITS = Limits(build_seconds=60, run_seconds=30)
ENGINE = OpenVinoEngine(limits=LIMITS)
HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'

OLDEST = ENGINE.availability().version.startswith("2024.0")
"""The oldest release supported: its ONNX front end reads neither strings nor float8 and int4."""

pytestmark = pytest.mark.skipif(not ENGINE.availability().usable, reason="OpenVINO is not installed")


@pytest.fixture
def compiled(tmp_path: Path):
    sessions = []

    def compile_text(text: str, **options: str):
        path = tmp_path / f"model{len(sessions)}.onnx"
        onnx.save(parser.parse_model(HEAD + text), path)
        sessions.append(ENGINE.compile(path, options))
        return sessions[-1]

    yield compile_text
    for session in sessions:
        session.close()


def test_hundreds_of_mixed_inputs_and_outputs(compiled):
    """The shape of an exploded model: every node with inputs of its own, float and int64 side by side."""
    count = 150
    inputs = ", ".join(f"float[4,3] f{i}, int64[2] i{i}, int64[N] unused{i}" for i in range(count))
    outputs = ", ".join(f"float[2,3] o{i}, int64[2] j{i}" for i in range(count))
    body = "\n".join(f"o{i} = Gather(f{i}, i{i})\n j{i} = Add(i{i}, i{i})" for i in range(count))
    session = compiled(f"g ({inputs}) => ({outputs}) {{ {body} }}", precision="fp32")
    rng = np.random.default_rng(0)
    feed = {}
    for i in range(count):
        feed[f"f{i}"] = rng.standard_normal((4, 3), np.float32)
        feed[f"i{i}"] = rng.integers(0, 4, 2)
        feed[f"unused{i}"] = np.zeros(i % 3, np.int64)
    result = session.run(feed)
    for i in range(count):
        np.testing.assert_array_equal(result[f"o{i}"], feed[f"f{i}"][feed[f"i{i}"]])
        np.testing.assert_array_equal(result[f"j{i}"], feed[f"i{i}"] * 2)


@pytest.mark.lengthy
@pytest.mark.parametrize("options", [{"precision": "fp32"}, {}], ids=["fp32", "default"])
def test_conforms(options):
    report = check_engine_conformance(ENGINE, options)
    unread = {f"model {kind}" for kind in ("strings", "stored-float8-e4m3fn", "stored-float8-e5m2", "stored-int4")}
    assert set(report.refused) == (unread if OLDEST else set())


def test_availability_starts_nothing_and_tells_absence():
    code = (
        "import sys\n"
        "from tensortriage_engines.openvino.engine import OpenVinoEngine\n"
        "here = OpenVinoEngine().availability()\n"
        "assert here.usable and here.version[0] == '2' and 'openvino' not in sys.modules, here\n"
        "sys.modules['openvino'] = None\n"
        "gone = OpenVinoEngine().availability()\n"
        "assert not gone.usable and gone.reason and gone.cure == 'pip install openvino', gone\n"
        "assert not {'onnx', 'onnx_ir', 'onnxruntime', 'execnet.gateway'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""The worker's package executed by another Python: the oldest that it promises to run on, where one is named.

TRIAGE_WORKER_PYTHON=/path/to/python3.8 names it; numpy is all that it needs.
"""

import os

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.script import ScriptEngine

PYTHON = os.environ.get("TRIAGE_WORKER_PYTHON", "")
SCRIPT = """
class Session:
    def run(self, feed):
        return {"y": feed["x"] * 2}

class Engine:
    def compile(self, model, options):
        return Session()
"""
MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) { y = Add(x, x) }"""


@pytest.mark.skipif(not PYTHON, reason="opt-in: TRIAGE_WORKER_PYTHON names an interpreter with numpy")
def test_a_model_runs_in_the_named_python(tmp_path):
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    (tmp_path / "twice.py").write_text(SCRIPT)
    session = ScriptEngine().compile(tmp_path / "m.onnx", {"file": str(tmp_path / "twice.py"), "worker": PYTHON})
    try:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        found = session.run({"x": x})
    finally:
        session.close()
    np.testing.assert_array_equal(found["y"], x * 2)

"""The pages on engines say what the code does: the script works, lists are complete."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import tensortriage.errors
from tensortriage.engines.base import Limits
from tensortriage.engines.script import ScriptEngine
from tensortriage_testing import FaultKind

pytestmark = pytest.mark.lengthy

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("engines", "script-engines")}
PAGE = PAGES["script-engines"]


def test_the_example_runs_as_shown(tmp_path):
    [script] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "my_engine.py").write_text(script)
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    engine = ScriptEngine(limits=Limits(build_seconds=30, run_seconds=10))
    session = engine.compile(tmp_path / "m.onnx", {"file": str(tmp_path / "my_engine.py")})
    np.testing.assert_array_equal(session.run({"x": np.array([1, -2], np.float32)})["y"], [-1, 2])
    session.close()


def test_every_kind_of_fault_is_listed():
    table = PAGES["engines"].partition("| kind | the node's result |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    listed = {word for row in rows for word in re.findall(r"`(.+?)`", row)}
    assert listed == {kind.value for kind in FaultKind}


def test_every_error_named_exists():
    named = set(re.findall(r"`((?:Engine|Build|Run)[A-Z]\w+)`", PAGE))
    assert len(named) == 5
    assert all(hasattr(tensortriage.errors, name) for name in named)

"""The example notebook does what its outputs show; where PyTorch is missing, its code at least names what exists."""

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.lengthy

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "from_pytorch.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]
CODE = "\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code")
SHOWN = "".join(text for cell in CELLS for output in cell.get("outputs", ()) for text in output["text"])


def test_its_imports_exist():
    imports = [node for node in ast.walk(ast.parse(CODE)) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        module = importlib.import_module(node.module)
        assert all(hasattr(module, alias.name) for alias in node.names), node.module
    assert {node.module for node in imports} >= {"tensortriage.api"}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_it_runs_and_ends_as_shown(tmp_path):
    done = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in (
        "passed: True",
        "model-changed",
        "layers.1.norm (LayerNorm, network.py:13)",
        "torch.ops.aten.layer_norm.default(add, [8]",
        "exit code 1",
        "local-fault",
        "layers.1.mlp.2 (Linear, network.py:13)",
    ):
        assert words in done.stdout
        assert words in SHOWN

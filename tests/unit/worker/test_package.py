"""The engine-side package keeps its promise: Python >= 3.8 and numpy, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

import tensortriage_worker

FILES = sorted(Path(tensortriage_worker.__file__).parent.glob("*.py"))
ENGINES = {"openvino", "ml_dtypes"}  # imported where present, inside functions


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_parses_as_python_3_8(file):
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_imports_only_the_standard_library_numpy_and_itself(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    allowed = set(sys.stdlib_module_names) | {"numpy", "tensortriage_worker"}
    if file.name == "supervisor.py":
        allowed -= {"numpy", "tensortriage_worker"}
    assert roots - ENGINES <= allowed


def test_files_are_flat_because_they_travel_by_name():
    assert not [path for path in FILES[0].parent.iterdir() if path.is_dir() and path.name != "__pycache__"]

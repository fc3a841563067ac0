"""The engine-side package keeps its promise: Python >= 3.8 and numpy, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

import tensortriage_worker
from tensortriage.engines.process.workers import _package_texts

HOME = Path(tensortriage_worker.__file__).parent
FILES = sorted(HOME.rglob("*.py"))
# imported where present, inside functions
ENGINES = {
    "MNN",
    "ai_edge_litert",
    "iree",
    "ml_dtypes",
    "ncnn",
    "onnx",
    "onnxruntime",
    "openvino",
    "rknn",
    "tvm",
}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(HOME).as_posix())
def test_parses_as_python_3_8(file):
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(HOME).as_posix())
def test_imports_only_the_standard_library_numpy_and_itself(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    allowed = set(sys.stdlib_module_names) | {"numpy", "tensortriage_worker"}
    if file.name == "supervisor.py":
        allowed -= {"numpy", "tensortriage_worker"}
    assert roots - ENGINES <= allowed


def test_every_module_travels_to_the_worker_by_its_path_in_the_package():
    assert sorted(_package_texts()) == sorted(file.relative_to(HOME).as_posix() for file in FILES)

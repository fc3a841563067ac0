"""The engine-side package keeps its promise: Python >= 3.8 and numpy, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

import tensortriage_engines
import tensortriage_worker
from tensortriage.engines.process.workers import _texts

HOME = Path(tensortriage_worker.__file__).parent
SOURCES = Path(tensortriage_engines.__file__).parents[1]
HALVES = [
    file for path in ("tensortriage_*/*/worker/*.py", "tensortriage_*/worker/*.py") for file in SOURCES.glob(path)
]
FILES = [*sorted(HOME.rglob("*.py")), *sorted(HALVES)]
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


@pytest.mark.parametrize("file", FILES, ids=lambda f: "/".join(f.parts[-3:]))
def test_parses_as_python_3_8(file):
    ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.mark.parametrize("file", FILES, ids=lambda f: "/".join(f.parts[-3:]))
def test_imports_only_the_standard_library_numpy_and_itself(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    half = ".".join(file.parent.relative_to(SOURCES).parts) if file in HALVES else "tensortriage_worker"
    roots -= {half.partition(".")[0]} if any(name.startswith(half) for name in names) else set()
    allowed = set(sys.stdlib_module_names) | {"numpy", "tensortriage_worker"}
    if file.name == "supervisor.py":
        allowed -= {"numpy", "tensortriage_worker"}
    assert roots - ENGINES <= allowed


def test_every_module_travels_to_the_worker_by_its_path_in_the_package():
    files = sorted(file.relative_to(HOME.parent).as_posix() for file in HOME.rglob("*.py"))
    assert sorted(_texts("tensortriage_worker")) == files


def test_the_worker_half_of_an_engine_travels_without_the_packages_around_it():
    texts = _texts("tensortriage_engines.iree.worker")
    around = ["tensortriage_engines/__init__.py", "tensortriage_engines/iree/__init__.py"]
    assert sorted(texts) == sorted(
        [*around, *(f"tensortriage_engines/iree/worker/{name}.py" for name in ("__init__", "adapter"))]
    )
    assert [texts[name] for name in around] == ["", ""]

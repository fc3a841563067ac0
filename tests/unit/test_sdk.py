"""What commands of other packages are written with: each name can be had, and declaring a command loads little."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from tensortriage import sdk
from tensortriage.envelope import sdk as judging_sdk
from tensortriage.values.first_use import deferred_names


@pytest.mark.parametrize(
    ("module", "some"), [(sdk, {"command", "option", "write_text"}), (judging_sdk, {"Lab", "Limit", "measure_many"})]
)
def test_every_name_can_be_had_and_says_what_it_is(module, some):
    names = {name for name in vars(module) if not name.startswith("_")} - {"TYPE_CHECKING", "on_first_use"}
    assert names >= some
    for name in names | set(deferred_names(module.__file__) if module is sdk else set()):
        assert inspect.getdoc(getattr(module, name)), name


def test_what_is_public_for_judging_is_what_packages_beside_the_core_use():
    sources = Path(sdk.__file__).parents[1].glob("tensortriage_*/**/*.py")
    used = {
        alias.name
        for text in (source.read_text(encoding="utf-8") for source in sources)
        if judging_sdk.__name__ in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == judging_sdk.__name__
        for alias in node.names
    }
    assert used == {name for name in vars(judging_sdk) if not name.startswith("_")}


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(sdk, "comand")


def test_what_a_command_is_declared_with_loads_nothing_heavy():
    heavy = "onnx", "onnx_ir", "onnxruntime", "numpy", "jinja2", "sqlite3"
    code = f"import sys, tensortriage.sdk; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

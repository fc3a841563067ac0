"""Packages that are imported without what they seldom need."""

import importlib
import subprocess
import sys

import pytest

from tensortriage.model.lazy_import import import_without

USE = """
import sys
from tensortriage.model.model import Model
import onnx_ir as ir
assert not [name for name in sys.modules if name.startswith("sympy")]
size = ir.SymbolicDim("max(n, 3)")
assert str((size + 1).value) == "Max(3, n) + 1", (size + 1).value
import sympy.core
assert sympy.core.Symbol("n") == sympy.Symbol("n")
"""


def test_sizes_are_computed_when_they_are():
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write modules, and forget them afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = []

    def write(name, text):
        names.append(name)
        (tmp_path / f"{name}.py").write_text(text)

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_a_module_is_read_when_used(written):
    written("needless", "answer = 42\ndef double(x): return 2 * x\n")
    written("package", "import needless\ndouble = needless.double\ndef answer(): return needless.answer\n")
    import_without("package", "needless")
    assert "package" not in sys.modules
    package = importlib.import_module("package")
    assert package.__spec__.loader.__class__.__name__ == "SourceFileLoader"
    assert "needless" not in sys.modules
    assert package.answer() == 42
    assert package.double(4) == 8
    assert sys.modules["needless"].answer == 42


def test_a_package_that_needs_it_at_once_gets_it(written):
    written("needless", "class Base: pass\n")
    written("package", "import needless\nclass Child(needless.Base): pass\n")
    import_without("package", "needless")
    assert importlib.import_module("package").Child.__mro__[1] is sys.modules["needless"].Base


def test_what_is_missing_is_missed_as_ever(written):
    written("package", "import no_such_module\nclass Child(no_such_module.Base): pass\n")
    import_without("package", "no_such_module")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("package")
    assert "no_such_module" not in sys.modules

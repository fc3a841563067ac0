"""What commands of other packages are written with: each name can be had, and declaring a command loads little."""

import inspect
import subprocess
import sys

from tensortriage import sdk


def test_every_name_can_be_had_and_says_what_it_is():
    names = {name for name in vars(sdk) if not name.startswith("_")} - {"Any", "TYPE_CHECKING", "importlib"}
    assert names >= {"command", "option", "write_text"}
    for name in names | set(sdk._HOMES):
        assert inspect.getdoc(getattr(sdk, name)), name


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(sdk, "comand")


def test_what_a_command_is_declared_with_loads_nothing_heavy():
    heavy = "onnx", "onnx_ir", "onnxruntime", "numpy", "jinja2", "sqlite3"
    code = f"import sys, tensortriage.sdk; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

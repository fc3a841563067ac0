"""Start-up: listing the commands, and the options of each, must import nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("onnx", "onnx_ir", "onnxruntime", "rich", "jinja2", "numpy", "execnet")
PROGRAM = """
import sys
from tensortriage.cli import main
try:
    main(%r)
finally:
    print("imported:", *sorted(name for name in %r if name in sys.modules), file=sys.stderr)
"""


def helped(*words):
    program = PROGRAM % ([*words, "--help"], HEAVY)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_help_imports_nothing_heavy():
    done = helped()
    assert done.returncode == 0
    assert "diagnose" in done.stdout
    assert done.stderr.strip() == "imported:"


@pytest.mark.parametrize(
    "command",
    ["diagnose", "run", "steps", "convert", "check accuracy", "debug reduce", "debug precision", "debug build"],
)
def test_nor_do_the_options_of_a_command(command):
    """They are fields of a request, which what a request holds must not be imported for."""
    done = helped(*command.split())
    assert (done.returncode, done.stderr.strip()) == (0, "imported:")

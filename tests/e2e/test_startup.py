"""Start-up: listing the commands must import nothing heavy."""

import subprocess
import sys

HEAVY = ("onnx", "onnx_ir", "onnxruntime", "rich", "jinja2", "numpy", "execnet")
PROGRAM = """
import sys
from tensortriage.cli import main
try:
    main(["--help"])
finally:
    print("imported:", *sorted(name for name in %r if name in sys.modules), file=sys.stderr)
"""


def test_help_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", PROGRAM % (HEAVY,)], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "diagnose" in done.stdout
    assert done.stderr.strip() == "imported:"

"""Runs a command as on a processor without AVX-512, VNNI, AMX and bf16, its children included.

    python tests/without_vnni.py pytest tests/unit/diagnose/rungs/quantization

Where the processor has none of them, the command runs as it is. Else `without_vnni.c` is compiled and put into every
process, which needs a C compiler, Linux, and a processor that can fault at CPUID (Intel's since Ivy Bridge; a virtual
machine may hide it). Where that cannot be had, one line says so, and ONEDNN_MAX_CPU_ISA limits OpenVINO alone;
``--required`` fails then.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tensortriage.engines.cpu_features import computes_bf16, sums_in_int16

SOURCE = Path(__file__).parent / "without_vnni.c"
OPENVINO_ALONE = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
NOT_HERE = "this processor cannot be limited"
PROBE = "import onnxruntime"
"""What has to run in a limited process: a library that asks the processor for more than a plain command does."""


@functools.cache
def limits() -> Mapping[str, str] | None:
    """Return the variables of a process without these instructions; None where none can be had."""
    if sums_in_int16() and not computes_bf16():
        return {}
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = Path(tempfile.mkdtemp(prefix="without-vnni-")) / "without_vnni.so"
    words = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        return None
    found = {"LD_PRELOAD": str(library)}
    probe = [sys.executable, "-c", PROBE]
    tried = subprocess.run(probe, env={**os.environ, **found}, capture_output=True, check=False)
    return found if tried.returncode == 0 else None


def main() -> int:
    required, words = sys.argv[1:2] == ["--required"], sys.argv[1:]
    variables = limits()
    if variables is None:
        rest = "" if required else ": OpenVINO alone is, and what ONNX Runtime's kernels answer is taken from records"
        sys.stderr.write(f"{NOT_HERE}{rest}\n")
        if required:
            return 1
    chosen = OPENVINO_ALONE if variables is None else variables
    return subprocess.run(words[required:], env={**os.environ, **chosen}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

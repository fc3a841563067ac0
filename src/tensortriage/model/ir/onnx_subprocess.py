"""onnx's C++ extension at arm's length: it may crash or never return on a model that nobody has checked.

Shape inference crashes on a LayerNormalization whose axis is far off, and loops for ever over an Einsum equation that
is not ASCII; the version converter infers shapes on its way (onnx 1.23; its checker passes both models). So they run in
a process of its own, with limits. That process loads the C++ extension and nothing else, which makes it five times
faster to start than one that imports onnx.
"""

import subprocess
import sys

import onnx

_CHILD = """
import importlib.util, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except ImportError:
    pass
spec = importlib.util.spec_from_file_location("onnx_cpp2py_export", sys.argv[1])
extension = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extension)
model = sys.stdin.buffer.read()
try:
    result = {call}
except Exception as error:
    sys.exit(str(error))
sys.stdout.buffer.write(result)
"""
_SECONDS = 10.0
_MEMORY_BYTES = 4 << 30
_WORDS = 200


class ExtensionFailed(Exception):
    """The extension refused the model, crashed, or ran out of time or memory; the message says which."""


def call_extension(call: str, model: bytes, *, limit_seconds: float = _SECONDS) -> bytes:
    """Run a function of onnx's C++ extension in a process of its own.

    Args:
        call: Python expression that gives bytes; it knows ``extension`` and ``model``.
        model: Serialized ModelProto.
        limit_seconds: Longest time; ordinary models take a fraction of a second. Memory ends at 4 GiB.

    Raises:
        ExtensionFailed: When there is no result.
    """
    code = _CHILD.replace("{call}", call)
    command = [sys.executable, "-I", "-S", "-c", code, str(onnx.onnx_cpp2py_export.__file__), str(_MEMORY_BYTES)]
    try:
        done = subprocess.run(command, input=model, capture_output=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ExtensionFailed(f"no result within {limit_seconds:g} s") from None
    if done.returncode < 0:
        raise ExtensionFailed("onnx crashed on it")
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()
        raise ExtensionFailed(text.partition("\n")[0][:_WORDS] or f"exit code {done.returncode}")
    return done.stdout

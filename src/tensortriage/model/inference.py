"""Shape inference at arm's length: onnx's C++ code may crash or never return on a model that nobody has checked.

It crashes on a LayerNormalization whose axis is far off, and loops for ever over an Einsum equation that is not ASCII
(onnx 1.23; its checker passes both). So it runs in a process of its own, with limits. That process loads onnx's C++
extension and nothing else, which makes it five times faster to start than one that imports onnx.
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
check_type, strict_mode, data_propagation = False, False, True
model = sys.stdin.buffer.read()
inferred = extension.shape_inference.infer_shapes(model, check_type, strict_mode, data_propagation)
sys.stdout.buffer.write(inferred)
"""
_SECONDS = 10.0
_MEMORY_BYTES = 4 << 30


def infer_shapes(model: bytes, *, limit_seconds: float = _SECONDS) -> bytes | None:
    """Return a serialized model with the inferred types added to its value_info.

    Args:
        model: Serialized ModelProto.
        limit_seconds: Longest time; ordinary models take a fraction of a second.

    Returns:
        The same model with more value_info (onnx.shape_inference, lenient, with data propagation); None when inference
        refused the model, crashed, or ran out of time or memory (4 GiB).
    """
    extension = onnx.onnx_cpp2py_export.__file__
    command = [sys.executable, "-I", "-S", "-c", _CHILD, str(extension), str(_MEMORY_BYTES)]
    try:
        done = subprocess.run(command, input=model, capture_output=True, timeout=limit_seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None

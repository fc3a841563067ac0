"""The process that runs functions of onnx's C++ extension, each call in a fork of its own where there are forks.

It is started as a script by `tensortriage.model.ir.onnx_subprocess` and imports the standard library only: loading the
extension without the package onnx takes a fifth of the time, and a fork after that a hundredth.

A request is a `REQUEST` header, the call (a Python expression that gives bytes) and the model; an answer is an `ANSWER`
header and, after one byte that says which it is, the result or the reason why there is none.
"""

import contextlib
import importlib.util
import os
import struct
import sys
from types import ModuleType
from typing import Any, BinaryIO

REQUEST = struct.Struct("<QQQ")
"""Bytes of the call, bytes of the model, largest CPU time in seconds."""
ANSWER = struct.Struct("<Q")
"""Bytes of the answer."""
RESULT, REFUSED, CRASHED = b"R", b"E", b"C"
SPARE_BYTES = 512 << 20
"""Memory of a call in addition to the model's: a Range of a million million numbers is computed until none is left."""
COPIES = 6
"""Copies of the model in a call: as bytes, parsed, changed, and written again, with room for additions."""


def serve(extension: ModuleType, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    while len(header := requests.read(REQUEST.size)) == REQUEST.size:
        call_bytes, model_bytes, seconds = REQUEST.unpack(header)
        call, model = requests.read(call_bytes).decode(), requests.read(model_bytes)
        answer = in_fork(call, {"extension": extension, "model": model}, seconds)
        answers.write(ANSWER.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def in_fork(call: str, names: dict[str, Any], seconds: int) -> bytes:
    """Return the answer to one request; effects of the call on its process end with it."""
    if not hasattr(os, "fork"):
        return b"".join(outcome(call, names))
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(readable)
            limit(seconds, SPARE_BYTES + COPIES * len(names["model"]))
            with open(writable, "wb") as pipe:
                pipe.writelines(outcome(call, names))
            os._exit(0)
        os._exit(1)
    os.close(writable)
    with open(readable, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else CRASHED


def limit(seconds: int, more_bytes: int) -> None:
    """Bound memory, beyond the mapped one, and CPU time of this process, and let it leave no core file."""
    import resource  # which Windows lacks, as it does forks

    with contextlib.suppress(OSError), open("/proc/self/statm") as file:
        largest = int(file.read().split()[0]) * resource.getpagesize() + more_bytes
        resource.setrlimit(resource.RLIMIT_AS, (largest, largest))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome(call: str, names: dict[str, object]) -> tuple[bytes, bytes]:
    """Return which kind of answer a call gives, and its content."""
    try:
        return RESULT, bytes(eval(call, names))
    except Exception as error:
        return REFUSED, str(error).encode(errors="replace")


def load_extension(path: str) -> ModuleType:
    """Import the extension alone, without the package that it belongs to."""
    spec = importlib.util.spec_from_file_location("onnx_cpp2py_export", path)
    assert spec is not None
    assert spec.loader is not None
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


if __name__ == "__main__":
    serve(load_extension(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)

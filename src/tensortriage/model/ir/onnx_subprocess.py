"""onnx's C++ extension in a process of its own: it may crash or never return on an unchecked model.

Shape inference crashes on a LayerNormalization whose axis is far off, and loops for ever over an Einsum equation that
is not ASCII; the version converter infers shapes on its way (onnx 1.23; its checker passes both models). So they run in
a process of their own, with limits: `tensortriage.model.ir.onnx_server`, started at the first call and kept.
"""

import atexit
import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import onnx

from tensortriage.model.ir.onnx_server import ANSWER, REFUSED, REQUEST, RESULT

_SECONDS = 10.0
_WORDS = 200
_SERVER = Path(__file__).with_name("onnx_server.py")


class ExtensionFailed(Exception):
    """The extension refused the model, crashed, or ran out of time or memory, as the message states."""


def call_extension(call: str, model: bytes, *, limit_seconds: float = _SECONDS) -> bytes:
    """Run a function of onnx's C++ extension in a process of its own.

    Args:
        call: Python expression that gives bytes; it knows ``extension`` and ``model``.
        model: Serialized ModelProto.
        limit_seconds: Longest time; ordinary models take a fraction of a second. Memory ends at 4 GiB.

    Raises:
        ExtensionFailed: When there is no result.
    """
    server = _lease()
    try:
        answer = server.ask(call, model, limit_seconds)
    except BaseException:
        server.kill()
        raise
    finally:
        _give_back(server)
    if answer is None:
        raise ExtensionFailed(f"no result within {limit_seconds:g} s")
    kind, content = answer[:1], answer[1:]
    if kind == RESULT:
        return content
    if kind == REFUSED:
        raise ExtensionFailed(content.decode(errors="replace").strip().partition("\n")[0][:_WORDS] or "no reason given")
    raise ExtensionFailed("onnx crashed on it")


class _Server:
    """A server process, used by one thread at a time."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.usable = True
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SERVER), str(onnx.onnx_cpp2py_export.__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is its host's business, and its forks can be killed with it
        )

    def ask(self, call: str, model: bytes, seconds: float) -> bytes | None:
        """Return the answer to one request; None when it did not come in time, empty when the server died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self.kill)
        late.start()
        try:
            words = call.encode()
            self._process.stdin.write(REQUEST.pack(len(words), len(model), math.ceil(seconds) + 1))
            self._process.stdin.write(words)
            self._process.stdin.write(model)
            self._process.stdin.flush()
            header = self._process.stdout.read(ANSWER.size)
            if len(header) == ANSWER.size:
                (size,) = ANSWER.unpack(header)
                answer = self._process.stdout.read(size)
                if len(answer) == size:
                    return answer
        except BrokenPipeError:
            pass
        finally:
            late.cancel()
            late.join()
        in_time = self.usable
        self.kill()
        return b"" if in_time else None

    def kill(self) -> None:
        """End the process and the call that it works on, at once."""
        self.usable = False
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """End the process for good; a forked child leaves its parent's alone."""
        if self.owner == os.getpid():
            self.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate()


_idle: list[_Server] = []
_lock = threading.Lock()


def _lease() -> _Server:
    """Return an idle server of this process, or a new one, for the exclusive use of the caller."""
    with _lock:
        while _idle:
            server = _idle.pop()
            if server.owner == os.getpid():
                return server
    return _Server()


def _give_back(server: _Server) -> None:
    """Keep a server for the next call; there is never more than one idle."""
    with _lock:
        if server.usable and not _idle:
            _idle.append(server)
            return
    server.close()


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()

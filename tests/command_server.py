"""Commands in processes of their own that need not import everything anew: they are forked from one that has done so.

Importing costs more processor time than most commands that the tests run. The server is a fresh interpreter, started as
the command line is; a command has its own process, arguments, folder, environment and streams, and ends as any does.
"""

import atexit
import contextlib
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

PRELOADED = (
    "onnx",
    "onnxruntime",
    "rich.console",
    "jinja2",
    "tensortriage.cli.run.command",
    "tensortriage.cli.diagnose.command",
    "tensortriage.report.renderers",
    "tensortriage.workflows.comparison.compare",
    "tensortriage.workflows.diagnosis.diagnose",
    "tensortriage.workflows.edits.convert",
    "tensortriage.workflows.reduce",
)
AT_START = ("PYTHON", "LANG", "LC_", "LD_", "OMP_", "OPENBLAS_", "COVERAGE_")
"""Beginnings of the variables that are read once, when an interpreter or a library starts."""
BEGIN = "import sys; sys.path.insert(0, {!r}); from command_server import serve; del sys.path[0]; serve({})"


def _at_start(environment):
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


class CommandServer:
    """Starts commands; one for all tests of a process."""

    def __init__(self):
        self._environment = _at_start(os.environ)
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            code = BEGIN.format(str(Path(__file__).parent), theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._lock = threading.Lock()

    def can_run(self):
        """Say whether a command would start as a fresh interpreter does under the environment of now."""
        return self._process.poll() is None and _at_start(os.environ) == self._environment

    def run(self, words, *, cwd, timeout, stdin):
        """Run a command to its end, as ``subprocess.run`` does with captured text."""
        pipes = [os.pipe() for _ in range(3)]  # stdout, stderr, how it ended
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin.fileno())
        request = json.dumps({"words": words, "cwd": str(cwd), "environment": dict(os.environ)}).encode()
        with tempfile_of(request) as body, self._lock:
            socket.send_fds(self._line, [b"run"], [body, given, *(write for _, write in pipes)])
        for descriptor in (given, *(write for _, write in pipes)):
            os.close(descriptor)
        stdout, stderr, ended = _read_all([read for read, _ in pipes], words, timeout)
        status = int(ended.split()[-1])
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), stdout.decode(), stderr.decode())

    def close(self):
        """End the server."""
        self._line.close()
        self._process.wait(60)


@contextlib.contextmanager
def tempfile_of(content):
    """Hold bytes in a file without a name; a message has bounds."""
    descriptor = os.memfd_create("request")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_all(descriptors, words, timeout):
    """Read until all are closed; kill a command that takes too long: its number is the first word of the last."""
    found = dict.fromkeys(descriptors, b"")
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            if time.monotonic() > deadline:
                os.kill(int(found[descriptors[-1]].split()[0]), signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, timeout, *(found[each] for each in descriptors[:2]))
            for key, _ in selector.select(deadline - time.monotonic()):
                if chunk := os.read(key.fd, 1 << 16):
                    found[key.fd] += chunk
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [found[descriptor] for descriptor in descriptors]


def serve(descriptor):
    """Fork a process for every command that is requested, until nobody is left to ask."""
    for name in PRELOADED:
        importlib.import_module(name)
    line = socket.socket(fileno=descriptor)
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, 16, 8)
        with contextlib.suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, 0 if not message else os.WNOHANG)[0]:
                pass
        if not message:
            return
        if os.fork() == 0:
            line.close()
            _watch(*descriptors)
        for each in descriptors:
            os.close(each)


def _watch(body, stdin, stdout, stderr, ended):
    """Start the command, and tell its number and how it ended."""
    with open(body, "rb") as file:
        request = json.loads(file.read())
    for place, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    command = os.fork()
    if command == 0:
        os.close(ended)
        _command(**request)
    for place in range(3):
        os.close(place)
    os.write(ended, f"{command} ".encode())
    os.write(ended, str(os.waitpid(command, 0)[1]).encode())
    os._exit(0)


def _command(words, cwd, environment):
    """Be the command, from its first line to its exit code."""
    code = 1
    try:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[:] = ["-c", *words]
        for place, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
            before = getattr(sys, name)
            stream = open(place, mode, encoding=before.encoding, errors=before.errors, closefd=False)  # noqa: SIM115 - its own
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        from tensortriage.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

"""Commands in processes of their own that need not import everything anew: they are forked from one that has done so.

Importing costs more processor time than most commands that the tests run. The server is a fresh interpreter, started as
the command line is; a command has its own process, arguments, folder, environment and streams, and ends as any does.
"""

import contextlib
import functools
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import forked_workers
from forked_workers import PIPES, PLACES, at_start, become, end, memory_file

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
OURS = (["-m", "tensortriage"], ["-c", "from tensortriage.cli import main; main()"])
"""How commands start others, after the interpreter."""
WITH_TORCH = ("torch_warmed",)
_ENVIRONMENT = at_start(os.environ)
BEGIN = "import sys; sys.path.insert(0, {!r}); from command_server import serve; serve({}, {!r})"


class CommandServer:
    """Starts commands; one for all tests of a process."""

    def __init__(self, names=PRELOADED):
        self._environment = at_start(os.environ)
        self._line, commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.worker_line, workers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given = [each.fileno() for each in (commands, workers, self.worker_line)]
        with commands, workers:
            code = BEGIN.format(str(Path(__file__).parent), given, names)
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=given,
            )
        self._lock = threading.Lock()

    def can_run(self):
        """Say whether a command would start as a fresh interpreter does under the environment of now."""
        return self._process.poll() is None and at_start(os.environ) == self._environment

    def run(self, words, *, cwd, timeout, stdin):
        """Run a command to its end, as ``subprocess.run`` does with captured text."""
        pipes = [os.pipe() for _ in range(3)]  # stdout, stderr, how it ended
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(stdin.fileno())
        request = {"words": words, "cwd": str(cwd), "environment": dict(os.environ)}
        with memory_file(request) as body, self._lock:
            socket.send_fds(self._line, [b"run"], [body, given, *(write for _, write in pipes)])
        for descriptor in (given, *(write for _, write in pipes)):
            os.close(descriptor)
        stdout, stderr, ended = _read_all([read for read, _ in pipes], words, timeout)
        status = int(ended.split()[-1])
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), stdout.decode(), stderr.decode())

    def close(self):
        """End the server."""
        self._line.close()
        self.worker_line.close()
        self._process.wait(60)


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


class _Relay:
    """What a command, which is a fork of the server, asks for a worker."""

    def __init__(self, line):
        self.worker_line = line

    def can_run(self):
        return at_start(os.environ) == _ENVIRONMENT


def serve(lines, names):
    """Fork a process for every command, or worker, that is asked for, until nobody is left to ask.

    Args:
        lines: Descriptors of sockets: requests for commands, whose end is the server's; those for workers; their other
            end, for commands.
        names: What to import first.
    """
    kept = {*sys.modules, *sys.stdlib_module_names}
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    del sys.path[0]
    *lines, relay = (socket.socket(fileno=each) for each in lines)
    forked_workers.install(functools.partial(_Relay, relay))
    kept = {name for name in sys.modules if name in kept or name.partition(".")[0] in kept}
    signal.signal(signal.SIGCHLD, _reap)
    torch = functools.cache(_torch_server) if names == PRELOADED else None  # else this is that
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                message, descriptors, _, _ = socket.recv_fds(key.fileobj, 16, 8)
                if not message:
                    return
                _begin(message, descriptors, lines, relay, kept, torch)
                for each in descriptors:
                    os.close(each)


def _begin(message, descriptors, lines, relay, kept, torch):
    request = _read(descriptors[0])
    if message == b"worker" and request["kind"] == "torch" and torch is not None:
        socket.send_fds(torch().worker_line, [message], descriptors)
    elif os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for line in lines:
            line.close()
        os.close(descriptors[0])
        if message == b"worker":
            forked_workers.worker(descriptors[1:], request["environment"], kept)
        _watch(request, relay, *descriptors[1:])


def _torch_server():
    return CommandServer((*PRELOADED, *WITH_TORCH))


def _read(descriptor):
    return json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))


def _reap(number, frame):
    with contextlib.suppress(ChildProcessError):  # there is none
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _watch(request, relay, stdin, stdout, stderr, ended):
    """Start the command, and tell its number and how it ended."""
    command = os.fork()
    if command == 0:
        os.close(ended)
        words, cwd, environment = (request[name] for name in ("words", "cwd", "environment"))
        if request.get("session"):
            os.setsid()
        become(["-c", *words], (stdin, stdout, stderr), cwd, environment, buffered=True)
        if not os.environ.get(forked_workers.FRESH):
            _Commanding.line = relay
            subprocess.Popen = _Commanding
        end(_main)
    for place in (0, 1, 2, stdin, stdout, stderr):
        os.close(place)
    os.write(ended, f"{command} ".encode())
    os.write(ended, str(os.waitpid(command, 0)[1]).encode())
    os._exit(0)


class _Commanding(subprocess.Popen):
    """Has the server fork the commands that a command starts, as batches and searches do, and anything else as usual.

    Such a process is the server's child: how it ended is read from a pipe.
    """

    line = None
    _ended = None

    def _execute_child(self, args, *rest):
        given = dict(zip(PLACES, rest, strict=False))
        environment = given["env"] or dict(os.environ)
        words = _words_of(args)
        if words is None or given["pass_fds"] or at_start(environment) != _ENVIRONMENT:
            return super()._execute_child(args, *rest)
        self._ended, end = os.pipe()
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [own if stream == -1 else stream for own, stream in enumerate(streams)]
        request = {
            "words": words, "cwd": str(given["cwd"] or os.getcwd()), "environment": environment,
            "session": given["start_new_session"],
        }  # fmt: skip
        with memory_file(request) as body:
            socket.send_fds(self.line, [b"run"], [body, *streams, end])
        os.close(end)
        self.pid = int(b"".join(iter(lambda: os.read(self._ended, 1).strip(), b"")))
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in PIPES))
        return None

    def _internal_poll(self, *rest, **named):
        if self._ended is None:
            return super()._internal_poll(*rest, **named)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._wait(0)
        return self.returncode

    def _wait(self, timeout):
        if self._ended is None:
            return super()._wait(timeout)
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._ended, 16)))
            os.close(self._ended)
        return self.returncode


def _words_of(args):
    """Return the words of a command line of ours; None for another."""
    if not isinstance(args, list | tuple) or not args or args[0] != sys.executable:
        return None
    words = [str(word) for word in args[1:]]
    words = words[words[:1] == ["-P"] :]
    return words[2:] if words[:2] in OURS else None


def _main():
    from tensortriage.cli import main

    main()

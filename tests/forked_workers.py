"""Workers that need not import everything anew: they are forked from a process that has done so.

A worker does what it does for users, from the text that it is sent to the engine's process that it starts; but both
processes are forks, of the server of commands or, where PyTorch is wanted, of another one that has imported that. What
they import is there at once; until then they do not have it (see `stowed_modules`).
"""

import atexit
import contextlib
import functools
import io
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types

from stowed_modules import StowedModules

AT_START = ("PYTHON", "LANG", "LC_", "LD_", "OMP_", "OPENBLAS_", "COVERAGE_")
"""Beginnings of the variables that are read once, when an interpreter or a library starts."""
FRESH = "TRIAGE_FRESH_COMMANDS"
"""Set where every process is to be an interpreter of its own."""
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
PLACES = (
    *("executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo", "creationflags", "shell"),
    *PIPES,
    *("restore_signals", "gid", "gids", "uid", "umask", "start_new_session"),
)
"""What `subprocess.Popen` hands to the method that starts the child, in order."""
_wanted = threading.local()


def at_start(environment):
    """Return the part of an environment that a process reads once."""
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def install(server):
    """Let workers of this process be forks.

    Args:
        server: Returns what forks them (`worker_line`), where it can (`can_run`); None where there is none.
    """
    from execnet import gateway_io

    from tensortriage.engines.process.workers import Worker

    begin, create = Worker.__init__, gateway_io.create_io

    @functools.wraps(begin)
    def begun(self, interpreter, affinity, package="", *, file=""):
        _wanted.by = (interpreter, package, file)
        try:
            begin(self, interpreter, affinity, package, file=file)
        finally:
            _wanted.by = None

    def created(spec, execmodel):
        by = getattr(_wanted, "by", None)
        if by is None or by[0] != sys.executable or not _is_plain(spec) or (line := _line(server)) is None:
            return create(spec, execmodel)
        process = _Forked(line, "torch" if _wants_torch(*by[1:]) else "plain")
        pipes = gateway_io.Popen2IOMaster.__new__(gateway_io.Popen2IOMaster)
        pipes.popen = process
        gateway_io.Popen2IO.__init__(pipes, process.stdin, process.stdout, execmodel=execmodel)
        return pipes

    Worker.__init__, gateway_io.create_io = begun, created


def _is_plain(spec):
    """Say whether a worker is to start in this environment, as every one does."""
    return bool(spec.popen) and "export " not in shlex.split(spec.python)[2]


def _line(server):
    running = None if os.environ.get(FRESH) else server()
    return running.worker_line if running is not None and running.can_run() else None


def _wants_torch(package, file):
    if package:
        return package.startswith("tensortriage_torch")
    try:
        with open(file, encoding="utf-8") as script:
            return "import torch" in script.read()
    except (OSError, ValueError):
        return False


class _Forked:
    """The process of a worker, as `subprocess.Popen` shows one, though it is a child of the server's."""

    returncode = None

    def __init__(self, line, kind):
        (given, write), (read, taken), (self._ended, end) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout = open(write, "wb", buffering=0), open(read, "rb")  # noqa: SIM115 - its own
        with memory_file({"kind": kind, "environment": dict(os.environ)}) as body:
            socket.send_fds(line, [b"worker"], [body, given, taken, 2, end])
        for descriptor in (given, taken, end):
            os.close(descriptor)
        self.pid = int(os.read(self._ended, 32) or 0)

    def poll(self):
        """Return 0 once it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout=None):
        """Wait for its end, when the last copy of a pipe's end closes."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("worker", timeout)
            os.close(self._ended)
            self.returncode = 0
        return self.returncode

    def kill(self):
        """Kill it."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


@contextlib.contextmanager
def memory_file(content):
    """Hold a document in a file without a name; a message has bounds."""
    descriptor = os.memfd_create("request")
    try:
        os.write(descriptor, json.dumps(content).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def worker(descriptors, environment, kept):
    """Be a worker, in a fork: what execnet starts as ``python -c``, in the root folder and without Ctrl-C.

    Args:
        descriptors: Standard streams, and what is open until it ends.
        environment: All variables.
        kept: Names of the modules that it has from the start.
    """
    ended = descriptors[3]
    os.write(ended, str(os.getpid()).encode())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    become(["-c"], descriptors[:3], "/", environment)
    os.closerange(3, ended)
    os.closerange(ended + 1, os.sysconf("SC_OPEN_MAX"))
    StowedModules(kept)
    subprocess.Popen = _Forking
    end(lambda: exec(eval(sys.stdin.readline()), _main().__dict__))


class _Forking(subprocess.Popen):
    """Starts a worker's engine process as a fork of this one, and anything else as usual."""

    def _execute_child(self, args, *rest):
        given = dict(zip(PLACES, rest, strict=False))
        environment = given["env"] or dict(os.environ)
        if not _is_engine(args) or at_start(environment) != at_start(os.environ):
            return super()._execute_child(args, *rest)
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        self.pid = os.fork()
        if self.pid == 0:
            _engine(args, streams, given["cwd"], environment)
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in PIPES))
        return None


def _is_engine(args):
    return isinstance(args, list) and args[1:4] == ["-u", "-B", "-c"] and "tensortriage_worker" in args[4]


def _engine(args, streams, cwd, environment):
    os.setsid()
    sys.dont_write_bytecode = True
    become(["-c", *args[5:]], streams, cwd or os.getcwd(), environment)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    end(lambda: exec(args[4], _main().__dict__))


def _main():
    sys.modules["__main__"] = types.ModuleType("__main__")
    return sys.modules["__main__"]


def become(argv, streams, cwd, environment, *, buffered=False):
    """Take on what a process is given when it starts."""
    for place, descriptor in enumerate([os.dup(each) for each in streams]):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv[:] = argv
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, f"__{name}__")
        raw = open(place, "wb" if place else "rb", buffering=-1 if buffered else 0, closefd=False)  # noqa: SIM115 - its own
        stream = io.TextIOWrapper(
            raw,
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=name == "stderr" or os.isatty(place),
            write_through=not buffered,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if numbers := sys.modules.get("numpy.random"):
        numbers.seed()


def end(run):
    """Do what a process does and end as it ends."""
    code = 1
    try:
        run()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

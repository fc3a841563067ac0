"""Worker processes, seen from the host: started by execnet, used for one question at a time, pooled, never abandoned.

A `Worker` is a supervisor (see `tensortriage_worker.supervisor`), which lives as long as the connection, and an engine
process, which may die any number of times. The engine's side of the package travels as text, so the interpreter may be
another one that sees nothing of ours. Starting costs a few tenths of a second, so idle workers are kept for the next
compile in this process, whichever engine object asks.
"""

import atexit
import contextlib
import functools
import importlib.resources
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from tensortriage.engines.process.answers import fault_of
from tensortriage.engines.process.gpus import visible_gpus
from tensortriage.engines.process.interpreters import REMOTE, START_SECONDS, execnet_spec, unusable
from tensortriage.engines.process.loaded_code import CodeLog
from tensortriage.engines.process.transport import SharedFolder, Transport, Wire
from tensortriage.errors import EngineMissing, StoreError, UsageError
from tensortriage_worker.loaded import CODE_LOG

MAX_IDLE = 2
KILL_SECONDS = 15.0
SAID_CHARACTERS = 200
"""Characters of a wrong answer that are quoted."""
_PACKAGE = "tensortriage_worker"


class WorkerDied(Exception):
    """The engine process ended without an answer.

    Args:
        death: The supervisor's account: ``code`` (exit status, negative for a signal, None when unknown), ``cause``
            (the reason why it was killed, empty otherwise), ``tail`` (end of its log), ``oom_killed``.
    """

    def __init__(self, death: Mapping[str, Any]) -> None:
        super().__init__(str(death))
        self.death = death


class WorkerTimeout(Exception):
    """No answer within the time allowed; the engine process has been killed."""


class Worker:
    """One supervisor and its engine process; used by one thread at a time.

    Args:
        interpreter: The Python to run: a path, or ``ssh://[USER@]HOST[:PORT][/PATH/TO/PYTHON]``.
        affinity: Identity by which the worker may be reused; see `lease`.
        package: A package that travels there with the worker's own; empty for none.
        file: File of the engine whose code it will load; empty for none.

    Attributes:
        folders: Folders for the exchange of tensors, on its machine, best first.
        transport: How files and tensors get there and back.
        code: Identity of the code that it has loaded; None on another machine.
        hello: First report of the engine process: ``python``, ``executable``, ``numpy``, ``ml_dtypes``, ``pid``.
        alive: Whether the engine process runs.
        closed: Whether it has ended for good.
        own_bytes: Memory of the engine process after its first model was closed, libraries mostly; None until then.
        supervisor_pid: Process id of the supervisor, on its host.

    Raises:
        EngineMissing: When the interpreter cannot be used (``worker-unusable``).
        StoreError: When there is no room for its files (``exchange-full``).
    """

    def __init__(self, interpreter: str, affinity: str, package: str = "", *, file: str = "") -> None:
        import execnet  # 20 ms that only isolated engines need to spend

        self.interpreter = interpreter
        self.affinity = affinity
        self.hello: Mapping[str, Any] = {}
        self.alive = False
        self.closed = False
        self.own_bytes: int | None = None
        self._questions = 0
        self.owner = os.getpid()
        self.folders: tuple[str, ...] = ()
        self._timeout_error: type[Exception] = execnet.TimeoutError
        self._group = execnet.Group()
        atexit.unregister(self._group._cleanup_atexit)  # `close` ends it; execnet would do it by threads, see there
        self.transport: Transport = SharedFolder(())
        self.code: CodeLog | None = None
        try:
            gateway = self._group.makegateway(execnet_spec(interpreter))
            files = {**_texts(_PACKAGE), **(_texts(package) if package else {})}
            self._channel = gateway.remote_exec(files[f"{_PACKAGE}/supervisor.py"])
            self._channel.send(json.dumps({"files": files, "working_folder": os.getcwd()}))
            answer = json.loads(self._channel.receive(timeout=START_SECONDS))
        except (OSError, EOFError, AssertionError, execnet.RemoteError, execnet.HostNotFound) as error:
            self.close()
            raise unusable(interpreter, str(error)) from error
        except BaseException:
            self.close()
            raise
        if "refused" in answer:
            self.close()
            raise StoreError(
                f"the folders of a worker cannot be made: {answer['refused']}",
                slug="exchange-full",
                cure="free memory in /dev/shm and space in the folder for temporary files, or set TMPDIR",
            )
        self.folders = tuple(answer["folders"])
        self.transport = Wire(self) if interpreter.startswith(REMOTE) else SharedFolder(self.folders)
        if self.folders and not interpreter.startswith(REMOTE):
            self.code = CodeLog(Path(self.folders[-1]) / CODE_LOG, file)
        self.supervisor_pid: int = answer["pid"]
        self._watches_memory: bool = answer["watches_memory"]

    def ask(self, request: Mapping[str, Any], *, seconds: float, memory_bytes: int | None = None) -> dict[str, Any]:
        """Send one request to the engine process, started if need be, and return its answer.

        Args:
            request: ``op`` and the arguments of that operation, JSON types only.
            seconds: Longest wait for the answer.
            memory_bytes: Largest resident set of the engine process and its children while it works on this.

        Raises:
            WorkerTimeout: The engine process has been killed for being late.
            WorkerDied: It ended, or was killed for its memory.
            EngineMissing: It cannot be started.
            UsageError: There is a memory limit, and the system of the worker has no /proc to watch it by.
        """
        if memory_bytes is not None and not self._watches_memory:
            raise UsageError(
                "memory can be limited on Linux only", slug="memory-limit-unsupported", cure="leave out --memory-limit"
            )
        try:
            if not self.alive:
                self._start()
            self._questions += 1
            self.send({**request, "memory": memory_bytes, "id": self._questions})
            answer = self._answer(seconds)
            if not isinstance(answer, dict) or answer.get("id") != self._questions:
                raise self.distrusted(f"it said {str(answer)[:SAID_CHARACTERS]!r}")
            return answer
        except self._timeout_error:
            self.kill("time limit")
            raise WorkerTimeout from None
        except KeyboardInterrupt:  # the engine's answer is not needed any more, and would be read as the next one
            self.close()
            raise
        finally:
            if self.code is not None:
                self.code.hear()

    def settle(self) -> bool:
        """Make sure of a live engine process, also when it died between requests; return whether that succeeded."""
        with contextlib.suppress(WorkerDied, WorkerTimeout, EngineMissing):
            self.ask({"op": "close"}, seconds=KILL_SECONDS)
        return not self.closed

    def kill(self, cause: str) -> None:
        """Kill the engine process; the supervisor stays and can start another."""
        if not self.alive:
            return
        try:
            self.send({"op": "kill", "cause": cause})
            while self.alive:
                self._answer(KILL_SECONDS)
        except WorkerDied:
            pass
        except self._timeout_error:
            self.close()

    def close(self) -> None:
        """End supervisor and engine process and remove their folders; calling it twice is harmless."""
        self.alive, self.closed = False, True
        if self.owner != os.getpid():
            return  # a forked child does not own its parent's workers
        for gateway in list(self._group):  # Group.terminate starts threads: Python 3.12.0 and .1 refuse them at exit
            gateway.exit()
            gateway.join(KILL_SECONDS)
            pipes: Any = gateway._io
            try:
                pipes.popen.wait(KILL_SECONDS)
            except subprocess.TimeoutExpired:
                pipes.kill()
                pipes.wait()
        self.transport.close()
        if not self.interpreter.startswith(REMOTE):
            for folder in self.folders:  # the supervisor has done this unless it was killed
                shutil.rmtree(folder, ignore_errors=True)

    def _start(self) -> None:
        try:
            self.send({"op": "start"})
            self.alive, self.own_bytes = True, None
            self.hello = self._answer(START_SECONDS)
        except WorkerDied as error:
            raise unusable(self.interpreter, str(error.death["tail"])) from error
        except self._timeout_error as error:
            self.close()
            raise unusable(self.interpreter, f"its engine process said nothing for {START_SECONDS:g} s") from error
        if fault := fault_of(self.hello, "start") if isinstance(self.hello, dict) else "no greeting":
            raise unusable(self.interpreter, str(self.distrusted(fault).death["cause"]))
        if not self.hello.get("numpy"):
            self.close()
            raise unusable(self.interpreter, str(self.hello.get("reason")))

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        """Send a message or a chunk of a file to the supervisor.

        Raises:
            WorkerDied: When the connection is lost.
        """
        try:
            self._channel.send(message if isinstance(message, bytes) else json.dumps(message))
        except OSError as error:
            raise self._lost(error) from error

    def receive(self, seconds: float) -> Any:
        """Wait for a message or a chunk of a file from the supervisor.

        Raises:
            WorkerDied: When the engine process ended meanwhile, or the connection is lost or silent for too long.
        """
        try:
            return self._answer(seconds)
        except self._timeout_error as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> WorkerDied:
        self.close()
        return WorkerDied({"code": None, "cause": "the connection to its process is lost", "tail": str(error)})

    def _answer(self, seconds: float) -> Any:
        try:
            item = self._channel.receive(timeout=min(seconds, threading.TIMEOUT_MAX))
        except self._timeout_error:
            raise
        except (EOFError, OSError, self._channel.RemoteError) as error:
            raise self._lost(error) from error
        if isinstance(item, bytes):
            return item
        answer = _parsed(item)
        if answer is None:
            raise self.distrusted(f"it said {str(item)[:SAID_CHARACTERS]!r}")
        if "died" in answer:
            self.alive = False
            raise WorkerDied(answer["died"])
        return answer

    def distrusted(self, what: str) -> WorkerDied:
        """End a worker that breaks the protocol, and return the error to raise."""
        self.close()
        return WorkerDied({"code": None, "cause": f"its process gave an unexpected answer: {what}", "tail": ""})


def _parsed(text: object) -> dict[str, Any] | None:
    """Return a message; None when it is none."""
    try:
        message = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


_idle: list[Worker] = []
_lock = threading.Lock()


def lease(interpreter: str, affinity: str, package: str = "", *, file: str = "") -> Worker:
    """Return an idle worker, or a new one, for the exclusive use of the caller until `give_back`.

    Args:
        interpreter: Path of the Python to run; checked once per process unless it is our own.
        affinity: Workers are reused only for the same affinity, so that one script's leftovers never meet another's.
        package: As for `Worker`; part of the affinity.
        file: Likewise.

    Raises:
        EngineMissing: When the interpreter cannot be used (``worker-unusable``).
    """
    while True:
        with _lock:
            fitting = [w for w in _idle if (w.interpreter, w.affinity, w.owner) == (interpreter, affinity, os.getpid())]
            if not fitting:
                break
            _idle.remove(fitting[-1])
        code = fitting[-1].code
        if (code is None or code.current) and fitting[-1].settle():
            return fitting[-1]
        fitting[-1].close()
    return Worker(interpreter, affinity, package, file=file)


def give_back(worker: Worker) -> None:
    """Keep a worker for the next `lease`; the oldest idle one is ended when there are more than `MAX_IDLE`, or GPUs."""
    if worker.closed:
        return
    with _lock:
        _idle.append(worker)
        surplus = [_idle.pop(0) for _ in range(len(_idle) - max(MAX_IDLE, len(visible_gpus())))]
    for old in surplus:
        old.close()


@atexit.register
def close_idle() -> None:
    """End every idle worker."""
    with _lock:
        workers, _idle[:] = list(_idle), []
    for worker in workers:
        worker.close()


@functools.cache
def _texts(package: str) -> Mapping[str, str]:
    """Return the text of every module of a package by its path, and none for the packages around it."""

    def texts(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
        for entry in folder.iterdir():
            if entry.is_dir():
                yield from texts(entry, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".py"):
                yield prefix + entry.name, entry.read_text(encoding="utf-8")

    *around, _ = package.split(".")
    empty = {"/".join([*around[: depth + 1], "__init__.py"]): "" for depth in range(len(around))}
    return empty | dict(texts(importlib.resources.files(package), package.replace(".", "/") + "/"))

"""Supervises an engine's process: starts it, relays to it, watches its memory, reports its death, leaves no trace.

An engine that crashes, hangs or eats memory takes its own process down, so another process on the same machine must
remain to report it. That is this module. It is sent as source text to the chosen interpreter (on this host or another
one) and needs nothing but the standard library: no engine, no numpy, nothing that could fail with the engine. When the
connection to its host closes, for whatever reason, it kills the engine's process and all that it started, removes its
folders and ends; so not even ``kill -9`` of the host leaves a process or a file behind.

Messages are JSON texts. From the host: ``start``, ``kill``, ``store``, ``fetch`` and ``remove`` are for the supervisor,
anything else is for the engine's process (field ``memory``: the largest resident set, in bytes, allowed while it works
on this). To the host: the engine's answers as they come, and ``{"died": {...}}`` once per start, when the process ends.
A host on another machine moves files with ``store`` and ``fetch``: the bytes follow as they are, in chunks.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import IO, Any

PREFIX = "tensortriage-worker-"
BUSY_POLL_SECONDS = 0.02
IDLE_POLL_SECONDS = 1.0
LOG_LIMIT_BYTES = 16 << 20
TAIL_BYTES = 4000
FAST_FOLDER = "/dev/shm"
FAST_FOLDER_MINIMUM_BYTES = 32 << 20
STALE_SECONDS = 60.0
KILL_SECONDS = 5.0
CHUNK_BYTES = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_BOOT = (
    "import sys; sys.path[:] = [sys.argv[1], *filter(None, sys.path)]; "  # without the current folder
    "from tensortriage_worker.serve import main; main()"
)


class Supervisor:
    """One engine process at a time, and the folders through which it exchanges tensors with the host.

    Args:
        host: The execnet channel to the host.
        working_folder: Current folder of engine processes, where it exists here.

    Attributes:
        folders: Folders for the exchange of tensors, best first; all are removed at the end.
    """

    def __init__(self, host: Any, working_folder: str) -> None:
        self._host = host
        self._working_folder = working_folder if os.path.isdir(working_folder) else None
        self._inbox = queue.Queue()  # type: queue.Queue[tuple[int, Any]]
        self._generation = 0  # of the engine process; 0 marks messages of the host
        self._process = None  # type: subprocess.Popen[bytes] | None
        self._watch = None  # type: MemoryWatch | None
        self._cause = ""
        self._oom_kills = 0
        self._locks = []  # type: list[IO[bytes]]
        self._incoming = None  # type: IO[bytes] | None
        self._missing_bytes = 0
        self._home = self._new_folder(tempfile.gettempdir())
        self._log = os.path.join(self._home, "engine.log")
        self.folders = [self._home]
        if has_room(FAST_FOLDER, FAST_FOLDER_MINIMUM_BYTES):
            self.folders.insert(0, self._new_folder(FAST_FOLDER))

    def unpack(self, files: dict[str, str]) -> None:
        """Write the modules of the engine's side, by path, to where the engine's process imports them from."""
        for name, text in files.items():
            path = os.path.join(self._home, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def serve(self) -> None:
        """Work until the host goes away."""
        self._host.setcallback(lambda text: self._inbox.put((0, text)), endmarker=None)
        try:
            while self._step():
                pass
        finally:
            self._kill("the host is gone")
            for folder in self.folders:
                shutil.rmtree(folder, ignore_errors=True)
            for lock in self._locks:
                lock.close()

    def _step(self) -> bool:
        try:
            generation, text = self._inbox.get(timeout=BUSY_POLL_SECONDS if self._watch else IDLE_POLL_SECONDS)
        except queue.Empty:
            self._look_after()
            return True
        if generation == 0:
            if text is None:
                return False
            if isinstance(text, bytes):
                self._append(text)
            else:
                self._from_host(json.loads(text), text)
        elif generation == self._generation and self._process is not None:
            if text:
                self._watch = None
                self._host.send(text.decode("ascii", "backslashreplace"))
            else:
                self._report_death()
        return True

    def _from_host(self, message: dict[str, Any], text: str) -> None:
        if message["op"] == "start":
            self._start()
        elif message["op"] == "kill":
            self._kill(message["cause"])
        elif message["op"] == "store":
            self._store(message["name"], message["bytes"])
        elif message["op"] == "fetch":
            self._fetch(message["path"])
        elif message["op"] == "remove":
            self._remove(message["path"])
        elif self._process is not None and self._process.stdin is not None:
            self._watch = MemoryWatch(message.get("memory"))
            # A broken pipe needs no answer: the death behind it is reported anyway.
            with contextlib.suppress(OSError):
                self._process.stdin.write(text.encode("ascii") + b"\n")

    def _store(self, name: str, size: int) -> None:
        """Make a file of a size that the host will send, under a name if it has one, else where there is room."""
        folders = [folder for folder in self.folders if has_room(folder, size + FAST_FOLDER_MINIMUM_BYTES)]
        if not folders:
            self._tell({"refused": "no room for {} MB in {}".format(size >> 20, " or ".join(self.folders))})
            return
        path = os.path.join(self._home, name) if name else os.path.join(folders[0], uuid.uuid4().hex + ".safetensors")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._incoming, self._missing_bytes = open(path, "wb"), size  # noqa: SIM115 - open until the last chunk
        self._tell({"storing": path})
        self._append(b"")

    def _append(self, chunk: bytes) -> None:
        assert self._incoming is not None
        self._incoming.write(chunk)
        self._missing_bytes -= len(chunk)
        if self._missing_bytes == 0:
            self._incoming.close()
            self._incoming = None
            self._tell({"stored": True})

    def _fetch(self, path: str) -> None:
        """Send a file, which is then gone; only files of the exchange folders, even if the process names others."""
        try:
            if os.path.dirname(path) not in self.folders:
                raise OSError("outside of the exchange folders")
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
        except OSError as error:
            self._tell({"refused": "{}: {}".format(path, error)})
            return
        with file:
            os.unlink(path)
            self._tell({"bytes": os.fstat(file.fileno()).st_size})
            for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
                self._host.send(chunk)

    def _remove(self, path: str) -> None:
        """Remove a file, or the folder of its own that a named file was stored in."""
        if os.path.dirname(path) not in self.folders:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def _tell(self, message: dict[str, Any]) -> None:
        self._host.send(json.dumps(message))

    def _start(self) -> None:
        self._kill("replaced")
        self._generation += 1
        self._cause, self._oom_kills = "", count_oom_kills()
        open(self._log, "wb").close()
        with open(self._log, "ab") as log:  # appending, so that the file may be cut short under its writer
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-B", "-c", _BOOT, self._home, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._working_folder,
                env=self._environment(),
                start_new_session=True,
                bufsize=0,
            )
        self._watch = MemoryWatch(None)
        reader = threading.Thread(target=self._read, args=(self._process.stdout, self._generation), daemon=True)
        reader.start()

    def _environment(self) -> dict[str, str]:
        """Return this process's variables, with every place for temporary files inside a folder of ours."""
        scratch = os.path.join(self._home, "tmp")
        os.makedirs(scratch, exist_ok=True)
        places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), scratch)
        return {**os.environ, "CUDA_CACHE_PATH": os.path.join(scratch, "cuda"), **places}

    def _read(self, pipe: IO[bytes], generation: int) -> None:
        with contextlib.suppress(OSError, ValueError), open(pipe.fileno(), "rb", closefd=False) as answers:
            for line in answers:
                self._inbox.put((generation, line.rstrip(b"\n")))
        self._inbox.put((generation, b""))

    def _look_after(self) -> None:
        """Check conditions that no message reports: a death behind an open pipe of a grandchild, memory, a huge log."""
        process = self._process
        if process is None:
            return
        if process.poll() is not None:
            self._report_death()
        elif self._watch is not None and self._watch.exceeded():
            self._kill("memory")
        if os.path.getsize(self._log) > LOG_LIMIT_BYTES:
            os.truncate(self._log, 0)

    def _kill(self, cause: str) -> None:
        if self._process is not None:
            self._cause = cause
            self._process.kill()
            self._report_death()

    def _report_death(self) -> None:
        process = self._process
        if process is None:
            return
        self._process = self._watch = None
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process stuck in a driver outlives SIGKILL
            code = process.wait(timeout=KILL_SECONDS)
        kill_descendants(process.pid)
        if process.stdin is not None:
            process.stdin.close()
        death = {
            "code": code,
            "cause": self._cause,
            "tail": self._tail(),
            "oom_killed": code == -signal.SIGKILL and not self._cause and count_oom_kills() > self._oom_kills,
        }
        for folder in self.folders:
            for leftover in glob.glob(os.path.join(folder, "*.safetensors*")):
                with contextlib.suppress(OSError):
                    os.unlink(leftover)
        with contextlib.suppress(OSError):  # the host may be gone
            self._tell({"died": death})

    def _tail(self) -> str:
        with open(self._log, "rb") as log:
            log.seek(max(0, os.path.getsize(self._log) - TAIL_BYTES))
            return log.read().decode("utf-8", "replace")

    def _new_folder(self, parent: str) -> str:
        import fcntl  # which Windows lacks; the host imports this module there, and no supervisor runs

        sweep_stale_folders(parent)
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        lock = open(os.path.join(folder, "lock"), "wb")  # noqa: SIM115 - held until this process ends
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._locks.append(lock)
        return folder


class MemoryWatch:
    """Resident memory of the engine's process and all that it started, while it works on one request.

    Args:
        limit_bytes: Largest total resident set; None for no limit.
    """

    def __init__(self, limit_bytes: int | None) -> None:
        self._limit_bytes = limit_bytes
        self._pids = []  # type: list[int]
        self._polls = 0

    def exceeded(self) -> bool:
        """Measure once; return whether the limit is exceeded."""
        if self._limit_bytes is None:
            return False
        if self._polls % 10 == 0:  # finding descendants costs more than reading sizes
            self._pids = descendants(os.getpid())
        self._polls += 1
        return sum(map(resident_bytes, self._pids)) > self._limit_bytes


def resident_bytes(pid: int) -> int:
    """Return the resident set of a process; 0 when it is gone."""
    try:
        with open("/proc/{}/statm".format(pid)) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes that `pid` started, directly or not."""
    found = []  # type: list[int]
    for path in glob.glob("/proc/{}/task/*/children".format(pid)):
        with contextlib.suppress(OSError, ValueError), open(path) as file:
            for child in map(int, file.read().split()):
                found += [child, *descendants(child)]
    return found


def count_oom_kills() -> int:
    """Return the number of processes that the kernel's out-of-memory killer ended since boot; 0 where unknown."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that a daemon cannot slip away."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants(leader: int) -> None:
    """Kill all processes that the engine's process, ``leader``, started: its process group and adopted orphans."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        orphans = descendants(os.getpid())
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(OSError):  # most are children of others that die as well
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.001)


def has_room(folder: str, minimum_bytes: int) -> bool:
    """Return whether a folder is writable and has at least so much free space."""
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= minimum_bytes
    except OSError:
        return False


def sweep_stale_folders(parent: str) -> None:
    """Remove folders of supervisors that ended without removing them: their lock is free."""
    import fcntl

    for folder in glob.glob(os.path.join(parent, PREFIX + "*")):
        with contextlib.suppress(OSError):
            if time.time() - os.path.getmtime(folder) < STALE_SECONDS:
                continue  # perhaps just made and not locked yet
            with open(os.path.join(folder, "lock"), "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


def main(host: Any) -> None:
    """Be the supervisor of a host at the other end of an execnet channel."""
    with contextlib.suppress(OSError):
        os.setsid()  # Ctrl-C at the host's terminal is the host's business
    adopt_orphans()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    greeting = json.loads(host.receive())
    try:
        supervisor = Supervisor(host, greeting["working_folder"])
        supervisor.unpack(greeting["files"])
    except OSError as error:
        host.send(json.dumps({"refused": str(error)}))
        return
    watches_memory = resident_bytes(os.getpid()) > 0
    # What goes wrong from here on is the host's to tell, which sees the connection end: execnet's own report of an
    # exception would be a traceback on the user's terminal.
    with contextlib.suppress(Exception, KeyboardInterrupt):
        host.send(json.dumps({"folders": supervisor.folders, "pid": os.getpid(), "watches_memory": watches_memory}))
        supervisor.serve()


if __name__ == "__channelexec__":
    main(globals()["channel"])  # execnet puts it there

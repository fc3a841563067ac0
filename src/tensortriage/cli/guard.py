"""A command runs in a child of the process that the user started; the parent reports how the child ended.

Native code can die of a signal, sit in a loop that no Ctrl-C interrupts, or take more memory than was allowed; a
process cannot report that about itself. So the parent does nothing but wait. It passes signals on, ends a child that
does not listen, watches its memory, and removes the folder that all temporary files of the command are in. A child that
crashes is started once more with the engines that live in this process moved to workers, where a crash is an outcome.
"""

import atexit
import contextlib
import ctypes
import dataclasses
import gc
import logging
import mmap
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage_worker.silence import APART

GRACE_SECONDS = 1.5
"""Seconds that a child may take to end by itself after a request to end."""
CLUSTER_GRACE_SECONDS = 10.0
"""Seconds to end with a cluster: Ray, when it exits, waits a second for each of seven kinds of processes."""
WRITING_GRACE_SECONDS = 30.0
"""Seconds to end where results must still be written, after a call of native code that has to return first."""
LOOK_SECONDS = 0.1
STALE_SECONDS = 60.0
"""Seconds after which a folder without a lock is stale; before, its owner may be about to lock it."""
SCRATCH = "triage-run-"
_shared: list[mmap.mmap] = []  # in the child: memory shared with its parent, for its progress
TELLING, ANSWERING, _CODE, CLUSTER, WRITES = range(5)
"""Places in the shared memory: an end is being reported, stdout has a document, the exit code plus one, a cluster is
used, which takes time to shut down, an interruption leaves a file."""
_PR_SET_PDEATHSIG = 1
_FROM_TERMINAL = 128  # SI_KERNEL: the terminal sent it, to the child as well
_CRASHES = frozenset(getattr(signal, name, -1) for name in ("SIGSEGV", "SIGFPE", "SIGBUS", "SIGILL", "SIGABRT"))


@frozen_dataclass
class Ending:
    """How a child ended.

    Attributes:
        code: Exit code; None when a signal ended the child.
        signal: The signal, else 0.
        cause: Why it was killed: ``interrupted``, ``memory`` (beyond the limit given) or `NO_MEMORY`; else empty.
        told: Whether the child had begun to report its end.
        answered: Whether it had begun a document on standard output, which takes no other.
    """

    code: int | None
    signal: int = 0
    cause: str = ""
    told: bool = False
    answered: bool = False

    @property
    def crashed(self) -> bool:
        """Whether it ended by a fault of its own."""
        return not self.cause and self.signal in _CRASHES

    def with_shared(self, shared: mmap.mmap) -> "Ending":
        """Return the ending with the child's own account: a settled exit code counts, whatever a library did later."""
        code = shared[_CODE] - 1 if shared[_CODE] else self.code
        return dataclasses.replace(self, code=code, told=bool(shared[TELLING]), answered=bool(shared[ANSWERING]))


NO_MEMORY = "no-memory"
"""Cause of an ending: the kernel had no memory for it."""


def possible(words: Sequence[str]) -> bool:
    """Whether a command is to be guarded: not on systems without these calls, and not when it only prints its help."""
    helps = not words or bool({"-h", "--help", "--help-all", "-V", "--version"} & {*words})
    return sys.platform.startswith("linux") and hasattr(signal, "sigtimedwait") and not helps


def start(memory_bytes: int | None) -> Ending | None:
    """Return None in a new child, which is to do the work, and how it ended in this process.

    Args:
        memory_bytes: Largest resident memory of the child, files that it maps not counted; None for no limit.
    """
    asked_to_end = {
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    }
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asked_to_end | {signal.SIGCHLD})
    scratch, parent, shared = _Scratch(), os.getpid(), mmap.mmap(-1, mmap.PAGESIZE)
    gc.freeze()  # the collector would write to every object there is, and every page be copied
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        if scratch.folder:
            os.environ["TMPDIR"] = scratch.folder
        _shared.append(shared)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        atexit.register(_leave)
        return None
    try:
        return _wait(child, asked_to_end | {signal.SIGCHLD}, memory_bytes, shared).with_shared(shared)
    finally:
        scratch.remove()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_child() -> bool:
    """Whether another process answers for this one."""
    return bool(_shared)


def about_to(event: int) -> None:
    """Notify the parent of what this process is about to do: `TELLING`, `ANSWERING`, `CLUSTER` or `WRITES`."""
    _share(event, 1)


def settle(code: int) -> None:
    """Notify the parent of the exit code: only the end of the process is left."""
    _share(_CODE, code + 1)


def _leave() -> None:
    """End this process, if its exit code is settled: what it holds, the system frees in a fraction of Python's time.

    Threads have ended by now, and handlers of libraries that were imported since the start have run.
    """
    code = max((shared[_CODE] for shared in _shared), default=0)
    if code:
        with contextlib.suppress(OSError, ValueError):  # a closed stream: the answer is out
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
        logging.shutdown()  # registered before
        os._exit(code - 1)


def _share(place: int, value: int) -> None:
    for shared in _shared:
        shared[place] = value


def _wait(child: int, heard: set[signal.Signals], memory_bytes: int | None, shared: mmap.mmap) -> Ending:
    from tensortriage_worker.supervisor import count_oom_kills

    deadline, cause, signals, kills = None, "", 0, count_oom_kills()
    while True:
        watching = memory_bytes is not None or deadline is not None
        info = signal.sigtimedwait(heard, LOOK_SECONDS) if watching else signal.sigwaitinfo(heard)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code >= 0:
                return Ending(code, cause=cause)
            # An interpreter on its way out has the system's own handlers again.
            cause = cause or ("interrupted" if -code == signals else "")
            if not cause and -code == signal.SIGKILL and count_oom_kills() > kills:
                cause = NO_MEMORY
            return Ending(None, -code, cause)
        if info is not None and info.si_signo != signal.SIGCHLD:
            grace = CLUSTER_GRACE_SECONDS if shared[CLUSTER] else GRACE_SECONDS
            grace = WRITING_GRACE_SECONDS if shared[WRITES] else grace
            signals, deadline = info.si_signo, deadline or time.monotonic() + grace
            if info.si_code != _FROM_TERMINAL:
                os.kill(child, info.si_signo)
        if deadline is not None and time.monotonic() > deadline:
            cause = cause or "interrupted"
        elif memory_bytes is not None and anonymous_bytes(child) > memory_bytes:
            cause = cause or "memory"
        if cause:
            os.kill(child, signal.SIGKILL)


def anonymous_bytes(pid: int) -> int:
    """Return the resident memory of a process that belongs to no file; 0 when it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


class _Scratch:
    """The folder for temporary files of one command; none where it cannot be made.

    It is locked as long as the command lives, so that the next command knows which folders to remove after a
    ``kill -9``.
    """

    def __init__(self) -> None:
        parent = Path(os.environ.get("TMPDIR") or "/tmp").absolute()
        self.folder = ""
        with contextlib.suppress(OSError):
            _sweep(parent)
            folder = parent / f"{SCRATCH}{os.urandom(8).hex()}"
            folder.mkdir(mode=0o700)
            self.folder = str(folder)
            self._lock = open(folder / ".lock", "wb")  # noqa: SIM115 - held until the process ends
            import fcntl  # which Windows lacks; nothing is guarded there

            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove the folders of commands that are no more."""
    for entry in os.scandir(parent):
        if not entry.name.startswith(SCRATCH) or not entry.is_dir(follow_symlinks=False):
            continue
        with contextlib.suppress(OSError):
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE_SECONDS and not _is_held(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_held(folder: str) -> bool:
    import fcntl

    try:
        with open(os.path.join(folder, ".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def move_engines_apart() -> None:
    """Move engines of this process to workers from now on, also in processes that this one starts."""
    os.environ[APART] = "1"

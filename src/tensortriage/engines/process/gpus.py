"""The GPUs of this machine, shared out among jobs that run side by side: each job sees one of its own.

A process that a job starts, an engine's or a command, finds ``CUDA_VISIBLE_DEVICES`` naming that GPU. Jobs one after
the other stay where CUDA puts them, on the first GPU, so that nothing in one diagnosis depends on which GPU was free.
"""

import contextlib
import contextvars
import itertools
import os
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

VARIABLE = "CUDA_VISIBLE_DEVICES"
_NAME = re.compile(r"\w[\w.:-]*(/[\w.:-]+)*")
_FILE = re.compile(r"nvidia\d+")
_own: contextvars.ContextVar[str] = contextvars.ContextVar("own_gpus", default="")


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them.

    They are those of that variable up to the first that is none, such as -1, where it is set; else as many as there are
    device files (NVIDIA's driver makes ``/dev/nvidia0``, ... and a container has those it was given),
    by CUDA's numbers.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return tuple(itertools.takewhile(_NAME.fullmatch, (word.strip() for word in named.split(","))))
    found = [file for file in Path("/dev").glob("nvidia*") if _FILE.fullmatch(file.name)]
    return tuple(str(number) for number in range(len(found)))


def own_gpus() -> str:
    """Return ``CUDA_VISIBLE_DEVICES`` for the processes of this job; empty to leave it unchanged."""
    return _own.get()


def with_own_gpus() -> dict[str, str] | None:
    """Return the environment for the processes of this job; None for that of this process."""
    own = own_gpus()
    return {**os.environ, VARIABLE: own} if own else None


class Gpus:
    """Shares GPUs out, to any number of threads.

    Args:
        names: As `visible_gpus` gives them. With fewer than two there is nothing to share out.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._jobs = dict.fromkeys(names, 0)
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def taken(self, count: int = 1) -> Iterator[str]:
        """Give this thread those that the fewest jobs use, until the block is left.

        Args:
            count: How many; all there are where they are fewer, none for zero.

        Yields:
            The value of `own_gpus` meanwhile.
        """
        if len(self._jobs) < 2 or count < 1:
            yield own_gpus()
            return
        with self._lock:
            chosen = sorted(self._jobs, key=self._jobs.__getitem__)[:count]
            for name in chosen:
                self._jobs[name] += 1
        token = _own.set(",".join(chosen))
        try:
            yield own_gpus()
        finally:
            _own.reset(token)
            with self._lock:
                for name in chosen:
                    self._jobs[name] -= 1

"""Checks in several processes at once; one that crashes or hangs is an unresolved check, never the end of the search.

Every process gets the pickled oracle once and then one question at a time. A process that dies or exceeds the time
limit is killed with everything it started, its question is unresolved, and a new one takes its place. A thread in each
process watches a pipe that closes when the searching process is gone, so that not even kill -9 leaves one behind.
"""

import collections
import contextlib
import dataclasses
import multiprocessing
import os
import pickle
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, Self

from tensortriage.errors import EngineCrashed, UsageError
from tensortriage.search.execution.executors import OracleAnswer, OracleQuestion
from tensortriage.search.problem import CandidateOutcome, Oracle, OracleVerdict, T

START_SECONDS = 120.0
"""Longest time for a process to import what the oracle needs."""
LOOK_SECONDS = 3600.0
"""Longest wait before looking again; the system's own limit is lower than infinity."""


@dataclasses.dataclass
class _Worker(Generic[T]):
    process: BaseProcess
    pipe: Connection
    lifeline: Connection
    deadline: float
    ready: bool = False
    question: OracleQuestion[T] | None = None
    begun: float = 0.0


class ProcessPool(Generic[T]):
    """Runs checks in processes of their own (spawned, not forked); close it, or use it as a context manager.

    Args:
        oracle: Sent to every process by pickle, so its module must be importable there.
        workers: Checks at once.
        timeout_seconds: Longest check; None for no limit.

    Raises:
        UsageError: For no workers, or an oracle that cannot be pickled (``check-not-portable``).
    """

    def __init__(self, oracle: Oracle[T], *, workers: int, timeout_seconds: float | None = None) -> None:
        if workers < 1:
            raise UsageError(f"{workers} workers cannot check", slug="search-workers-invalid", cure="give 1 or more")
        try:
            self._oracle = pickle.dumps(oracle)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise UsageError(
                f"the check cannot be sent to other processes: {error}",
                slug="check-not-portable",
                cure="make it an object of a class at the top of an importable module, or check in this process",
            ) from error
        self._limit = workers
        self._timeout = timeout_seconds
        self._workers: list[_Worker[T]] = []
        self._queue: collections.deque[OracleQuestion[T]] = collections.deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, question: OracleQuestion[T], /) -> None:
        """Take a question; it starts as soon as a process is free."""
        self._queue.append(question)
        free = sum(worker.question is None for worker in self._workers)
        if free < len(self._queue) and len(self._workers) < self._limit:
            self._start()
        self._hand_out()

    def idle(self) -> int:
        """Return how many more questions could start at once; below zero when some are waiting."""
        busy = sum(worker.question is not None for worker in self._workers)
        return self._limit - busy - len(self._queue)

    def wait(self) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Wait until at least one question is answered, and return all that are.

        Raises:
            EngineCrashed: When a process ends before it could take a question (``check-worker-died``).
        """
        answered: list[tuple[OracleQuestion[T], OracleAnswer]] = []
        while not answered:
            seconds = min(worker.deadline for worker in self._workers) - time.monotonic()
            heard = wait([worker.pipe for worker in self._workers], min(max(seconds, 0.0), LOOK_SECONDS))
            for worker in list(self._workers):
                if worker.pipe in heard:
                    answered += self._hear(worker)
                elif time.monotonic() >= worker.deadline:
                    answered += self._lose(worker, "took longer than its time limit")
            self._hand_out()
        return answered

    def close(self) -> None:
        """Kill all processes, whatever they are doing."""
        while self._workers:
            _kill(self._workers.pop())

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        watched, lifeline = context.Pipe(duplex=False)
        process = context.Process(target=_serve, args=(theirs, watched), daemon=True)
        process.start()
        theirs.close()
        watched.close()
        self._workers.append(_Worker(process, ours, lifeline, time.monotonic() + START_SECONDS))
        with contextlib.suppress(OSError):  # died at once: noticed when its answer is waited for
            ours.send_bytes(self._oracle)

    def _hand_out(self) -> None:
        for worker in self._workers:
            if self._queue and worker.ready and worker.question is None:
                worker.question = self._queue.popleft()
                worker.begun = time.monotonic()
                worker.deadline = worker.begun + (float("inf") if self._timeout is None else self._timeout)
                with contextlib.suppress(OSError):  # likewise
                    worker.pipe.send((worker.question.candidate, worker.question.attempt))

    def _hear(self, worker: _Worker[T]) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        try:
            told = worker.pipe.recv()
        except Exception:  # closed, or what came cannot be read; either way this process is of no more use
            worker.process.join(1.0)
            return self._lose(worker, f"died ({_reason(worker.process.exitcode)})")
        worker.deadline = float("inf")
        if worker.question is None:
            if isinstance(told, BaseException):
                raise told
            worker.ready = True
            return []
        question, worker.question = worker.question, None
        seconds = time.monotonic() - worker.begun
        if isinstance(told, BaseException):
            return [(question, OracleAnswer(None, seconds, error=told))]
        return [(question, OracleAnswer(told, seconds))]

    def _lose(self, worker: _Worker[T], reason: str) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Give up a process, and replace it while there is work."""
        self._workers.remove(worker)
        _kill(worker)
        if not worker.ready:
            raise EngineCrashed(
                f"a process for checks did not get to its first check: it {reason}",
                slug="check-worker-died",
                cure="run the check in this process to see why",
            )
        if self._queue:
            self._start()
        if worker.question is None:
            return []
        verdict = OracleVerdict(CandidateOutcome.UNRESOLVED, detail=f"the process of the check {reason}")
        return [(worker.question, OracleAnswer(verdict, time.monotonic() - worker.begun))]


def _reason(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}"
    return f"exit code {code}"


def _kill(worker: _Worker[T]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if worker.ready and worker.process.pid is not None:
            os.killpg(worker.process.pid, signal.SIGKILL)
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
    worker.lifeline.close()


def _serve(pipe: Connection, lifeline: Connection) -> None:
    """Answer questions until the other end closes: the body of a process of the pool."""
    os.setsid()  # Ctrl-C is for the searching process, and a kill reaches what the check has started
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()
    try:
        oracle = pickle.loads(pipe.recv_bytes())
    except Exception as error:
        pipe.send(_portable(error))
        return
    pipe.send(None)
    while True:
        try:
            candidate, attempt = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(oracle(candidate, attempt))
        except Exception as error:
            pipe.send(_portable(error))


def _die_with(lifeline: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv()
    os.killpg(0, signal.SIGKILL)


def _portable(error: Exception) -> Exception:
    """Return an exception that survives pickling."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

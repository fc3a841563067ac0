"""Checks that wait for other processes need no processes of their own: several at once, a thread and a GPU for each."""

import concurrent.futures
import time
from typing import Generic

from tensortriage.engines.process.gpus import Gpus, visible_gpus
from tensortriage.search.execution.executors import OracleAnswer, OracleQuestion
from tensortriage.search.problem import Oracle, T


class Threads(Generic[T]):
    """Runs checks in threads; the oracle must bear that.

    Args:
        oracle: Judges a candidate.
        jobs: Checks at once.
    """

    def __init__(self, oracle: Oracle[T], *, jobs: int) -> None:
        self._oracle = oracle
        self._jobs = jobs
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="check")
        self._gpus = Gpus(visible_gpus())
        self._running: dict[concurrent.futures.Future[OracleAnswer], OracleQuestion[T]] = {}

    def submit(self, question: OracleQuestion[T], /) -> None:
        """Take a question."""
        self._running[self._pool.submit(self._answer, question)] = question

    def idle(self) -> int:
        """Return how many more questions could start at once."""
        return self._jobs - len(self._running)

    def wait(self) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Wait until at least one submitted question is answered, and return all that are."""
        done, _ = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED)
        return [(self._running.pop(future), future.result()) for future in done]

    def close(self) -> None:
        """Wait for running tasks; drop waiting ones."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _answer(self, question: OracleQuestion[T]) -> OracleAnswer:
        started = time.perf_counter()
        try:
            with self._gpus.taken():
                verdict = self._oracle(question.candidate, question.attempt)
        except Exception as error:  # handed to the search, which raises it where the answer is needed
            return OracleAnswer(None, time.perf_counter() - started, error=error)
        return OracleAnswer(verdict, time.perf_counter() - started)

"""Where checks run: a small border, so that a search can use this thread, other processes, or one day a cluster."""

import collections
import time
from typing import Generic, Protocol

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.search.problem import Oracle, OracleVerdict, T

HASHED = 64
"""Items of a candidate that its hash depends on, evenly spread: leaving one out moves all that follow."""


@frozen_dataclass
class OracleQuestion(Generic[T]):
    """One run of the oracle: a candidate in the order of the problem, and the number of the run among equal ones."""

    candidate: tuple[T, ...]
    attempt: int

    def __hash__(self) -> int:
        """Return a hash of a sample of the items; hashing all of them is expensive where there are many."""
        return hash((self.candidate[:: len(self.candidate) // HASHED + 1], len(self.candidate), self.attempt))


@frozen_dataclass
class OracleAnswer:
    """The result of one run of the oracle.

    Attributes:
        verdict: The verdict; None when the oracle raised.
        seconds: How long it took; 0 when cached.
        cached: Whether it is from an earlier search.
        error: Exception that the oracle raised.
    """

    verdict: OracleVerdict | None
    seconds: float
    cached: bool = False
    error: BaseException | None = None


class Executor(Protocol[T]):
    """Runs checks. The search never depends on the order in which they end."""

    def submit(self, question: OracleQuestion[T], /) -> None:
        """Take a question; never waits."""
        ...

    def idle(self) -> int:
        """Return how many more questions could start at once."""
        ...

    def wait(self) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Wait until at least one submitted question is answered, and return all that are."""
        ...


class InProcess(Generic[T]):
    """Runs checks one at a time in the calling thread; the oracle guards itself against crashes and hangs."""

    def __init__(self, oracle: Oracle[T]) -> None:
        self._oracle = oracle
        self._queue: collections.deque[OracleQuestion[T]] = collections.deque()

    def submit(self, question: OracleQuestion[T], /) -> None:
        """Take a question."""
        self._queue.append(question)

    def idle(self) -> int:
        """Return 0 as soon as there is one question: a second could not run next to it."""
        return 0 if self._queue else 1

    def wait(self) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Answer the question that was submitted first; errors of the oracle are raised."""
        question = self._queue.popleft()
        started = time.perf_counter()
        verdict = self._oracle(question.candidate, question.attempt)
        return [(question, OracleAnswer(verdict, time.perf_counter() - started))]

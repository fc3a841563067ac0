"""Checks on a cluster: shared data are sent once, then one question at a time; lost questions are asked again.

Until there is something to send (the first checks say what is searched for) questions are answered in this process. A
check that takes worker after worker with it is an unresolved check.
"""

import collections
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tensortriage.sdk import CandidateOutcome, Oracle, OracleAnswer, OracleQuestion, OracleVerdict, WorkerLost
from tensortriage_fleet.cluster.cluster_spec import TaskNeeds
from tensortriage_fleet.cluster.ray_cluster import Cluster, Shared

T = TypeVar("T")


class ClusterChecks(Generic[T]):
    """Runs checks on a cluster; close it.

    Args:
        cluster: The cluster.
        needs: What a check needs of a node.
        oracle: Answers in this process until there is something to send.
        send: Sends the data of checks; None while there are none.
    """

    def __init__(
        self, cluster: Cluster, needs: TaskNeeds, *, oracle: Oracle[T], send: Callable[[], Shared | None]
    ) -> None:
        self._cluster = cluster
        self._needs = needs
        self._oracle = oracle
        self._send = send
        self._slots = cluster.slots(needs)
        self._shared: Shared | None = None
        self._here: collections.deque[OracleQuestion[T]] = collections.deque()
        self._there: dict[Any, tuple[OracleQuestion[T], float]] = {}

    def submit(self, question: OracleQuestion[T], /) -> None:
        """Take a question."""
        self._shared = self._shared or self._send()
        if self._shared is None:
            self._here.append(question)
            return
        task = self._cluster.submit(_ask, question.candidate, question.attempt, needs=self._needs, shared=self._shared)
        self._there[task] = (question, time.monotonic())

    def idle(self) -> int:
        """Return how many more questions could start at once."""
        if self._here:
            return 0
        return 1 if self._shared is None else self._slots - len(self._there)

    def wait(self) -> list[tuple[OracleQuestion[T], OracleAnswer]]:
        """Wait until at least one question is answered, and return all that are."""
        if self._here:
            question = self._here.popleft()
            started = time.monotonic()
            verdict = self._oracle(question.candidate, question.attempt)
            return [(question, OracleAnswer(verdict, time.monotonic() - started))]
        return [self._answered(task) for task in self._cluster.ready(list(self._there))]

    def close(self) -> None:
        """Kill running checks."""
        for task in self._there:
            self._cluster.cancel(task)
        self._there.clear()

    def _answered(self, task: Any) -> tuple[OracleQuestion[T], OracleAnswer]:
        question, begun = self._there.pop(task)
        seconds = time.monotonic() - begun
        try:
            verdict: OracleVerdict = self._cluster.result(task)
        except WorkerLost as error:
            return question, OracleAnswer(OracleVerdict(CandidateOutcome.UNRESOLVED, detail=error.message), seconds)
        except Exception as error:  # raised where the answer is needed
            return question, OracleAnswer(None, seconds, error=error)
        return question, OracleAnswer(verdict, seconds)


def _ask(oracle: Oracle[T], candidate: tuple[T, ...], attempt: int) -> OracleVerdict:
    return oracle(candidate, attempt)

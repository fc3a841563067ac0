"""The source of answers: the cache for known ones, the executor for others, each run once.

The search takes one answer at a time and gets the same ones in the same order wherever checks run; the answers to
possible next questions are fetched meanwhile, when the executor has room, and kept.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

from tensortriage.search.execution.executors import Executor, InProcess, OracleAnswer, OracleQuestion
from tensortriage.search.problem import OracleVerdict, SearchProblem, T

Kind = TypeVar("Kind")


class Cache(Protocol):
    """Keeps answers by content key, across runs; `tensortriage.runs.check_cache.CheckCache` is one."""

    def get(self, key: str, kind: type[Kind], /) -> Kind | None:
        """Return the stored answer; None when there is none."""
        ...

    def put(self, key: str, question: str, answer: Any, /, *, seconds: float) -> None:
        """Store an answer before returning."""
        ...


class AnswerCache(Generic[T]):
    """Answers questions, each of them once.

    Args:
        executor: Runs checks.
        cache: The store of answers; None for this object only.
        key: Content key of a candidate.
    """

    def __init__(self, executor: Executor[T], cache: Cache | None, key: Callable[[tuple[T, ...]], str]) -> None:
        self._executor = executor
        self._cache = cache
        self._key = key
        self._answers: dict[OracleQuestion[T], OracleAnswer] = {}
        self._under_way: set[OracleQuestion[T]] = set()
        self._last: tuple[tuple[T, ...], str] | None = None  # a candidate and its key, which many items make expensive
        self.fresh = 0
        self.fresh_seconds = 0.0

    @classmethod
    def of(cls, problem: SearchProblem[T], cache: Cache | None = None, executor: Executor[T] | None = None) -> Self:
        """Return the answerer of a problem's questions; without another, its oracle in this thread."""
        return cls(executor or InProcess(problem.oracle), cache, problem.key)

    def known(self, question: OracleQuestion[T]) -> OracleAnswer | None:
        """Return the answer when it is there already."""
        answer = self._answers.get(question)
        if answer is None and self._cache is not None and question not in self._under_way:
            verdict = self._cache.get(self._name(question), OracleVerdict)
            if verdict is not None:
                answer = self._answers[question] = OracleAnswer(verdict, 0.0, cached=True)
        return answer

    def answer(self, question: OracleQuestion[T], ahead: Iterator[OracleQuestion[T]]) -> OracleAnswer:
        """Return the answer to a question, and begin with those ``ahead`` while waiting and there is room."""
        while (answer := self.known(question)) is None:
            if question not in self._under_way:
                self._submit(question)
            self._fill(ahead)
            for done, given in self._executor.wait():
                self._take(done, given)
        return answer

    def _fill(self, ahead: Iterator[OracleQuestion[T]]) -> None:
        while self._executor.idle() > 0:
            question = next(ahead, None)
            if question is None:
                return
            if question not in self._under_way and self.known(question) is None:
                self._submit(question)

    def _submit(self, question: OracleQuestion[T]) -> None:
        self._under_way.add(question)
        self._executor.submit(question)

    def _take(self, question: OracleQuestion[T], answer: OracleAnswer) -> None:
        self._under_way.discard(question)
        self._answers[question] = answer
        self._last = None  # what an answer belongs to may be known now: which files a command reads
        self.fresh += 1
        self.fresh_seconds += answer.seconds
        if self._cache is not None and answer.verdict is not None:
            text = f"{len(question.candidate)} items, attempt {question.attempt}"
            self._cache.put(self._name(question), text, answer.verdict, seconds=answer.seconds)

    def _name(self, question: OracleQuestion[T]) -> str:
        if self._last is None or self._last[0] is not question.candidate:
            self._last = question.candidate, self._key(question.candidate)
        return f"{self._last[1]}#{question.attempt}"

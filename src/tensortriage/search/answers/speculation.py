"""Predicts the next questions of a search. Replay it with the answers so far and each answer that may come.

Passes are functions of the answers, so a replay with guessed ones asks exactly the questions of the search. That makes
free processors useful without any influence on the result: they fetch answers that the search will probably want.
"""

import heapq
import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar, cast

from tensortriage.search.dialogue import Ask
from tensortriage.search.problem import CandidateOutcome, OracleVerdict, T

Answers: TypeAlias = tuple[OracleVerdict, ...]
End = TypeVar("End")
FARTHEST = 64
"""Guessed continuations that are looked at for one question, at most."""
MOSTLY = 0.8
"""Chance given to the usual answer to many candidates at once: that none of them fails the same way."""


class Speculation(Generic[T]):
    """Guesses the next candidates of a search.

    Args:
        begin: Starts the same search again.
        known: Verdict of a candidate that is there already.
    """

    def __init__(
        self,
        begin: Callable[[], Generator[Ask[T], Answers, object]],
        known: Callable[[frozenset[T]], OracleVerdict | None],
    ) -> None:
        self._begin = begin
        self._known = known

    def after(self, history: Sequence[Answers], ask: Ask[T]) -> Iterator[frozenset[T]]:
        """Yield candidates that may follow ``ask``, likeliest first; some perhaps twice."""
        order = itertools.count()
        guesses = [(-1.0, next(order), list(history), ask)]
        for _ in range(FARTHEST):
            if not guesses:
                return
            chance, _, so_far, question = heapq.heappop(guesses)
            for share, answers in self._answers(question):
                longer = [*so_far, answers]
                following = self._replay(longer)
                if following is not None:
                    heapq.heappush(guesses, (chance * share, next(order), longer, following))
            if question is not ask:
                yield from question.candidates

    def _answers(self, ask: Ask[T]) -> list[tuple[float, Answers]]:
        """Return guesses of the answers with their chance; known answers are not guessed."""
        known = [self._known(candidate) for candidate in ask.candidates]
        usual = tuple(verdict or OracleVerdict(CandidateOutcome.PASS) for verdict in known)
        if None not in known:
            return [(1.0, usual)]
        if len(known) > 1:
            return [(MOSTLY, usual)]
        return [(0.5, usual), (0.5, (OracleVerdict(CandidateOutcome.SAME),))]

    def _replay(self, history: Sequence[Answers]) -> Ask[T] | None:
        """Return the question that follows these answers; None when the search has ended."""
        dialogue = self._begin()
        try:
            ask = next(dialogue)
            for answers in history:
                ask = dialogue.send(answers)
        except StopIteration:
            return None
        return ask


def converse(
    dialogue: Generator[Ask[T], Answers, End],
    answer: Callable[[Ask[T], Iterator[frozenset[T]]], Answers],
    again: Callable[[], Generator[Ask[T], Answers, object]] | None = None,
    known: Callable[[frozenset[T]], OracleVerdict | None] = lambda candidate: None,
) -> End:
    """Answer a dialogue until it has no more questions, and return its result.

    Args:
        dialogue: The dialogue.
        answer: Answers a question; idle processors may fetch the possible next ones meanwhile, likeliest first.
        again: Starts the same dialogue again, to see that; None for not at all.
        known: Verdict of a candidate that is there already.
    """
    speculation = Speculation(again, known) if again is not None else None
    history: list[Answers] = []
    try:
        ask = next(dialogue)
        while True:
            history.append(answer(ask, speculation.after(history, ask) if speculation is not None else iter(())))
            ask = dialogue.send(history[-1])
    except StopIteration as end:
        return cast(End, end.value)

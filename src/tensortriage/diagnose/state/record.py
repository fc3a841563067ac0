"""The steps of a diagnosis, in order, passed to a listener as they are made."""

import time
from typing import Protocol

from tensortriage.diagnose.state.verdict import Cost, Step
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.inner_values import centre_spec


class Listener(Protocol):
    """A receiver of a diagnosis's progress."""

    def step(self, step: Step) -> None:
        """A question was answered."""

    def progress(self, text: str) -> None:
        """Something that takes a while begins."""


class Silent:
    """A listener that ignores everything."""

    def step(self, step: Step) -> None:
        """Ignore a step."""

    def progress(self, text: str) -> None:
        """Ignore progress."""

    def tell(self, text: str) -> None:
        """Ignore the text to show."""

    def checked(self, progress: object) -> None:
        """Ignore a check."""

    searched = checked

    def built(self, trial: object, trials: object) -> None:
        """Ignore a build."""


class Record:
    """The steps so far, and their cost.

    Args:
        lab: The lab that asks engines, and counts their builds and runs.
        listener: Receives the steps.
    """

    def __init__(self, lab: Lab, listener: Listener) -> None:
        self._lab, self._listener = lab, listener
        self._steps: list[Step] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in the order in which they were made."""
        return tuple(self._steps)

    @property
    def cost(self) -> Cost:
        """The cost so far."""
        tally, started = self._lab.tally, self._lab.budget.started
        seconds = round(time.perf_counter() - started, 3)
        return Cost(seconds, tally.builds, tally.checks, tally.builds_by_engine, self._lab.earlier)

    def answered(self, question: str, answer: str, **evidence: object) -> Step:
        """Record a step and notify the listener; all work since the previous one belongs to it."""
        cost = self.cost
        step = Step(
            question,
            answer,
            evidence,
            seconds=round(cost.seconds - sum(step.seconds for step in self._steps), 3),
            checks=cost.checks - sum(step.checks for step in self._steps),
        )
        return self.add(step)

    def add(self, step: Step) -> Step:
        """Add a step and notify the listener."""
        self._steps.append(step)
        self._listener.step(step)
        return step

    def unasked(self, *questions: str) -> None:
        """Record the questions skipped for lack of budget."""
        self.answered("which questions were skipped for lack of time?", " ".join(questions))

    def outputs_only(self, reason: str) -> None:
        """Record, once, that the reference shows no inner values."""
        question = "does the reference show its inner values?"
        if all(step.question != question for step in self._steps):
            answer = f"no: it returns only the model's outputs; inner values come from {centre_spec()}"
            self.answered(question, answer, reason=reason)

"""The steps of a diagnosis, in order, told to whoever wants to hear of them as they are made."""

from typing import Protocol

from tensortriage.diagnose.state.verdict import Step


class Listener(Protocol):
    """Who wants to hear how a diagnosis goes on."""

    def step(self, step: Step) -> None:
        """A question was answered."""

    def progress(self, text: str) -> None:
        """Something that takes a while begins."""


class Silent:
    """A listener that listens to nothing, whatever is told."""

    def step(self, step: Step) -> None:
        """Ignore a step."""

    def progress(self, text: str) -> None:
        """Ignore progress."""

    def tell(self, text: str) -> None:
        """Ignore what is to be shown."""

    def checked(self, progress: object) -> None:
        """Ignore a check."""

    searched = checked

    def built(self, trial: object, trials: object) -> None:
        """Ignore a build."""


class Record:
    """The steps so far.

    Args:
        listener: Who hears of them.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._steps: list[Step] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in the order in which they were made."""
        return tuple(self._steps)

    def add(self, step: Step) -> None:
        """Add a step and tell the listener."""
        self._steps.append(step)
        self._listener.step(step)

"""A model with its golden values, and a lab to run engines in: all that a search needs to begin.

An investigation is one (`tensortriage.diagnose.state.investigation.Investigation`). What takes a `GoldenSource` asks
engines and knows nothing of verdicts.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


class EnginePair(Protocol):
    """Which engines are compared, and on what."""

    @property
    def feeds(self) -> Sequence[Feed]:
        """The samples, at least one."""
        ...

    @property
    def reference(self) -> EngineSpec:
        """The engine taken as right."""
        ...

    @property
    def target(self) -> EngineSpec:
        """The engine under suspicion."""
        ...

    @property
    def limits(self) -> Limits:
        """Time and memory limits of isolated engines."""
        ...

    @property
    def input_paths(self) -> Sequence[str]:
        """Where the feeds came from, for commands that are suggested."""
        ...


class GoldenSource(Protocol):
    """A model, the golden values of its feeds, and the lab in which engines are asked."""

    lab: Lab

    @property
    def question(self) -> EnginePair:
        """Which engines are compared, and on what."""
        ...

    @property
    def model(self) -> Model:
        """The model taken as right."""
        ...

    @property
    def inputs_word(self) -> str:
        """``real`` when any feed is real, else ``random``."""
        ...

    def progress(self, what: str) -> None:
        """Tell what takes a while, before it begins."""
        ...

    def golden(self, feed: Feed) -> TensorStore:
        """Return every value of the model on one feed, as the reference computed it."""
        ...

    def golden_outputs(self, feed: Feed) -> TensorStore:
        """Return the model's outputs on one feed, as the reference computed them."""
        ...

    def specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed."""
        ...

    def command(self, command: str, *options: str) -> str:
        """Return a command line to run next, on this model and its inputs, quoted for a shell."""
        ...

    def close(self) -> None:
        """Release every session and temporary file."""
        ...

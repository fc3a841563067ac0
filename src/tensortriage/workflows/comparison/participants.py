"""Participants of a comparison: engines that run now and saved results, behind one interface."""

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.engines.registry import is_foreign
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import ObservedBuild, ObservedOutputs

Arrays = dict[str, np.ndarray]
Recorder = Callable[[str, int, Mapping[str, np.ndarray]], None]
"""Called with participant name, feed number and outputs, before they are compared."""


@dataclasses.dataclass(eq=False)
class Participant(ABC):
    """One side of a comparison.

    Attributes:
        name: How it is called in results.
    """

    name: str

    @property
    def precision_spec(self) -> EngineSpec | None:
        """The engine; None where results were saved earlier."""
        return None

    @property
    def model(self) -> Model | None:
        """The model it runs; None for saved results."""
        return None

    @property
    def needs_judging(self) -> bool:
        """Whether it needs to be checked against the model when it is assumed to be right: saved results, scripts."""
        return True

    @property
    def knows_some(self) -> bool:
        """Whether missing prepared values are reported instead of refused."""
        return False

    @abstractmethod
    def prepare(self, values: Sequence[str]) -> None:
        """Get ready to give these values (the next batch)."""

    @abstractmethod
    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Return the prepared values for feed number ``number``; the caller owns the dictionary."""

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray] | None:
        """Return the outputs of the untouched model, or None when there is no engine to ask."""
        return None

    def like(self, other: "Participant") -> bool:
        """Return whether another participant is the same engine with the same model and options."""
        return other is self

    def everything(self, number: int) -> Mapping[str, np.ndarray] | None:
        """Return all values there are for feed number ``number``; None when there are those that are prepared."""
        return None

    def release(self) -> None:
        """Drop the prepared sessions."""
        return


class Live(Participant):
    """An engine that runs now.

    Args:
        name: How it is called in results; the spec, numbered when two are the same.
        spec: The engine.
        model: Its model.
        lab: The lab that asks it. Its arrays are compared as they come, neither copied nor kept.
        warm_up: Warm-up runs before the run that counts.
        known_outputs_only: Whether to leave out values that it does not know: the network behind a model is another
            program.
    """

    def __init__(
        self, name: str, spec: EngineSpec, model: Model, lab: Lab, *, warm_up: int = 0, known_outputs_only: bool = False
    ) -> None:
        super().__init__(name)
        self._spec, self._model, self._lab = spec, model, lab
        self._warm_up, self._known_outputs_only = warm_up, known_outputs_only
        self._prepared = contextlib.ExitStack()

    @property
    def precision_spec(self) -> EngineSpec:
        """The engine."""
        return self._spec

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._model

    @property
    def needs_judging(self) -> bool:
        """Whether it is a third-party engine."""
        return is_foreign(self._spec.name)

    @property
    def knows_some(self) -> bool:
        """Whether it is the network behind the model."""
        return self._knows_some

    def prepare(self, values: Sequence[str]) -> None:
        """Compile the model with these outputs."""
        self.release()
        own = [spec.name for spec in self._model.outputs]
        model = self._model if list(values) == own else select_outputs(self._model, values)
        self._ask = self._prepared.enter_context(self._lab.session(self._spec, model, sequence=True))
        self._knows_some = self._ask.of(observed=ObservedBuild()).built.knows_some and self._known_outputs_only

    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Run on a feed."""
        for _ in range(self._warm_up if number == 0 else 0):
            self._outputs(feed)
        return self._outputs(feed)

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray]:
        """Run the untouched model."""
        with self._lab.session(self._spec, self._model, sequence=True) as ask:
            return ask(feed)

    def _outputs(self, feed: Feed) -> dict[str, np.ndarray]:
        lent = ObservedOutputs(lent=True, known_only=self._known_outputs_only)
        return self._ask.of(feed, observed=lent).arrays

    def like(self, other: Participant) -> bool:
        """Return whether another participant is the same engine with the same model and options."""
        return isinstance(other, Live) and (str(other._spec), id(other._model)) == (str(self._spec), id(self._model))

    def release(self) -> None:
        """Close the session."""
        self._prepared.close()


@dataclasses.dataclass(eq=False)
class Saved(Participant):
    """Results saved earlier.

    Attributes:
        name: The runner's name in the file, or the file's.
        results: Outputs by feed number.
    """

    results: Sequence[Mapping[str, np.ndarray]]
    _values: tuple[str, ...] = ()

    def prepare(self, values: Sequence[str]) -> None:
        """Remember which values are wanted."""
        self._values = tuple(values)

    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Return the saved outputs of one feed: the wanted ones, or all when one of them is missing.

        Raises:
            DataError: When fewer feeds were saved than are run now.
        """
        if number >= len(self.results):
            raise DataError(
                f"'{self.name}' holds {len(self.results)} results, but feed {number + 1} ('{feed.name}') is run now",
                slug="results-too-few",
                cure="run on the feeds that the results were made from (--load-inputs)",
            )
        found = self.results[number]
        if any(name not in found for name in self._values):
            return dict(found)  # it may be there under another name
        return {name: found[name] for name in self._values or found}

    def everything(self, number: int) -> Mapping[str, np.ndarray]:
        """Return all values that were saved for a feed."""
        return self.results[number]


def numbered(specs: Sequence[EngineSpec]) -> Iterator[tuple[str, EngineSpec]]:
    """Yield a unique name for each engine: its spec, with ``#2`` and so on when it occurs again."""
    seen: dict[str, int] = {}
    for spec in specs:
        text = str(spec)
        seen[text] = seen.get(text, 0) + 1
        yield text if seen[text] == 1 else f"{text} #{seen[text]}", spec

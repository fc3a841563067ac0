"""Who takes part in a comparison: engines that run now, and results that were saved earlier, behind one face."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from tensortriage.engines.base import KnowsSomeValues, Limits
from tensortriage.engines.registry import is_foreign
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.runner import Runner, Tally
from tensortriage.runs.workspace import Workspace


class Participant(Protocol):
    """One side of a comparison."""

    name: str
    precision_spec: EngineSpec | None

    def prepare(self, values: Sequence[str]) -> None:
        """Get ready to give these values (the next batch)."""
        ...

    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Return the prepared values for feed number ``number``; the caller owns the dictionary."""
        ...

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray] | None:
        """Return the outputs of the untouched model, or None when there is no engine to ask."""
        ...

    def like(self, other: "Participant") -> bool:
        """Whether another participant is the same engine with the same model and options."""
        ...

    @property
    def needs_judging(self) -> bool:
        """Whether it may not be what the model computes, when it is taken as right: saved results, scripts."""
        ...

    def everything(self, number: int) -> Mapping[str, np.ndarray] | None:
        """Return all values there are for feed number ``number``; None when there are those that are prepared."""
        ...

    @property
    def knows_some(self) -> bool:
        """Whether it may lack some of the prepared values, and that is said instead of refused."""
        ...

    def release(self) -> None:
        """Drop what was prepared."""
        ...


class Live:
    """An engine that runs now.

    Args:
        name: How it is called in results; the spec, numbered when two are the same.
        spec: The engine.
        model: What it runs.
        workspace: For marked model files.
        limits: For isolated engines.
        warm_up: Warm-up runs before the run that counts.
        tally: Where builds and runs are counted.
        some: Whether values that it does not know are left out.
    """

    def __init__(
        self,
        name: str,
        spec: EngineSpec,
        model: Model,
        *,
        workspace: Workspace,
        limits: Limits,
        warm_up: int = 0,
        tally: Tally | None = None,
        some: bool = False,
    ) -> None:
        self.name = name
        self.precision_spec: EngineSpec | None = spec
        self.tally = tally or Tally()
        self._model = model
        self._workspace = workspace
        self._limits = limits
        self._warm_up = warm_up
        self._some = some
        self._runner: Runner | None = None

    def prepare(self, values: Sequence[str]) -> None:
        """Compile the model with these outputs."""
        self.release()
        own = [spec.name for spec in self._model.outputs]
        self._runner = self._runner_for(self._model if list(values) == own else select_outputs(self._model, values))
        self._runner.build()

    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Run on a feed."""
        assert self._runner is not None, "prepare comes first"
        for _ in range(self._warm_up if number == 0 else 0):
            self._runner.run(feed, some=self._some)
        return dict(self._runner.run(feed, some=self._some))

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray]:
        """Run the untouched model."""
        with self._runner_for(self._model) as runner:
            return runner.run(feed)

    def like(self, other: Participant) -> bool:
        """Whether another participant is the same engine with the same model and options."""
        return (
            isinstance(other, Live)
            and str(other.precision_spec) == str(self.precision_spec)
            and other._model is self._model
        )

    @property
    def needs_judging(self) -> bool:
        """Whether it is an engine that somebody else wrote."""
        return self.precision_spec is not None and is_foreign(self.precision_spec.name)

    @property
    def knows_some(self) -> bool:
        """Whether it is no engine that runs the model, but the network behind it, whose program is another one."""
        return self._some and self._runner is not None and isinstance(self._runner.build(), KnowsSomeValues)

    def everything(self, number: int) -> None:
        """There are only the values that are prepared."""
        return

    def release(self) -> None:
        """Close the session."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _runner_for(self, model: Model) -> Runner:
        assert self.precision_spec is not None
        return Runner(self.precision_spec, model, workspace=self._workspace, limits=self._limits, tally=self.tally)


@dataclasses.dataclass(slots=True)
class Saved:
    """Results saved earlier, one dictionary per feed.

    Attributes:
        name: The runner's name in the file, or the file's.
        results: Outputs by feed number.
    """

    name: str
    results: Sequence[Mapping[str, np.ndarray]]
    precision_spec: EngineSpec | None = None
    _values: tuple[str, ...] = ()

    def prepare(self, values: Sequence[str]) -> None:
        """Remember which values are wanted."""
        self._values = tuple(values)

    def outputs(self, feed: Feed, number: int) -> dict[str, np.ndarray]:
        """Return the saved outputs of one feed: those that are wanted, or all when one of them is not there.

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

    def deployed(self, feed: Feed) -> None:
        """There is no engine to ask."""
        return

    def like(self, other: Participant) -> bool:
        """Whether another participant is the very same results."""
        return other is self

    @property
    def knows_some(self) -> bool:
        """What was saved is compared as a whole."""
        return False

    @property
    def needs_judging(self) -> bool:
        """They may be of another model, or of another version of it."""
        return True

    def everything(self, number: int) -> Mapping[str, np.ndarray]:
        """Return all values that were saved for a feed."""
        return self.results[number]

    def release(self) -> None:
        """Nothing is held."""


def numbered(specs: Sequence[EngineSpec]) -> Iterator[tuple[str, EngineSpec]]:
    """Yield a unique name for each engine: its spec, with ``#2`` and so on when it occurs again."""
    seen: dict[str, int] = {}
    for spec in specs:
        text = str(spec)
        seen[text] = seen.get(text, 0) + 1
        yield text if seen[text] == 1 else f"{text} #{seen[text]}", spec


def saved_name(path: Path, runner: str) -> str:
    """Return how a saved result is called: its runner's name with its file."""
    return f"{runner} in {path.name}" if runner else path.name


def flat(reference: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both arrays, flattened when their shapes differ."""
    return (reference, target) if reference.shape == target.shape else (reference.ravel(), target.ravel())


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays hold the same bits (NaNs included)."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()

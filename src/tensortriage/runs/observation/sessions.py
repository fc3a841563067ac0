"""The sessions of a lab: which are open, which are shared by several experiments, and when each is let go."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.observation.experiment import Experiment
from tensortriage.runs.observation.runner import Runner

Place = tuple[str, str, int] | int
"""Which session: engine, model, and number of the build; or the number of a sequence, which has one of its own."""

_numbers = itertools.count(1)


class Sessions:
    """Open sessions by engine, model and build; a sequence has one of its own.

    Args:
        make: Makes the runner of an engine and a model, for the build of a number.
        by_content: Whether equal models share a session; otherwise weights need not be read to compare models.
    """

    def __init__(self, make: Callable[[EngineSpec, Model, int], Runner], *, by_content: bool) -> None:
        self._make = make
        self._by_content = by_content
        self._runners: dict[Place, Runner] = {}
        self._held: set[Place] = set()
        self._marked: tuple[Model, tuple[str, ...], Model] | None = None

    def marked(self, experiment: Experiment, values: Sequence[str]) -> Experiment:
        """Return an experiment whose model has exactly these outputs; the same model while the same ones are wanted."""
        model, known = experiment.model, self._marked
        if known is None or known[0] is not model or known[1] != tuple(values):
            known = self._marked = model, tuple(values), select_outputs(model, values)
        return dataclasses.replace(experiment, model=known[2])

    @contextlib.contextmanager
    def held(self, experiment: Experiment) -> Iterator[None]:
        """Keep a session open until the end, once something has opened it."""
        place = self._place(experiment)
        mine = place not in self._held and place not in self._runners
        self._held.add(place)
        try:
            yield
        finally:
            if mine:
                self._held.discard(place)
                self._drop(place)

    @contextlib.contextmanager
    def open(self, experiment: Experiment) -> Iterator[Runner]:
        """Yield the session of an experiment. Sessions of models in files stay open, and those `held`."""
        place = self._place(experiment)
        runner = self._runners.get(place)
        if runner is None:
            runner = self._runners[place] = self._make(experiment.engine, experiment.model, experiment.build)
        try:
            yield runner
        finally:
            temporary = experiment.model.path is None or experiment.build or experiment.sequence
            if place not in self._held and temporary:
                self._drop(place)

    def drop(self, experiment: Experiment) -> None:
        """Let go of a session."""
        self._drop(self._place(experiment))

    def close(self) -> None:
        """Close all of them; a read by another thread ends with an EngineError."""
        for place in list(self._runners):
            self._drop(place)

    def _place(self, experiment: Experiment) -> Place:
        if experiment.sequence:
            return experiment.sequence
        model = experiment.model
        return str(experiment.engine), model.fingerprint if self._by_content else str(id(model)), experiment.build

    def _drop(self, place: Place) -> None:
        if (runner := self._runners.pop(place, None)) is not None:
            runner.close()


def in_sequence(experiment: Experiment) -> Experiment:
    """Return an experiment as the first of a new sequence."""
    return dataclasses.replace(experiment, sequence=next(_numbers))

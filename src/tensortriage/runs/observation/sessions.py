"""The sessions of a lab: which are open, which are shared by several experiments, and when each is let go."""

import contextlib
from collections.abc import Callable, Iterator

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.runs.observation.experiment import Experiment
from tensortriage.runs.runner import Runner

Place = tuple[str, str, int]
"""Which session: engine, model, and number of the build."""


class Sessions:
    """Open sessions by engine, model and build.

    Args:
        make: Makes the runner of an engine and a model, for the build of a number.
        by_content: Whether equal models share a session; else weights need not be read to tell models apart.
    """

    def __init__(self, make: Callable[[EngineSpec, Model, int], Runner], *, by_content: bool) -> None:
        self._make = make
        self._by_content = by_content
        self._runners: dict[Place, Runner] = {}
        self._held: set[Place] = set()

    def place(self, engine: EngineSpec, model: Model, build: int = 0) -> Place:
        """Return where a session is."""
        return str(engine), model.fingerprint if self._by_content else str(id(model)), build

    def runner(self, engine: EngineSpec, model: Model, build: int = 0) -> Runner:
        """Return the runner of a session, made when there is none."""
        place = self.place(engine, model, build)
        if place not in self._runners:
            self._runners[place] = self._make(engine, model, build)
        return self._runners[place]

    @contextlib.contextmanager
    def held(self, engine: EngineSpec, model: Model, build: int = 0) -> Iterator[None]:
        """Keep a session open until the end, once something has opened it."""
        place = self.place(engine, model, build)
        mine = place not in self._held and place not in self._runners
        self._held.add(place)
        try:
            yield
        finally:
            if mine:
                self._held.discard(place)
                self.drop(place)

    @contextlib.contextmanager
    def open(self, experiment: Experiment) -> Iterator[Runner]:
        """Give the session of an experiment. Those of models in files stay open, and what is `held`."""
        engine, model, build = experiment.engine, experiment.model, experiment.build
        try:
            yield self.runner(engine, model, build)
        finally:
            place = self.place(engine, model, build)
            if place not in self._held and (model.path is None or build):
                self.drop(place)

    def drop(self, place: Place) -> None:
        """Let go of a session."""
        if (runner := self._runners.pop(place, None)) is not None:
            runner.close()

    def close(self) -> None:
        """Let go of all of them."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()

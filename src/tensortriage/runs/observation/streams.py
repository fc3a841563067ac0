"""Evaluations whose values are read as they are computed, of which none is held or kept."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.runner import Runner


class Streams:
    """The streams of a lab.

    Args:
        make: Makes the runner of an engine and a model.
    """

    def __init__(self, make: Callable[[EngineSpec, Model], Runner]) -> None:
        self._make = make
        self._open: list[Runner] = []
        self._selected: tuple[Model, tuple[str, ...], Model] | None = None

    def values(
        self, engine: EngineSpec, model: Model, feed: Feed, names: Sequence[str]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield ``(value name, array)`` in the order in which an engine computes them."""
        with self._make(engine, self._with_outputs(model, tuple(names))) as runner:
            self._open.append(runner)
            try:
                yield from runner.stream(feed)
            finally:
                self._open.remove(runner)

    def stop(self) -> None:
        """Close the sessions that other threads read, which ends what they read by an EngineError."""
        for runner in list(self._open):
            runner.close()

    def _with_outputs(self, model: Model, values: tuple[str, ...]) -> Model:
        """Return a model with exactly these outputs, the same one as long as the same ones are asked for."""
        known = self._selected
        if known is None or known[0] is not model or known[1] != values:
            known = self._selected = model, values, select_outputs(model, values)
        return known[2]

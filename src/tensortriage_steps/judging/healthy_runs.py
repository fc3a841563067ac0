"""Results of healthy evaluations of a model that is run step by step.

Evaluations with equal feeds show the range of healthy engines in one step. Each fed with its own results of the step
before, they show how far a healthy engine may drift: rounding that is carried on is part of every one of them.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.api import EngineSpec, Feed, Model, measure
from tensortriage.envelope.sdk import (
    CENTRE,
    CORRECTLY_ROUNDED,
    HealthyValues,
    Lab,
    Limit,
    Origin,
    format_radius,
    fp32_radius,
    healthy_of,
    limit_of,
)
from tensortriage_steps.feeds.state_parts import Place

Arrays = Mapping[str, np.ndarray]


class EvaluatedStep(HealthyValues[Arrays]):
    """Results of each evaluation in one step."""

    __slots__ = ()

    def kept(self, given: Mapping[str, np.ndarray], value: str, place: Place, source: Place) -> Limit:
        """Return the limit of elements that a step carries over unchanged from its inputs.

        Args:
            given: The input of each evaluation, by the evaluation's name.
            value: Name of the output that holds them.
            place: Index of the elements in the output.
            source: Index of the same elements in the input.
        """
        figures = {
            name: measure(given[name][source], tensors[value][place])
            for name, tensors in self.values.items()
            if name != CENTRE and tensors[value].shape == self.centre[value].shape
        }
        return limit_of(self.healthy, figures, self.centre[value][place].size)

    def radius(self, value: str, scores: np.ndarray) -> np.ndarray:
        """Return how far each score of an output may be off in a healthy engine, absolute, of the output's shape.

        Args:
            value: Name of the output.
            scores: The reference's values of it.
        """
        radius = fp32_radius(scores, np.asarray(self.centre[value]))
        for name in (*self.healthy.format, *self.healthy.with_freedoms):
            rounded = np.asarray(self.values[name][value])
            radius = np.maximum(radius, format_radius(scores, rounded, self.healthy.results))
        return radius


class HealthyRuns:
    """Sessions of the healthy evaluations of one model, ready for feed after feed; each may have a feed of its own.

    Args:
        lab: Lab that answers for engines; it keeps the sessions.
        model: The model.
        target: The engine with the format and the hardware.
    """

    def __init__(self, lab: Lab, model: Model, *, target: EngineSpec) -> None:
        self._lab, self._model = lab, model
        self._healthy = healthy_of(model, target)
        self._specs = {CENTRE: CORRECTLY_ROUNDED, **self._healthy.all}

    @property
    def names(self) -> tuple[str, ...]:
        """The evaluations, `CENTRE` first."""
        return tuple(self._specs)

    def on(self, feed: Arrays) -> EvaluatedStep:
        """Return every evaluation's results on one feed; see `each_on`."""
        return self.each_on(dict.fromkeys(self._specs, feed))

    def each_on(self, feeds: Mapping[str, Arrays]) -> EvaluatedStep:
        """Return every evaluation's results on its feed.

        Raises:
            EngineError: When the model cannot be evaluated.
            UsageError: Likewise.
        """
        found: dict[str, Arrays] = {}
        for name, spec in self._specs.items():
            feed = Feed(f"of {name}", feeds[name], Origin.RANDOM)
            found[name] = self._lab.outputs(spec, self._model, feed, repetition=None)
        return EvaluatedStep(self._healthy, found)

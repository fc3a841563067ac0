"""Outputs that a program saved: of which inputs are they, if not of those that it was given?"""

import functools
import math
from collections.abc import Mapping

import numpy as np

from tensortriage.api import EngineSpec, Feed, Model, understood_otherwise
from tensortriage.envelope.sdk import Lab, Metrics, Origin, check_feed, error_of, measure_many
from tensortriage.sdk import HealthyJudge, TriageError
from tensortriage_feeds.arrays.numbers import Returned
from tensortriage_feeds.returned import changes
from tensortriage_feeds.search import Nearest, Steps, Wanted, bits_of, search
from tensortriage_feeds.transforms import CHANCE_BITS, Tensors, composed


class SavedOutputs:
    """Saved outputs of a program, compared with the reference on candidate inputs.

    Args:
        model: The network.
        reference: Engine that runs it.
        outputs: The saved outputs of the model.
        lab: Where the reference is asked.
        seconds: How long each search takes at most.
    """

    def __init__(
        self, model: Model, reference: EngineSpec, outputs: Tensors, lab: Lab, *, seconds: float = math.inf
    ) -> None:
        self._seconds = seconds
        self._model, self._reference, self._lab = model, reference, lab
        self._judge = HealthyJudge(model, reference=reference, target=None, lab=lab)
        self.outputs = outputs

    def run(self, tensors: Tensors) -> Tensors:
        """Return the reference's outputs of those that were saved; empty where it does not run on these inputs."""
        try:
            feed = check_feed(Feed("inputs", tensors, Origin.REAL), self._model.inputs)
            made = self._lab.outputs(self._reference, self._model, feed)
        except TriageError:
            return {}
        return {name: made[name] for name in self.outputs if name in made}

    def figures(self, made: Tensors) -> Mapping[str, Metrics]:
        """Return how far the saved outputs are from these; empty where they have other shapes."""
        if not made or any(array.shape != self.outputs[name].shape for name, array in made.items()):
            return {}
        return dict(measure_many((name, array, self.outputs[name]) for name, array in made.items()))

    def limits(self, tensors: Tensors) -> dict[str, float] | None:
        """Return how far off each saved output may be on these inputs; None where all are within."""
        within, limits = self._judged(tensors, self.run(tensors))
        return None if within else limits

    def _judged(self, tensors: Tensors, made: Tensors) -> tuple[bool, dict[str, float]]:
        """Return whether all saved outputs are within their limits on these inputs, and the limits."""
        figures = self.figures(made)
        judged = self._judge.judge(Feed("inputs", tensors, Origin.REAL), figures, made)
        finite = {name: each.ratio for name, each in judged.items() if np.isfinite(each.ratio) and each.ratio > 0}
        limits = {name: error_of(figures[name]) / finite[name] if name in finite else 0.0 for name in figures}
        return bool(figures) and all(each.within for each in judged.values()), limits

    def understood(self, tensors: Tensors) -> str:
        """Return which operator the program understands otherwise, as a sentence; empty where none is known."""

        def of(changed: Model) -> SavedOutputs:
            return SavedOutputs(changed, self._reference, self.outputs, self._lab)

        def limits(changed: Model, made: Tensors) -> Mapping[str, float] | None:
            within, found = of(changed)._judged(tensors, made)
            return found if within else None

        feed = Feed("inputs", tensors, Origin.REAL)
        ask = functools.partial(understood_otherwise, run=lambda changed: of(changed).run(tensors), limits=limits)
        return str(ask(self._model, feed, self.outputs, seconds=self._seconds))

    def returned(self, tensors: Tensors) -> Mapping[str, Returned]:
        """Return what was done to each output that is beyond its limit; empty where that is not known of all."""
        made = self.run(tensors)
        figures = self.figures(made)
        judged = self._judge.judge(Feed("inputs", tensors, Origin.REAL), figures, made)
        return changes(made, self.outputs, [name for name in figures if not judged[name].within])

    def behind(self, tensors: Tensors, limits: Mapping[str, float]) -> Nearest | None:
        """Return the transform of the inputs with which the reference gives the saved outputs; None if unknown."""
        wanted = Wanted(self.outputs, limits)
        right = self.run(tensors)
        figures = self.figures(right)

        def confirmed(steps: Steps) -> bool:
            return self.limits(composed(steps, tensors)) is None

        found = search(tensors, self.run, wanted, confirmed=confirmed, seconds=self._seconds)
        errors = {name: error_of(figure) for name, figure in figures.items()}
        likely = bits_of(right, wanted, errors) > CHANCE_BITS + np.log2(max(found.tried, 1))
        return found if likely and found.steps and (found.is_clear or confirmed(found.steps)) else None

"""The healthy evaluations of a model, kept ready for feed after feed; each may have a feed of its own.

Fed alike they say what a healthy engine may make of one step. Each fed with what it made itself of the step before,
they say how far a healthy engine may drift: rounding that is carried on is part of every one of them.
"""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.within import Limit
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import ROUNDED, fp32_members
from tensortriage.envelope.members import CENTRE
from tensortriage.envelope.row_limits import Part, healthy_members, limit_among
from tensortriage.envelope.score_radii import format_radius, fp32_radius
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision

Arrays = Mapping[str, np.ndarray]
MIDDLE = "centre"
"""Name of the evaluation that the others are compared with."""


class HealthyRuns:
    """Sessions of the healthy evaluations of one model.

    Args:
        lab: Where engines are asked; it keeps the sessions.
        model: The model.
        target: The engine whose hardware counts.
        precision: The format that it computes in.
    """

    def __init__(self, lab: Lab, model: Model, *, target: EngineSpec, precision: Precision) -> None:
        self._lab, self._model, self._precision = lab, model, precision
        self._fp32 = tuple(fp32_members(model))
        self._specs = {MIDDLE: CENTRE, **healthy_members(model, target, precision)}

    @property
    def names(self) -> tuple[str, ...]:
        """The evaluations, `MIDDLE` first."""
        return tuple(self._specs)

    def on(self, feed: Arrays) -> dict[str, Arrays]:
        """Return what every evaluation makes of one feed; see `each_on`."""
        return self.each_on(dict.fromkeys(self._specs, feed))

    def each_on(self, feeds: Mapping[str, Arrays]) -> dict[str, Arrays]:
        """Return what every evaluation makes of its feed, by evaluation and output.

        Raises:
            EngineError: When the model cannot be evaluated.
            UsageError: Likewise.
        """
        return {name: self._lab.runner(spec, self._model).run(feeds[name]) for name, spec in self._specs.items()}

    def limit(self, found: Mapping[str, Arrays], value: str, part: Part) -> Limit:
        """Return the largest error of a healthy engine at an output, or a part of it.

        Args:
            found: What the evaluations made of their feeds.
            value: Name of the output.
            part: Picks the part.
        """
        centre = found[MIDDLE][value]
        members = {n: part(a[value]) for n, a in found.items() if n != MIDDLE and a[value].shape == centre.shape}
        return limit_among(part(centre), members, self._fp32)

    def radius(self, found: Mapping[str, Arrays], value: str, scores: np.ndarray) -> np.ndarray:
        """Return how far each score of an output may be off in a healthy engine, absolute, of the output's shape.

        Args:
            found: What the evaluations made of their feeds.
            value: Name of the output.
            scores: The reference's values of it.
        """
        radius = fp32_radius(scores, found[MIDDLE][value])
        narrow = self._precision if self._precision in ROUNDED else Precision.FP32
        for name, arrays in found.items():
            if name.startswith(("format", "chosen")):
                radius = np.maximum(radius, format_radius(scores, arrays[value], narrow))
        return radius

"""Tries steps of a simplification: does the case still fail in the same way?

A step that changes numbers or sizes changes the right outputs as well, so they are recorded again from the reference. A
step that does not run on the reference, or no longer fails on the target, is not taken.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.repro_case import Repro, ReproSample
from tensortriage.runs.lab import Lab

Feeds = Sequence[Mapping[str, np.ndarray]]


@dataclasses.dataclass(kw_only=True)
class Trials:
    """Tries steps until the time for them is used up.

    Attributes:
        reference: Engine with the right outputs.
        lab: Asks it.
        fails: Returns whether one run of a case fails as it should. Some show its model to a command or person, and
            need inputs and outputs only to know that it runs.
        seconds: Time for all steps together.
        attempts: Runs of one step before it counts as not failing.
        local: How the case should fail, as far as that is known.
        made: Steps tried so far.
    """

    reference: EngineSpec
    lab: Lab
    fails: Callable[[Repro], bool]
    seconds: float
    attempts: int = 1
    local: Failure = dataclasses.field(default_factory=lambda: Failure(FailureKind.WRONG))
    made: int = 0
    _started: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() - self._started >= self.seconds

    def fails_alike(self, repro: Repro) -> bool:
        """Return whether a case fails as it should; never does once the time is used up."""
        if self.over:
            return False
        self.made += 1
        return any(self.fails(repro) for _ in range(self.attempts))

    def record(self, model: Model, feeds: Feeds) -> Repro | None:
        """Return a case with the outputs that the reference gives; None when it cannot run the model."""
        samples: list[ReproSample] = []
        try:
            with self.lab.session(self.reference, model, sequence=True) as run:
                for feed in feeds:
                    samples.append(ReproSample(dict(feed), run(feed)))
        except TriageError:
            return None
        if any(array.size == 0 for sample in samples for array in sample.outputs.values()):
            return None
        return Repro(model, tuple(samples))

    def step(self, model: Model, feeds: Feeds) -> Repro | None:
        """Return a case with another model or other inputs when it fails alike, else None."""
        if self.over:
            return None
        repro = self.record(model, feeds)
        return repro if repro is not None and self.fails_alike(repro) else None

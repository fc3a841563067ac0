"""Tries steps of a simplification: does the case still fail in the same way?

A step that changes numbers or sizes changes what is right as well, so the outputs are recorded again from the
reference. A step that does not run on the reference, or no longer fails on the target, is not taken.
"""

import abc
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.model.model import Model
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.repro.repro_case import Repro, ReproSample, alike, failure_of
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace

Feeds = Sequence[Mapping[str, np.ndarray]]


@dataclasses.dataclass(kw_only=True)
class Trials(abc.ABC):
    """Tries steps until the time for them is used up; whoever judges adds how.

    Attributes:
        reference: Engine that says what is right.
        workspace: For temporary models.
        seconds: Time for all steps together.
        attempts: Runs of one step before it counts as not failing.
        local: How the case should fail, as far as that is known.
        made: Steps tried so far.
    """

    reference: EngineSpec
    workspace: Workspace
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
        """Say whether a case fails as it should; never does once the time is used up."""
        if self.over:
            return False
        self.made += 1
        return any(self.fails(repro) for _ in range(self.attempts))

    @abc.abstractmethod
    def fails(self, repro: Repro) -> bool:
        """Say whether one run of a case fails as it should."""

    def record(self, model: Model, feeds: Feeds) -> Repro | None:
        """Return a case with the outputs that the reference gives; None when it cannot run the model."""
        samples: list[ReproSample] = []
        try:
            with Runner(self.reference, model, workspace=self.workspace) as runner:
                for feed in feeds:
                    outputs = {name: np.array(array) for name, array in runner.run(feed).items()}
                    samples.append(ReproSample(dict(feed), outputs))
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


@dataclasses.dataclass(kw_only=True)
class EngineTrials(Trials):
    """Runs cases on the target.

    Attributes:
        target: Engine that fails.
        limits: Of the target.
        error_of: Relative size of an error.
    """

    target: EngineSpec
    limits: Limits
    error_of: Callable[[Metrics], float]

    def fails(self, repro: Repro) -> bool:
        """Say whether one run of a case fails as it should."""
        failure = failure_of(
            repro,
            self.target,
            workspace=self.workspace,
            limits=self.limits,
            error_of=self.error_of,
            signal=self.local.signal,
        )
        return alike(failure, self.local)


@dataclasses.dataclass(kw_only=True)
class CheckTrials(Trials):
    """Shows the models of cases to somebody else; their inputs and outputs only tell that the models run.

    Attributes:
        judge: Says whether a model fails as it should.
    """

    judge: Callable[[Model], bool]

    def fails(self, repro: Repro) -> bool:
        """Say whether one check of a model fails as it should."""
        return self.judge(repro.model)

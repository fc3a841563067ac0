"""The time budget of a diagnosis; when it is spent, the diagnosis stops and lists the questions that it left out."""

import dataclasses
import math
import time

from tensortriage.engines.base import RUN_SECONDS, Limits
from tensortriage.frozen_dataclass import frozen_dataclass


class BudgetSpent(Exception):
    """The time is over; raised before the next use of an engine."""


@frozen_dataclass
class Budget:
    """Wall time that may be spent.

    Attributes:
        seconds: How much; None for any amount.
        started: When it began, by `time.perf_counter`.
    """

    seconds: float | None = None
    started: float = dataclasses.field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        """Seconds left, at least 0; inf without a limit."""
        if self.seconds is None:
            return math.inf
        return max(0.0, self.seconds - (time.perf_counter() - self.started))

    def check(self) -> None:
        """Do nothing while time is left.

        Raises:
            BudgetSpent: When it is over.
        """
        if self.left <= 0.0:
            raise BudgetSpent

    def within(self, limits: Limits) -> Limits:
        """Return limits of an engine that end no later than the budget does."""
        left = self.left
        if math.isinf(left):
            return limits
        run = limits.run_seconds
        if run is None:  # left open, a run may take longer where the reference does
            run = left if left < RUN_SECONDS else None
        else:
            run = min(run, left)
        return dataclasses.replace(limits, build_seconds=min(limits.build_seconds, left), run_seconds=run)

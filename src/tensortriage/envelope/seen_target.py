"""What a judge may ask of a target beside its outputs, each when a row of the registry needs it."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.envelope.explanations import Explanation


class Alone(Protocol):
    """Ops that were run alone on golden operands."""

    @property
    def over(self) -> Mapping[str, float]:
        """Error over its limit, by value."""

    @property
    def chosen(self) -> Mapping[str, Explanation]:
        """Freedoms that account for what values are off by, where one does."""

    @property
    def harmless(self) -> Collection[str]:
        """Values of ops that are known not to make the error, though they are beyond their limits."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fused:
    """Functions that a target computes as one with what makes their operands, run on golden operands.

    Attributes:
        chosen: Freedoms that account for what such pieces are off by, by value, where no op of them is wrong alone.
        wrong: Whether one is farther off than any accounts for.
        certain: Whether one is farther off than a healthy kernel that also rounds inside.
    """

    chosen: Mapping[str, Explanation]
    wrong: bool
    certain: bool


class SeenTarget(Protocol):
    """Observations of a target other than its outputs, each made when a row needs it."""

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run; empty where it shows none, or showing them is another run."""

    def alone(self, *, asked: bool = True) -> Alone | None:
        """Return its ops run one by one; None where it does not run them so, or they are not ``asked`` for anew."""

    def are_harmless(self, values: Sequence[str]) -> bool:
        """Return whether what some ops are off by alone does not make the error, injected into the reference's run."""

    def fused(self, *, windows: bool = False) -> Fused:
        """Return what is seen of functions computed as one with what makes their operands.

        Args:
            windows: Whether other regions, and windows of a few ops, are asked for as well where these show nothing.
        """

"""Formats that a model is written in by more than its types, such as 8 bits with scales: other packages write them.

A package that knows such a format registers a function that makes a `NumberFormat` of it, under `GROUP` and by the
format's word; nothing here imports it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.precision.goal import GoalSample, PrecisionGoal
from tensortriage.precision.selection.emulation import Emulation
from tensortriage.precision.selection.switchable_model import Choosable
from tensortriage.precision.selection.typed_candidates import Candidates, EngineSetup
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.runs.task_metric import TaskMetric
from tensortriage.values.dtype import Precision
from tensortriage.values.registered import registered
from tensortriage.values.spec import ValueSpec

GROUP = "tensortriage.number_formats"
"""Entry-point group of functions that make a `NumberFormat` of a `Precision`; an entry's name is the format's word."""

Opened = tuple[Choosable, Emulation, Candidates]
"""The units of choice, the predictor of a choice's cost (must be closed), and the candidates on the engine."""

Samples = tuple[GoalSample, ...]


class Calibrating(NamedTuple):
    """Samples that candidates are calibrated with, and the metric that chooses how; None for the output error."""

    samples: Samples
    metric: TaskMetric | None


class CommandCandidates(Protocol):
    """The candidates of one model in one lower format, as a command is shown them."""

    identity: str
    """Digest of their inputs besides the model and the kept nodes."""

    scaled: bool
    """Whether scales move the values into the format's range."""

    @property
    def stage(self) -> Choosable:
        """The nodes that can be chosen."""
        ...

    def whole(self, kept: Collection[str]) -> tuple[str, ...]:
        """Return all nodes in the higher precision when some are kept, in topological order."""
        ...

    def model(self, kept: Collection[str]) -> Model:
        """Return the candidate for a choice of kept nodes."""
        ...

    def emulation(self, goal: PrecisionGoal, seconds: float | None) -> Emulation:
        """Return the emulation that measures each node's influence (to be closed)."""
        ...

    def settings(self, whole: Sequence[str]) -> Mapping[str, str]:
        """Return the same choice for other tools."""
        ...


class NumberFormat(ABC):
    """A format whose candidates are more than typed models."""

    @abstractmethod
    def divided(self, samples: Samples, tell: Callable[[str], None]) -> tuple[Samples, Samples]:
        """Return the samples that candidates are made with, and those that judge them."""

    @abstractmethod
    def opened(
        self,
        model: Model,
        specs: Mapping[str, ValueSpec],
        setup: EngineSetup,
        calibrating: Calibrating,
        *,
        tell: Callable[[str], None],
        seconds: float | None = None,
    ) -> Opened:
        """Return the candidates of a model on an engine, and the units of choice.

        Args:
            model: The float model.
            specs: Types of its values.
            setup: Runs candidates; its samples judge.
            calibrating: The calibration of candidates.
            tell: Receives the choices, in words.
            seconds: Time to measure the effect of each node alone; None for no limit.

        Raises:
            ModelError: When nothing of the model can be written in the format.
        """

    @abstractmethod
    def shown(self, source: GoldenValues, tell: Callable[[str], None]) -> CommandCandidates:
        """Return the candidates that a command judges, made with the feeds of an investigation."""

    @abstractmethod
    def settings(self, whole: Sequence[str], stage: Choosable) -> Mapping[str, str]:
        """Return a choice of nodes in the higher precision as settings of other tools."""

    @abstractmethod
    def doubting(self, source: GoldenValues) -> list[str]:
        """Return the commands that find further faults, where an engine's error exceeds that of the format."""


def number_format(precision: Precision) -> NumberFormat:
    """Return the writer of models in a format that types alone cannot express.

    Raises:
        UsageError: When no package that is installed does (``precision-not-typed``).
    """
    point = registered(GROUP).get(precision.value)
    if point is None:
        raise UsageError(
            f"a model cannot be written in {precision.value} by types alone, and no installed package writes it "
            f"another way",
            slug="precision-not-typed",
            cure=f"leave out -o and use --target emulate:precision={precision.value} to find the nodes",
        )
    return cast(NumberFormat, point.load()(precision))

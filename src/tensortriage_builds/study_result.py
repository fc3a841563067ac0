"""Result of a study of builds (``tensortriage.builds/1``)."""

import dataclasses

from tensortriage.sdk import CONFIDENCE, Choice
from tensortriage_builds.trial import BuildTrial, Difference

BUILDS_FORMAT = "tensortriage.builds/1"


@dataclasses.dataclass(frozen=True, slots=True)
class SuspectChoice:
    """A choice that bad builds have made more often than good ones.

    Attributes:
        layer: The engine's name of the layer.
        choice: The choice made there.
        nodes: ONNX nodes of the layer, where known.
        bad_with: Bad builds that chose it.
        good_with: Good builds that did.
        bad_without: Bad builds that chose something else.
        good_without: Good builds that did.
        factor: Bayes factor of "it matters" against "it does not"; see `tensortriage.search.statistics.association`.
        probability: Chance that it is the cause, if at most one choice is.
    """

    layer: str
    choice: str
    nodes: tuple[str, ...]
    bad_with: int
    good_with: int
    bad_without: int
    good_without: int
    factor: float
    probability: float


@dataclasses.dataclass(frozen=True, slots=True)
class GuiltyChoice:
    """A choice that makes a build bad: seen by making it and nothing else.

    Attributes:
        layer: The engine's name of the layer.
        nodes: ONNX nodes of the layer, where known.
        bad: The choice of bad builds.
        good: That of good ones.
    """

    layer: str
    nodes: tuple[str, ...]
    bad: Choice
    good: Choice


@dataclasses.dataclass(frozen=True, slots=True)
class TacticBlame:
    """Result of builds with given tactics.

    Attributes:
        guilty: The fewest choices of a bad build that make a good one bad; empty when that was not found.
        differing: Layers in which the two compared builds chose differently.
        builds: Builds with given tactics that it took, those known already included.
        cured: Whether the bad build is good when these choices alone are replaced; None when not tried.
        reason: Why nothing was found; empty when it was.
    """

    guilty: tuple[GuiltyChoice, ...] = ()
    differing: int = 0
    builds: int = 0
    cured: bool | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Pinned:
    """A good build made again from its recorded tactics.

    Attributes:
        trial: The build.
        same_outputs: Whether its outputs are those of the recorded build, bit by bit; None when not run.
        again_same: Whether a second such build has the same outputs as well.
    """

    trial: BuildTrial
    same_outputs: bool | None
    again_same: bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class Deployed:
    """A build as the user makes it, without recording tactics, which may change the build.

    Attributes:
        trial: The build.
        seen: Whether one of the recorded builds has the same outputs, bit by bit; None when builds were not run.
        moved: Difference of its outputs to the first recorded build; None without one.
    """

    trial: BuildTrial
    seen: bool | None
    moved: Difference | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuildStudy:
    """The result of a study of builds.

    Attributes:
        engine: Spec of the engine.
        trials: The builds that chose freely, in order.
        good: How many of them are good.
        bad: How many are bad.
        unresolved: Number of builds without a judgement.
        rate: Share of bad builds; None when no build was judged.
        low: Lower end of the rate's interval (Wilson).
        high: Upper end.
        confidence: Nominal coverage of the interval.
        distinct_outputs: Different outputs, bit by bit; 0 when builds were not run.
        distinct_plans: Different sets of choices (or plans); 0 when the engine reports neither.
        spread: Largest difference of outputs between two builds; None with fewer than two that ran.
        suspects: Choices that speak for failure, the most telling first.
        blame: Result of the search with given tactics; None when not tried.
        pinned: The reproducible good build; None when there is none.
        deployed: A build without recording; None when recording changes nothing for the engine, or was not wanted.
        stop: Why building stopped.
        seconds: Wall-clock time.
        files: The written files.
    """

    engine: str
    trials: tuple[BuildTrial, ...]
    good: int
    bad: int
    unresolved: int
    rate: float | None
    low: float
    high: float
    distinct_outputs: int
    distinct_plans: int
    spread: Difference | None
    suspects: tuple[SuspectChoice, ...]
    blame: TacticBlame | None
    pinned: Pinned | None
    deployed: Deployed | None
    stop: str
    seconds: float
    confidence: float = CONFIDENCE
    files: tuple[str, ...] = ()
    format: str = BUILDS_FORMAT

    @property
    def exit_code(self) -> int:
        """0 when the goal was reached, 4 when not, 130 when interrupted."""
        return {"reached": 0, "interrupted": 130}.get(self.stop, 4)

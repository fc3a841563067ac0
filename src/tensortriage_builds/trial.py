"""One judged build, and the interface of the makers of builds."""

import dataclasses
import enum
from collections.abc import Mapping

from tensortriage.sdk import Choice


class BuildJudgement(enum.Enum):
    """Judgement of a build; the value is the word in files and the name of the folder that it is sorted into."""

    GOOD = "good"
    BAD = "bad"
    OTHER = "other"
    """No judgement: the build failed, or the check ran out of time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuildTrial:
    """One build.

    Attributes:
        name: Number of the build from 0; for builds with given tactics a word.
        judgement: Good, bad or unresolved.
        signature: How it failed, in a word or two; empty for a good one.
        reason: One line for a person.
        error: Largest relative RMS error at an output; None when outputs were not compared.
        outputs: Digest of all outputs; empty when it was not run.
        values: Folder of the case with the outputs; empty likewise.
        choices: Tactics that the build chose, where the engine reports them.
        features: Properties of the build: pairs of a layer and its implementation.
        seconds: Wall time of the build and its check.
        files: The written files, by kind (``tactics``, ``engine``).
    """

    name: str
    judgement: BuildJudgement
    signature: str = ""
    reason: str = ""
    error: float | None = None
    outputs: str = ""
    values: str = ""
    choices: tuple[Choice, ...] = ()
    features: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether it is bad."""
        return self.judgement is BuildJudgement.BAD

    @property
    def good(self) -> bool:
        """Whether it is good."""
        return self.judgement is BuildJudgement.GOOD


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Greatest difference between two builds' outputs.

    Attributes:
        output: Output with that difference.
        feed: Feed with that difference.
        max_abs: Largest absolute difference there.
        relative: RMS of the difference over RMS of the output; infinite for NaN or Inf in one alone.
        builds: Names of the two builds.
    """

    output: str
    feed: str
    max_abs: float
    relative: float
    builds: tuple[str, str]

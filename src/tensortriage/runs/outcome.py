"""How an attempt to build or run ended; a failure is one of a few kinds, and a result like any other."""

import enum

from tensortriage.errors import (
    BuildFailed,
    EngineCrashed,
    EngineError,
    EngineHung,
    EngineOutOfMemory,
    RunFailed,
)
from tensortriage.frozen_dataclass import frozen_dataclass


class OutcomeKind(enum.Enum):
    """The kind of an attempt's end; the value is the word in files."""

    OK = "ok"
    BUILD_FAILED = "build-failed"
    RUN_FAILED = "run-failed"
    CRASH = "engine-crash"
    HANG = "engine-hang"
    OUT_OF_MEMORY = "out-of-memory"


@frozen_dataclass
class Outcome:
    """The end of an attempt.

    Attributes:
        kind: Success, or which failure.
        message: The engine's own words; empty on success.
        cure: Advice; empty when nothing is known to help.
    """

    kind: OutcomeKind
    message: str = ""
    cure: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.kind is OutcomeKind.OK

    @classmethod
    def of(cls, error: EngineError) -> "Outcome":
        """Return the outcome for an engine's error."""
        for kind, outcome in _KINDS.items():
            if isinstance(error, kind):
                return cls(outcome, error.message, error.cure)
        return cls(OutcomeKind.RUN_FAILED, error.message, error.cure)


OK = Outcome(OutcomeKind.OK)

_KINDS: dict[type[EngineError], OutcomeKind] = {
    BuildFailed: OutcomeKind.BUILD_FAILED,
    RunFailed: OutcomeKind.RUN_FAILED,
    EngineCrashed: OutcomeKind.CRASH,
    EngineHung: OutcomeKind.HANG,
    EngineOutOfMemory: OutcomeKind.OUT_OF_MEMORY,
}

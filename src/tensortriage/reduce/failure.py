"""How a model fails on an engine, and when a piece of it fails the same way.

A search that only asks "does it fail?" slides from the user's failure into any other one it meets: every piece of a
half-precision model is a little wrong, and a cut may crash an engine that ran the whole. So a failure has a signature:
its kind, the output of the model where it shows, and its size there. A wrong value inside a piece is the same failure
when, carried on to that output by the reference, it is still at least a tenth as large.
"""

import dataclasses
import enum
import math
import re
from collections.abc import Mapping

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.outcome import Outcome, OutcomeKind
from tensortriage.search.problem import CandidateOutcome as CheckOutcome
from tensortriage.search.problem import OracleVerdict
from tensortriage.values.text import error_size

SAME_FAILURE = 0.1
"""Share of the whole's error that a piece must account for. Needed nodes far apart each add to the error, and cutting
changes it a little; a failure of another origin is rarely within a factor of ten."""


class FailureKind(enum.Enum):
    """The kind of a failure; the value is the word in files and messages."""

    WRONG = "wrong"
    NON_FINITE = "non-finite"
    SHAPE = "shape"
    BUILD_FAILED = "build-failed"
    RUN_FAILED = "run-failed"
    CRASH = "engine-crash"
    HANG = "engine-hang"
    OUT_OF_MEMORY = "out-of-memory"

    @property
    def numeric(self) -> bool:
        """Whether the engine gave an answer, and it is wrong."""
        return self in (FailureKind.WRONG, FailureKind.NON_FINITE, FailureKind.SHAPE)


_KINDS = {
    OutcomeKind.BUILD_FAILED: FailureKind.BUILD_FAILED,
    OutcomeKind.RUN_FAILED: FailureKind.RUN_FAILED,
    OutcomeKind.CRASH: FailureKind.CRASH,
    OutcomeKind.HANG: FailureKind.HANG,
    OutcomeKind.OUT_OF_MEMORY: FailureKind.OUT_OF_MEMORY,
}
_REFUSALS = (FailureKind.BUILD_FAILED, FailureKind.RUN_FAILED)


@frozen_dataclass
class Failure:
    """The failure of a model, or of a piece of it.

    Attributes:
        kind: Kind of failure.
        value: The tensor that is wrong, in the piece; empty when the engine gave no answer.
        error: Relative size of its error there.
        output: The model's output at which the error shows when carried on; empty as above.
        influence: Relative size of the error there.
        sample: Name of the feed.
        signal: Root mean square of the right value there.
        message: The engine's own words, when it gave no answer.
        influences: For the whole model: error of every failing output, by feed.
    """

    kind: FailureKind
    value: str = ""
    error: float = 0.0
    output: str = ""
    influence: float = 0.0
    sample: str = ""
    signal: float = 0.0
    message: str = ""
    influences: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, outcome: Outcome, sample: str = "") -> "Failure":
        """Return the failure of an engine that gave no answer."""
        return cls(_KINDS[outcome.kind], sample=sample, message=outcome.message)

    @property
    def signature(self) -> str:
        """A short text that is equal for failures of one kind and magnitude."""
        if self.kind is FailureKind.WRONG:
            size = self.influence or self.error
            return f"wrong ~1e{math.floor(math.log10(size))}" if 0.0 < size < math.inf else "wrong"
        if self.kind in _REFUSALS:
            return f"{self.kind.value}: {essence(self.message)}"
        return str(self.kind.value)

    def describe(self) -> str:
        """Return one line for a person."""
        if not self.kind.numeric:
            return f"{self.kind.value}: {self.message}"
        where = f"'{self.value}'" if self.value else "an output"
        if self.kind is FailureKind.NON_FINITE:
            return f"{where} is not finite"
        if self.kind is FailureKind.SHAPE:
            return f"{where} has another shape"
        return f"{where} is wrong by {error_size(self.error)}" + (
            f", '{self.output}' by {error_size(self.influence)}" if self.output and self.output != self.value else ""
        )

    def share(self, sample: str, output: str, influence: float) -> float:
        """Return an error at an output of the model as share of the whole's there; 0 where the whole has none."""
        whole = self.influences.get(sample, {}).get(output, 0.0)
        if whole == 0.0:
            return 0.0
        return 1.0 if influence == whole else influence / whole


def verdict_on(failure: Failure | None, expected: Failure | None) -> OracleVerdict:
    """Return the verdict on a candidate.

    Args:
        failure: How it failed; None when it did not.
        expected: How the whole failed; None while that is being found out, when every failure will do.
    """
    if failure is None:
        return OracleVerdict(CheckOutcome.PASS)
    signature, detail = failure.signature, failure.describe()
    if expected is None or _alike(failure, expected):
        return OracleVerdict(CheckOutcome.SAME, signature, detail)
    if failure.kind in _REFUSALS and expected.kind not in _REFUSALS:
        return OracleVerdict(CheckOutcome.UNRESOLVED, signature, detail)  # the engine will not take this piece
    return OracleVerdict(CheckOutcome.OTHER, signature, detail)


def _alike(failure: Failure, expected: Failure) -> bool:
    if failure.kind in _REFUSALS and failure.kind is expected.kind:
        return essence(failure.message) == essence(expected.message)
    if failure.kind is not expected.kind:
        return False
    if failure.kind is FailureKind.WRONG:
        return expected.share(failure.sample, failure.output, failure.influence) >= SAME_FAILURE
    return True


def essence(message: str) -> str:
    """Return an error message without the parts that vary by piece: names in quotes, paths, numbers."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|(?<!\w)/\S+|0x[0-9a-fA-F]+", "#", first)
    return re.sub(r"\d+", "#", bare)[:200].strip()

"""Result of a batch: every cell, the ending of its command, and whether that was expected."""

import dataclasses
import enum
from collections.abc import Mapping

from tensortriage_fleet.findings.finding import Finding

BATCH_FORMAT = "tensortriage.batch-result/1"


class CellOutcome(enum.Enum):
    """Ending of a cell; the value is the word in files."""

    AS_EXPECTED = "as-expected"
    UNEXPECTED = "unexpected"
    SKIPPED = "skipped"
    NOT_RUN = "not-run"
    """The batch was interrupted before."""


@dataclasses.dataclass(frozen=True, slots=True)
class CellEnding:
    """Ending of a cell's command.

    Attributes:
        code: Exit code, negative for a signal; None when it was ended for its time.
        seconds: Wall time.
        verdict: Verdict of a diagnosis, slug of an error; empty without either.
        summary: One sentence.
        culprit: Node that a diagnosis names first.
        findings: Faults in its document.
    """

    code: int | None
    seconds: float
    verdict: str = ""
    summary: str = ""
    culprit: str = ""
    findings: tuple[Finding, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class CellResult:
    """A cell.

    Attributes:
        name: Its name.
        model, feed, target, command: Names of the combination; empty where the command takes none.
        outcome: Its outcome.
        expected: The expected outcome, in words.
        reason: Why it is not as expected, or why it was left out; empty otherwise.
        note: Its note in the batch file.
        line: The command line, as it can be typed in the folder of the batch file.
        ending: How it ended; None when it was not run.
        kept: Whether it ended so in an earlier run of the batch.
        folder: Folder of the cell, relative to that of the batch's case.
        report: Page of the cell, likewise relative; empty without one.
        file: Model file, relative to the folder of the batch file.
    """

    name: str
    model: str
    feed: str
    target: str
    command: str
    outcome: CellOutcome
    expected: str
    reason: str = ""
    note: str = ""
    line: str = ""
    ending: CellEnding | None = None
    kept: bool = False
    folder: str = ""
    report: str = ""
    file: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class BatchResult:
    """A batch.

    Attributes:
        file: The batch file, as it was named.
        cells: Every cell.
        seconds: Wall time of this run.
        created: When it ended, ISO 8601.
        versions: Versions that results depend on.
    """

    file: str
    cells: tuple[CellResult, ...]
    seconds: float
    created: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    format: str = BATCH_FORMAT

    def count_of(self, outcome: CellOutcome) -> int:
        """Return how many cells ended so."""
        return sum(cell.outcome is outcome for cell in self.cells)

    @property
    def interrupted(self) -> bool:
        """Whether cells are left that were not run."""
        return self.count_of(CellOutcome.NOT_RUN) > 0

    @property
    def exit_code(self) -> int:
        """Exit code: 0 when all is as expected; a batch in which nothing ran has shown nothing."""
        return 0 if self.count_of(CellOutcome.AS_EXPECTED) and not self._bad else 1

    @property
    def _bad(self) -> int:
        return self.count_of(CellOutcome.UNEXPECTED) + self.count_of(CellOutcome.NOT_RUN)

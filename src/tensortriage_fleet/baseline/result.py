"""Result of saving, checking or updating baselines: every model on every target, and the changes."""

import dataclasses
import enum
from collections.abc import Mapping

from tensortriage_fleet.baseline.baseline_file import SavedVerdict
from tensortriage_fleet.baseline.changes import Change


class EntryOutcome(enum.Enum):
    """The outcome of a model on a target; the value is the word in files."""

    SAME = "same"
    """Unchanged: nothing that makes a check fail has changed."""
    CHANGED = "changed"
    NEW = "new"
    """There is no baseline of it."""
    GONE = "gone"
    """There is no model to the baseline."""
    SAVED = "saved"
    REMOVED = "removed"
    UNJUDGED = "unjudged"
    """It differs, and it is unknown whether that is healthy."""
    NOT_CHECKED = "not-checked"
    """It could not be run: an engine that is missing, bad input, a time-out."""


@dataclasses.dataclass(frozen=True, slots=True)
class BaselineEntry:
    """A model on a target.

    Attributes:
        model: Path of the model, from the folder that holds the baselines.
        target: The engine.
        outcome: Outcome of the check or the save.
        changes: Differences from the baseline, whether or not a check fails by them.
        verdict: The diagnosis of now, where there was need of one.
        reason: Why it could not be run or judged; empty otherwise.
        code: Exit code of a command that could not run; None for a time-out, and otherwise.
        report: Page of the diagnosis, from the case; empty for none.
        kept: Whether all answers were in the case already.
        made_up: Whether its data are made up.
    """

    model: str
    target: str
    outcome: EntryOutcome
    changes: tuple[Change, ...] = ()
    verdict: SavedVerdict | None = None
    reason: str = ""
    code: int | None = None
    report: str = ""
    kept: bool = False
    made_up: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class BaselineResult:
    """Result of a command.

    Attributes:
        command: ``save``, ``check`` or ``update``.
        folder: The folder of the baselines.
        entries: Every model on every target.
        seconds: Wall time.
        created: When it ended, ISO 8601.
        versions: Versions that results depend on.
    """

    command: str
    folder: str
    entries: tuple[BaselineEntry, ...]
    seconds: float
    created: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    format: str = "tensortriage.baseline-result/1"

    def count_of(self, outcome: EntryOutcome) -> int:
        """Return how many ended so."""
        return sum(entry.outcome is outcome for entry in self.entries)

    @property
    def exit_code(self) -> int:
        """Exit code: 1 where something changed, else that of cells that could not be run or judged."""
        if any(entry.outcome in (EntryOutcome.CHANGED, EntryOutcome.NEW, EntryOutcome.GONE) for entry in self.entries):
            return 1
        codes = [entry.code for entry in self.entries if entry.outcome is EntryOutcome.NOT_CHECKED]
        if codes:
            return max(code if code in (2, 3) else 1 for code in codes)
        return 4 if self.count_of(EntryOutcome.UNJUDGED) else 0

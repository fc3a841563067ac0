"""A check: one run of the user's command on the files of its folder, judged, with its artifacts sorted."""

import dataclasses
import enum
import json
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.artifacts import BAD, GOOD, OTHER, Artifacts
from tensortriage.runs.commands.failure_rules import Rules, Ruling
from tensortriage.runs.commands.process import CommandLine, Processes, RunsCommands


class ShownOutput(enum.Enum):
    """The checks whose output is shown; the value is the word in files."""

    FAILURES = "failures"
    EVERYTHING = "everything"
    NOTHING = "nothing"


@frozen_dataclass(kw_only=True)
class CheckSpec:
    """A check as the user described it.

    Attributes:
        words: Program and arguments.
        rules: When its end means failure.
        timeout_seconds: Longest run; None for no limit.
        artifacts: Files to sort.
        iteration_info: File in which the command finds the number of its iteration, relative to the folder of the
            check.
        shown: The checks whose output is shown.
    """

    words: tuple[str, ...]
    rules: Rules = dataclasses.field(default_factory=Rules)
    timeout_seconds: float | None = None
    artifacts: Artifacts = dataclasses.field(default_factory=Artifacts)
    iteration_info: Path | None = None
    shown: ShownOutput = ShownOutput.FAILURES

    def identity(self) -> str:
        """Return a digest of the command and the rules; files it reads belong to `CheckIdentity`."""
        return digest(self.words, dataclasses.asdict(self.rules), self.timeout_seconds)


_logger = logging.getLogger(__name__)


class Checker:
    """Runs checks; from several threads at once when each has a folder of its own.

    Args:
        spec: The check.
        tell: Shows text to the user.
        where: Runs the command; as processes of this machine by default.
    """

    def __init__(self, spec: CheckSpec, *, tell: Callable[[str], None], where: RunsCommands | None = None) -> None:
        self.spec = spec
        self._tell = tell
        self._processes: RunsCommands = where or Processes()
        self._count = 0
        self._lock = threading.Lock()

    def next_iteration(self) -> int:
        """Return the number of the next iteration, from 0; each number once."""
        with self._lock:
            self._count += 1
            return self._count - 1

    def check(self, iteration: int, *, label: str = "", folder: Path | None = None) -> Ruling:
        """Run the command once and judge it.

        Args:
            iteration: Its number.
            label: Phase of the search, for the names of artifacts.
            folder: Working directory of the command; this process's by default.

        Raises:
            UsageError: When the command cannot be started.
        """
        info = self._write_info(iteration, folder)
        try:
            finished = self._processes.run(
                CommandLine(
                    self.spec.words,
                    folder=folder,
                    timeout_seconds=self.spec.timeout_seconds,
                    patterns=self.spec.rules.patterns(),
                )
            )
        finally:
            if info is not None:
                info.unlink(missing_ok=True)
        ruling = self.spec.rules.judge(finished)
        _logger.info("check %d%s: %s", iteration, f" {label}" if label else "", ruling.reason)
        wanted = {
            ShownOutput.EVERYTHING: True,
            ShownOutput.NOTHING: False,
            ShownOutput.FAILURES: ruling.failed is not False,
        }
        if wanted[self.spec.shown] and finished.printed.nbytes:
            self._tell(finished.printed.text.rstrip("\n"))
        if ruling.failed and (words := finished.printed.last_words()):
            return dataclasses.replace(ruling, reason=f"{ruling.reason}: {words}")
        return ruling

    def sort(self, verdict: str, iteration: int, *, label: str = "", folder: Path | None = None) -> None:
        """Sort the artifacts of a check into the folder of its verdict.

        Args:
            verdict: Word of `verdict_word`.
            iteration: Number of the check.
            label: Phase of the search, for the names of artifacts.
            folder: Where the check ran; None for the current directory.
        """
        suffix = f"N{iteration}" + (f"_{label}" if label else "")
        self.spec.artifacts.sort(verdict, suffix, beside=folder)

    def kill_running(self) -> None:
        """Kill the checks that are running; they end with a signal."""
        self._processes.kill_running()

    def close(self) -> None:
        """Kill running commands, and start none."""
        self._processes.close()

    def _write_info(self, iteration: int, folder: Path | None) -> Path | None:
        if self.spec.iteration_info is None:
            return None
        path = self.spec.iteration_info if folder is None else folder / self.spec.iteration_info
        path.write_text(json.dumps({"iteration": iteration}))
        return path


def verdict_word(failed: bool | None, *, same: bool = True) -> str:
    """Return the directory for the artifacts of a check: failures of another kind are neither good nor bad."""
    if failed is False:
        return GOOD
    return BAD if failed and same else OTHER


def shell_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command; one quoted text with spaces in it is for the shell."""
    if len(words) == 1 and any(character.isspace() for character in words[0]) and not Path(words[0]).exists():
        return ("sh", "-c", words[0])
    return tuple(words)

"""One cell: a command in a process of its own, in the folder of the batch file, with all that it writes in one folder.

Nothing that a command does, be it a crash, a hang or an answer that is no document, is more than an outcome here.
"""

import dataclasses
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tensortriage.sdk import (
    LOADED_CODE,
    CommandLine,
    Finished,
    StoreError,
    code_is_current,
    read_regular,
    write_text,
)
from tensortriage_fleet.batch.batch_result import CellEnding
from tensortriage_fleet.batch.judge_cell import ending_of

DOCUMENT, MESSAGES, CASE, KEY, CODE = "document.json", "messages.txt", "case", "key", "code"


@dataclasses.dataclass(frozen=True, slots=True)
class CellTask:
    """Everything needed to run a cell, on this machine or on another that sees the same folders.

    Attributes:
        key: Content key of the cell.
        words: Command line of the cell after ``triage``.
        place: Folder of the batch file, its working directory; absolute.
        folder: Folder for its files; absolute.
        case: Whether the command keeps its state in a case.
        output: File that it writes; empty for none.
        timeout_seconds: Longest run; None for no limit.
        fresh: Whether nothing that its folder has counts.
    """

    key: str
    words: tuple[str, ...]
    place: str
    folder: str
    case: bool
    output: str = ""
    timeout_seconds: float | None = None
    fresh: bool = False

    def command(self) -> list[str]:
        """Return program and arguments; ``-P`` keeps modules of the folder out, as for the program ``triage``."""
        words = [sys.executable, "-P", "-m", "tensortriage", *self.words]
        if self.output:
            words += ["-o", str(Path(self.folder) / self.output)]
        if self.case:
            words += ["--case", str(Path(self.folder) / CASE)]
        return [*words, "--json"]


def run_cell(task: CellTask, run: Callable[[CommandLine], Finished]) -> CellEnding:
    """Run a cell to its end.

    Args:
        task: The cell.
        run: Runs its command, on this machine or on another that sees the same folders.

    Raises:
        StoreError: When its folder cannot be written, or that of the batch file is not there (``batch-folder``).
    """
    folder = Path(task.folder)
    try:
        if task.fresh or key_in(folder) != task.key:
            shutil.rmtree(folder, ignore_errors=True)  # its contents belong to another question, or do not count
            folder.mkdir(parents=True)
            write_text(folder / KEY, task.key)
        if not code_is_current(folder / CODE):
            (folder / CODE).unlink()
        if task.output:
            (folder / task.output).unlink(missing_ok=True)
        finished = run(
            CommandLine(
                task.command(),
                folder=Path(task.place),
                timeout_seconds=task.timeout_seconds,
                stdout=folder / DOCUMENT,
                variables={LOADED_CODE: str(folder / CODE)},
            )
        )
        write_text(folder / MESSAGES, finished.printed.text)
    except OSError as error:
        raise StoreError(
            f"cell folder {folder} cannot be written: {error.strerror or error}",
            slug="batch-folder",
            cure="free disk space or give another --case; on a cluster, one that all nodes see",
        ) from error
    return ending_of(finished, folder / DOCUMENT)


def is_as_it_was(task: CellTask) -> bool:
    """Return whether a cell's folder is about it, and the code that its engines had loaded lies there unchanged."""
    return key_in(Path(task.folder)) == task.key and code_is_current(Path(task.folder) / CODE)


def key_in(folder: Path) -> str:
    """Return the key of the cell that a folder is about; empty for none."""
    try:
        return read_regular(folder / KEY).decode(errors="replace")
    except OSError:
        return ""

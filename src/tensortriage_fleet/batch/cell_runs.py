"""Runs cells, and keeps their endings by content in a case: an ended cell is run again only when it has changed."""

import concurrent.futures
import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortriage.sdk import Case
from tensortriage_fleet.batch.batch_result import CellEnding
from tensortriage_fleet.batch.cell_identity import CellKeys
from tensortriage_fleet.batch.cells import Cell
from tensortriage_fleet.batch.judge_cell import KEPT_CODES
from tensortriage_fleet.batch.run_cell import CellTask, is_as_it_was, run_cell
from tensortriage_fleet.cluster.command_pool import CommandPool

CELLS = "cells"
NAME_CHARACTERS = 60
"""Characters of a cell's name in its folder's; a digest of all of it follows."""


class CellRuns:
    """Cells, each a command in a process of its own.

    Args:
        case: The store of endings, and of the commands' files.
        place: The folder that they run in.
        timeout_seconds: Longest run; None for no limit.
        memory_limit: Memory limit of each, as commands take it; empty for none.
        fresh: Whether commands ask everything again.
    """

    def __init__(
        self, case: Case, place: Path, *, timeout_seconds: float | None, memory_limit: str = "", fresh: bool = False
    ) -> None:
        self._case = case
        self._place = place
        self._timeout_seconds = timeout_seconds
        self._fresh = fresh
        self._memory = ("--memory-limit", memory_limit) if memory_limit else ()
        self._keys = CellKeys(place)
        self._tasks: dict[Cell, CellTask] = {}

    def add(self, cell: Cell, model: str) -> None:
        """Take a cell up.

        Args:
            cell: The cell.
            model: Its model file, relative to the place.
        """
        words = (*cell.words, *self._memory)
        self._tasks[cell] = CellTask(
            self._keys.key(cell, words, model),
            words,
            str(self._place),
            str(self._case.folder.resolve() / folder_of(cell)),
            cell.crossing.case,
            cell.crossing.output,
            self._timeout_seconds,
            self._fresh,
        )

    def known(self, cell: Cell) -> CellEnding | None:
        """Return the ending that an earlier run kept; None where it has to be run."""
        task = self._tasks[cell]
        return self._case.checks.get(task.key, CellEnding) if is_as_it_was(task) else None

    def run(self, cells: Sequence[Cell], pool: CommandPool) -> Iterator[tuple[Cell, CellEnding, float]]:
        """Run cells, and yield each with its ending and about how many seconds the rest takes, as they end."""
        pending = {pool.submit(cell.needs, functools.partial(run_cell, self._tasks[cell])): cell for cell in cells}
        spent: list[float] = []
        while pending:
            done, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                cell, ending = pending.pop(future), future.result()
                if ending.code in KEPT_CODES:
                    self._case.checks.put(self._tasks[cell].key, cell.name, ending, seconds=ending.seconds)
                spent.append(ending.seconds)
                left = sum(spent) / len(spent) * len(pending) / max(1, min(pool.jobs, len(pending)))
                yield cell, ending, left


def folder_of(cell: Cell) -> str:
    """Return the folder of a cell, from that of its case."""
    short = re.sub(r"[^A-Za-z0-9._+-]+", "-", cell.name)[:NAME_CHARACTERS].strip("-.")
    return f"{CELLS}/{short}-{hashlib.sha256(cell.name.encode()).hexdigest()[:8]}"

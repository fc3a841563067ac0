"""A batch: every cell of a file is run once, judged, and stored; the same batch again runs only unfinished cells.

The endings of cells are kept by content in the case of the batch, so that a batch that was killed goes on, and a change
of what is expected is judged without running anything. What may be different next time (a missing engine, bad input, a
time-out, a crash) is not kept.
"""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import functools
import hashlib
import re
import shlex
import time
from collections.abc import Callable, Iterator

from tensortriage.sdk import Case, versions, write_text
from tensortriage_fleet.batch.batch_file import BatchFile, read_batch_file
from tensortriage_fleet.batch.batch_result import BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.batch.cell_identity import CellKeys
from tensortriage_fleet.batch.cells import Cell, cells
from tensortriage_fleet.batch.judge_cell import ENGINE_MISSING, KEPT_CODES, expected_words, misfit
from tensortriage_fleet.batch.junit import junit
from tensortriage_fleet.batch.overview import render_overview
from tensortriage_fleet.batch.request import BatchRequest
from tensortriage_fleet.batch.run_cell import CASE, DOCUMENT, CellTask, is_as_it_was, run_cell
from tensortriage_fleet.cluster.command_pool import CommandPool

RESULT, PAGE, CELLS = "batch.json", "report.html", "cells"
NAME_CHARACTERS = 60
"""Characters of a cell's name in its folder's; a digest of all of it follows."""


@dataclasses.dataclass(frozen=True, slots=True)
class BatchProgress:
    """Progress of a batch.

    Attributes:
        done, total: Cells.
        last: The cell that has just ended, or was known.
        seconds_left: About how long the rest takes; None while that cannot be told.
    """

    done: int
    total: int
    last: CellResult
    seconds_left: float | None


def run_batch(
    request: BatchRequest,
    *,
    observe: Callable[[BatchProgress], None],
) -> BatchResult:
    """Run a batch and write its documents; Ctrl-C ends it with the results so far.

    Args:
        request: What to run.
        observe: Told of every cell that ends.

    Raises:
        TriageError: For bad input.
    """
    started = time.monotonic()
    batch = read_batch_file(request.file)
    every = cells(batch, request.file)
    with Case(request.case, fresh=request.fresh) as case, contextlib.ExitStack() as entered:
        running = _Batch(request, batch, every, case, observe)
        with contextlib.suppress(KeyboardInterrupt):
            running.take_known()
            if running.missing:
                needs = {cell.needs for cell in running.missing}
                running.run(entered.enter_context(CommandPool.open(request.cluster, request.jobs, needs)))
        ended = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        result = BatchResult(str(request.file), tuple(running.results()), time.monotonic() - started, ended, versions())
        case.write(RESULT, result)
        write_text(case.folder / PAGE, render_overview(result))
    if request.junit is not None:
        write_text(request.junit, junit(result))
    return result


class _Batch:
    """The cells of a batch, and their known endings."""

    def __init__(
        self,
        request: BatchRequest,
        batch: BatchFile,
        every: tuple[Cell, ...],
        case: Case,
        observe: Callable[[BatchProgress], None],
    ) -> None:
        self._cells = every
        self._case = case
        self._observe = observe
        self._done: dict[Cell, CellResult] = {}
        place = request.file.resolve().parent
        limit = batch.timeout if request.timeout_seconds is None else request.timeout_seconds
        memory = ("--memory-limit", request.memory_limit) if request.memory_limit else ()
        keys = CellKeys(place)
        self._tasks: dict[Cell, CellTask] = {}
        for cell in every:
            if cell.rule is not None and cell.rule.skip:
                continue
            words = (*cell.words, *memory)
            self._tasks[cell] = CellTask(
                keys.key(cell, words, batch.models[cell.model].file),
                words,
                str(place),
                str(case.folder.resolve() / self._folder(cell)),
                cell.crossing.case,
                cell.crossing.output,
                limit,
                request.fresh,
            )

    @property
    def missing(self) -> list[Cell]:
        """Cells that have to be run."""
        return [cell for cell in self._cells if cell not in self._done]

    def take_known(self) -> None:
        """Record the skipped cells, and those that an earlier run finished."""
        for cell in self._cells:
            task = self._tasks.get(cell)
            if task is None:
                self._end(cell, None, kept=False)
            elif is_as_it_was(task):
                ending = self._case.checks.get(task.key, CellEnding)
                if ending is not None:
                    self._end(cell, ending, kept=True)

    def run(self, pool: CommandPool) -> None:
        """Run the unfinished cells."""
        pending = {
            pool.submit(cell.needs, functools.partial(run_cell, self._tasks[cell])): cell for cell in self.missing
        }
        spent: list[float] = []
        while pending:
            done, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                cell, ending = pending.pop(future), future.result()
                if ending.code in KEPT_CODES:
                    self._case.checks.put(self._tasks[cell].key, cell.name, ending, seconds=ending.seconds)
                spent.append(ending.seconds)
                left = sum(spent) / len(spent) * len(pending) / max(1, min(pool.jobs, len(pending)))
                self._end(cell, ending, kept=False, seconds_left=left)

    def results(self) -> Iterator[CellResult]:
        """Yield the ending of every cell."""
        for cell in self._cells:
            yield self._done.get(cell) or self._result(
                cell, None, CellOutcome.NOT_RUN, "the batch was interrupted before", kept=False
            )

    def _end(self, cell: Cell, ending: CellEnding | None, *, kept: bool, seconds_left: float | None = None) -> None:
        outcome, reason = _judged(cell, ending)
        self._done[cell] = self._result(cell, ending, outcome, reason, kept=kept)
        self._observe(BatchProgress(len(self._done), len(self._cells), self._done[cell], seconds_left))

    def _result(
        self, cell: Cell, ending: CellEnding | None, outcome: CellOutcome, reason: str, *, kept: bool
    ) -> CellResult:
        folder = self._folder(cell)
        pages = [f"{folder}/{CASE}/{PAGE}", f"{folder}/{DOCUMENT}"] if ending is not None else []
        return CellResult(
            name=cell.name,
            model=cell.model,
            feed=cell.feed,
            target=cell.target,
            command=cell.command,
            outcome=outcome,
            expected=expected_words(cell.rule),
            reason=reason,
            note=cell.rule.note if cell.rule is not None else "",
            line=shlex.join(["triage", *cell.words]),
            ending=ending,
            kept=kept,
            folder=folder,
            report=next((page for page in pages if (self._case.folder / page).exists()), ""),
        )

    @staticmethod
    def _folder(cell: Cell) -> str:
        """Return the folder of a cell, from that of the case."""
        short = re.sub(r"[^A-Za-z0-9._+-]+", "-", cell.name)[:NAME_CHARACTERS].strip("-.")
        return f"{CELLS}/{short}-{hashlib.sha256(cell.name.encode()).hexdigest()[:8]}"


def _judged(cell: Cell, ending: CellEnding | None) -> tuple[CellOutcome, str]:
    """Return the ending of a cell, and the reason if it is not as expected."""
    if ending is None:
        return CellOutcome.SKIPPED, cell.rule.skip if cell.rule is not None else ""
    if cell.optional and ending.code == ENGINE_MISSING:
        return CellOutcome.SKIPPED, ending.summary
    reason = misfit(cell.rule, ending)
    return (CellOutcome.UNEXPECTED if reason else CellOutcome.AS_EXPECTED), reason

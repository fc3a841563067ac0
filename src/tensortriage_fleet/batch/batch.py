"""A batch: every cell of a file is run once, judged, and stored; the same batch again runs only unfinished cells.

The endings of cells are kept by content in the case of the batch, so that a batch that was killed goes on, and a
changed expectation is judged without running anything. Endings that may change next time (a missing engine, bad input,
a time-out, a crash) are not kept.
"""

import contextlib
import dataclasses
import datetime
import shlex
import time
from collections.abc import Callable, Iterator

from tensortriage.sdk import Case, versions, write_text
from tensortriage_fleet.batch.batch_file import BatchFile, read_batch_file
from tensortriage_fleet.batch.batch_result import BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.batch.cell_runs import CellRuns, folder_of
from tensortriage_fleet.batch.cells import Cell, cells
from tensortriage_fleet.batch.judge_cell import ENGINE_MISSING, expected_words, misfit
from tensortriage_fleet.batch.junit import junit
from tensortriage_fleet.batch.overview import render_overview
from tensortriage_fleet.batch.request import BatchRequest
from tensortriage_fleet.batch.run_cell import CASE, DOCUMENT
from tensortriage_fleet.cluster.command_pool import CommandPool

RESULT, PAGE = "batch.json", "report.html"


@dataclasses.dataclass(frozen=True, slots=True)
class BatchProgress:
    """Progress of a batch.

    Attributes:
        done, total: Cells.
        last: The cell that has just ended, or was known.
        seconds_left: Estimated time for the rest; None while it is unknown.
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
        request: The user's request.
        observe: Receives every cell that ends.

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
        limit = batch.timeout if request.timeout_seconds is None else request.timeout_seconds
        place = request.file.resolve().parent
        self._runs = CellRuns(
            case, place, timeout_seconds=limit, memory_limit=request.memory_limit, fresh=request.fresh
        )
        self._files = {name: model.file for name, model in batch.models.items()}
        for cell in every:
            if not _skipped(cell):
                self._runs.add(cell, batch.models[cell.model].file)

    @property
    def missing(self) -> list[Cell]:
        """Cells that have to be run."""
        return [cell for cell in self._cells if cell not in self._done]

    def take_known(self) -> None:
        """Record the skipped cells, and those that an earlier run finished."""
        for cell in self._cells:
            if _skipped(cell):
                self._end(cell, None, kept=False)
            elif (ending := self._runs.known(cell)) is not None:
                self._end(cell, ending, kept=True)

    def run(self, pool: CommandPool) -> None:
        """Run the unfinished cells."""
        for cell, ending, left in self._runs.run(self.missing, pool):
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
        folder = folder_of(cell)
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
            file=self._files[cell.model],
        )


def _skipped(cell: Cell) -> bool:
    return cell.rule is not None and bool(cell.rule.skip)


def _judged(cell: Cell, ending: CellEnding | None) -> tuple[CellOutcome, str]:
    """Return the ending of a cell, and the reason if it is not as expected."""
    if ending is None:
        return CellOutcome.SKIPPED, cell.rule.skip if cell.rule is not None else ""
    if cell.optional and ending.code == ENGINE_MISSING:
        return CellOutcome.SKIPPED, ending.summary
    reason = misfit(cell.rule, ending)
    return (CellOutcome.UNEXPECTED if reason else CellOutcome.AS_EXPECTED), reason

"""A batch as lines for people: each cell as it ends, and what there is to say at the end."""

from collections.abc import Iterator, Mapping

from tensortriage.sdk import count, duration, printable, shorten
from tensortriage_batch.batch_result import BatchResult, CellOutcome, CellResult

OUTCOME_WORDS: Mapping[CellOutcome, str] = {
    CellOutcome.AS_EXPECTED: "ok",
    CellOutcome.UNEXPECTED: "FAILED",
    CellOutcome.SKIPPED: "skipped",
    CellOutcome.NOT_RUN: "not run",
}
_SUMMARY = 240


def cell_line(cell: CellResult) -> str:
    """Return a line for a cell that has ended."""
    ending = cell.ending
    said = cell.reason
    if ending is not None and cell.outcome is not CellOutcome.SKIPPED:
        said = cell.reason or ending.verdict or ending.summary
    when = "" if ending is None else " (earlier)" if cell.kept else f" ({ending.seconds:.1f} s)"
    return printable(f"{OUTCOME_WORDS[cell.outcome]:<8} {cell.name}: {shorten(said, _SUMMARY)}{when}")


def closing_lines(result: BatchResult) -> Iterator[str]:
    """Yield what is told at the end."""
    told = ", ".join(
        f"{result.count_of(outcome)} {word}" for outcome, word in OUTCOME_WORDS.items() if result.count_of(outcome)
    )
    kept = sum(cell.kept for cell in result.cells)
    yield f"{count(len(result.cells), 'cell')}: {told}; {duration(result.seconds)}" + (
        f", {kept} known from earlier" if kept else ""
    )
    for cell in result.cells:
        if cell.outcome is CellOutcome.UNEXPECTED:
            yield printable(f"  {cell.name}: {cell.reason}")
            yield printable(f"    {cell.line}")

"""A batch as lines for people: each cell as it ends, and a summary."""

from collections.abc import Iterator, Mapping

from tensortriage.sdk import count, duration, printable
from tensortriage_fleet.batch.batch_result import BatchResult, CellOutcome, CellResult

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
    words, culprit = cell.reason, ending.culprit if ending is not None else ""
    if ending is not None and cell.outcome is not CellOutcome.SKIPPED:
        words = cell.reason or (f"{ending.verdict} at {culprit}" if culprit else ending.verdict) or ending.summary
    when = "" if ending is None else " (earlier)" if cell.kept else f" ({ending.seconds:.1f} s)"
    return printable(f"{OUTCOME_WORDS[cell.outcome]:<8} {cell.name}: {_begun(words, culprit)}{when}")


def _begun(text: str, culprit: str) -> str:
    """Return the beginning of a text, with the culprit's whole name where it is in it."""
    most = max(_SUMMARY, text.find(culprit) + len(culprit))
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def counted(result: BatchResult) -> str:
    """Return how many cells there are, and how they ended."""
    counts = ", ".join(
        f"{result.count_of(outcome)} {word}" for outcome, word in OUTCOME_WORDS.items() if result.count_of(outcome)
    )
    return f"{count(len(result.cells), 'cell')}: {counts}"


def closing_lines(result: BatchResult) -> Iterator[str]:
    """Yield the summary."""
    kept = sum(cell.kept for cell in result.cells)
    yield f"{counted(result)}; {duration(result.seconds)}" + (f", {kept} known from earlier" if kept else "")
    for cell in result.cells:
        if cell.outcome is CellOutcome.UNEXPECTED:
            yield printable(f"  {cell.name}: {cell.reason}")
            yield printable(f"    {cell.line}")

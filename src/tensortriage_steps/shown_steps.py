"""A report of steps as figures: a table and remarks, in a terminal and on a page."""

import importlib.resources
from collections.abc import Iterator, Sequence

from tensortriage.sdk import Column, Looks, Table, TableCell, Tone, magnitude, page, percent, script_of
from tensortriage_steps.steps_report import FreeRun, StepRow, StepsReport, StepValue

MOST_STEPS = 12
"""Steps that a terminal lists; the others are as good as those shown."""

MOST_ROWS = 2000
"""Steps on the page; of more, which no reader goes through, ``steps.json`` holds all."""


def render_steps(report: StepsReport) -> str:
    """Return a self-contained page, as safe as the report of a case: its one script copies commands."""
    return page(
        (importlib.resources.files("tensortriage_steps") / "steps.html.j2").read_text(encoding="utf-8"),
        script=script_of("copy.js"),
        page=report,
        tone={0: "good", 4: "unsure"}.get(report.exit_code, "problem"),
        table=steps_table(report.rows),
        remarks=tuple(remarks_of(report)),
        diagnosis="" if report.diagnosis is None else f"step-{report.first}/report.html",
        most_rows=MOST_ROWS,
    )


def steps_table(rows: Sequence[StepRow]) -> Table:
    """Return a row for each step: its first wrong output, else the one nearest to its limit, and its scores."""
    columns: Sequence[Column[StepRow]] = (
        Column("step", lambda row: str(row.step), Looks.NUMBER),
        Column("length", lambda row: str(row.length or "-"), Looks.NUMBER),
        Column("", lambda row: TableCell("wrong", Tone.PROBLEM) if row.outside else TableCell("right", Tone.GOOD)),
        Column("worst output", lambda row: _worst(row).value, Looks.NAME),
        Column("rel. RMS", lambda row: magnitude(_worst(row).error), Looks.NUMBER, "relative RMS error"),
        Column("of limit", lambda row: magnitude(_worst(row).ratio), Looks.NUMBER, "of its limit"),
        Column("KL nats", lambda row: magnitude(row.divergence), Looks.NUMBER, "KL, nats"),
        Column("top 5", lambda row: percent(row.top_agreement), Looks.NUMBER, "top 5 agree"),
        Column("margin", lambda row: magnitude(row.margin), Looks.NUMBER),
        Column("own states", lambda row: magnitude(_drift(row)), Looks.NUMBER, "on own states, of its limit"),
    )
    return Table.of("Steps", "step", columns, rows)


def telling(rows: Sequence[StepRow]) -> list[StepRow]:
    """Return the wrong steps, the first and the last, and of the others those nearest to their limits."""
    if len(rows) <= MOST_STEPS:
        return list(rows)
    wrong = [row for row in rows if row.outside][: MOST_STEPS - 2]
    shown = {rows[0].step, rows[-1].step, *(row.step for row in wrong)}
    for row in sorted((row for row in rows if not row.outside), key=lambda row: (-_worst(row).ratio, row.step)):
        if len(shown) >= MOST_STEPS:
            break
        shown.add(row.step)
    return [row for row in rows if row.step in shown]


def _worst(row: StepRow) -> StepValue:
    return row.outside[0] if row.outside else max(row.values, key=lambda value: value.ratio)


def _drift(row: StepRow) -> float | None:
    return max((value.ratio for value in row.drifted), default=None)


def remarks_of(report: StepsReport) -> Iterator[str]:
    """Yield remarks besides the table and the summary."""
    if report.free is not None:
        yield _alone(report.free)
    if report.stopped and report.stopped not in report.summary:
        yield f"note: the reference stops: {report.stopped}"
    yield from (f"note: {note}" for note in report.notes)


def _alone(free: FreeRun) -> str:
    """Return a sentence on what both engines generate on their own."""
    if free.first is None:
        return f"alone, both generate the same {len(free.reference)} tokens"
    ours, theirs = (tokens[free.first][free.row] for tokens in (free.reference, free.target))
    where = f" of row {free.row}" if len(free.reference[0]) > 1 else ""
    text = f"alone, the tokens{where} part at step {free.first}: {ours} and {theirs}"
    if free.ahead is not None:
        text += f"; the reference's score of the first is {magnitude(free.ahead)} above that of the second"
    if free.moved is None:
        return text
    word = "a tie" if free.tie else "no tie"
    return f"{text}, and healthy engines move the two by up to {magnitude(free.moved)}: {word}"

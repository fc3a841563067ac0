"""Recorded tactics as text: one line per layer, and the tactics of bad builds that good builds lack."""

from collections.abc import Iterator, Sequence

from tensortriage.sdk import (
    Choice,
    Column,
    Line,
    Looks,
    Table,
    TableCell,
    TacticRecord,
    Tone,
    count,
    magnitude,
    more_line,
    percent,
    table_lines,
)
from tensortriage_builds.study_result import SuspectChoice
from tensortriage_builds.tactic_diff import TacticDiff

MOST_SHOWN = 30


def record_lines(record: TacticRecord) -> Iterator[Line]:
    """Yield the lines of one record."""
    columns: Sequence[Column[Choice]] = (
        Column("layer", lambda choice: choice.layer),
        Column("implementation", lambda choice: choice.implementation or "-"),
        Column("tactic", lambda choice: choice.tactic),
        Column("ms", lambda choice: "-" if choice.milliseconds is None else f"{choice.milliseconds:.4f}", Looks.NUMBER),
        Column("inputs", lambda choice: " ".join(choice.inputs) or "-"),
        Column("outputs", lambda choice: " ".join(choice.outputs) or "-"),
    )
    yield from table_lines(Table.of("Tactics", "choice", columns, record.choices), indent="")
    yield f"{record.engine}: {count(len(record.choices), 'choice')}"


def diff_lines(diff: TacticDiff) -> Iterator[Line]:
    """Yield the lines of a comparison of good and bad builds."""
    yield f"{count(len(diff.good), 'good build')}, {count(len(diff.bad), 'bad build')}"
    if not diff.suspects:
        yield "no choice is more frequent in bad builds than in good ones"
        return
    yield f"choices that no good build made: {len(diff.only_bad) or 'none'}"
    columns: Sequence[Column[SuspectChoice]] = (
        Column("", lambda one: "" if one.good_with else TableCell("!", Tone.PROBLEM)),
        Column("layer", lambda one: one.layer),
        Column("choice", lambda one: one.choice),
        Column("bad/good with", lambda one: f"{one.bad_with}/{one.good_with}", Looks.NUMBER),
        Column("bad/good without", lambda one: f"{one.bad_without}/{one.good_without}", Looks.NUMBER),
        Column("factor", lambda one: f"{magnitude(one.factor)}", Looks.NUMBER),
        Column("chance", lambda one: f"{percent(one.probability)}", Looks.NUMBER),
    )
    table = Table.of("Suspects", "choice", columns, (one for one in diff.suspects if one.factor > 1.0))
    yield from table_lines(table, most=MOST_SHOWN, indent="")
    yield from more_line(table, MOST_SHOWN, "", indent="")
    yield "! no good build made this choice; chance: of being the cause, if at most one choice is"

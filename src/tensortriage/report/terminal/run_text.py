"""A comparison as text: what was compared with what, a short table of the worst tensors, the result last."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensortriage.compare.comparison import Row
from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.relative_error import say
from tensortriage.compare.judgement.within import is_too_coarse
from tensortriage.compare.run_result import CompareResult, FeedComparison
from tensortriage.report.terminal.stream import StreamConsole
from tensortriage.report.terminal.task_text import task_lines
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_json
from tensortriage.values.text import magnitude, shorten, times

MOST_ROWS = 12
MOST_NAMES = 8

FIGURES_WIDTH = 70
"""Columns that the table takes beside the name of the tensor."""


def show(result: CompareResult, stream: TextIO) -> None:
    """Print a comparison; plain text when the stream is no terminal."""
    console = StreamConsole(stream)
    for name, outcome in result.outcomes.items():
        if not outcome.ok:
            console.print(
                Text(f"{name}: {outcome.kind.value}: {printable(outcome.message)}", style="red"), soft_wrap=True
            )
    if result.cuts is not None:
        console.print(Text(printable(result.cuts.in_words()), style="yellow"), soft_wrap=True)
    _reference(console, result)
    by_target: dict[str, list[FeedComparison]] = {}
    for item in result.comparisons:
        by_target.setdefault(item.comparison.target, []).append(item)
    for target, items in by_target.items():
        _target(console, result, target, items)
    for found in result.invalid[:MOST_ROWS]:
        console.print(
            Text(
                f"invalid: {printable(found.output)} of {found.participant} on {printable(found.feed)}: "
                f"{found.nan} NaN, {found.inf} Inf",
                style="red",
            ),
            soft_wrap=True,
        )
    if len(result.invalid) > MOST_ROWS:
        console.print(f"... and {len(result.invalid) - MOST_ROWS} more invalid outputs")
    for command in result.commands:
        console.print(f"built as: {printable(command)}", soft_wrap=True)
    for name, score in result.task_metrics.items():
        console.print(f"task metric of {name}: {score:.6g}", soft_wrap=True)
    for compared in result.task_comparisons:
        for line in task_lines(compared):
            console.print(printable(line), soft_wrap=True, highlight=False)
    console.print(Text(closing(result), style="green" if result.passed else "red"), soft_wrap=True)


def _reference(console: Console, result: CompareResult) -> None:
    """Say whether the reference is what the model computes."""
    if result.unjudged:
        console.print(
            f"{result.reference} could not be judged by the model: {printable(result.unjudged)}", soft_wrap=True
        )
    if not result.disagreements:
        return
    first = result.disagreements[0]
    others = len({found.value for found in result.disagreements}) - 1
    place = f" of {first.op_type} '{printable(first.node)}'" if first.node else ""
    console.print(
        Text(
            f"{result.reference} and the model disagree: on {printable(first.feed)}, '{printable(first.value)}'{place} "
            f"is off by {say(first.error)} from what the model computes ({first.limit})"
            + (f", and so are {others} more tensors" if others else "")
            + "; these are not results of this model on these inputs",
            style="bold red",
        ),
        soft_wrap=True,
    )


def _target(console: Console, result: CompareResult, target: str, items: list[FeedComparison]) -> None:
    rows = [(item.feed, row) for item in items for row in item.comparison.rows]
    failing = sum(not row.judgement.within for _, row in rows)
    console.print(
        Text(
            f"{target} against {result.reference}: {result.observation}, {len(items)} feed(s), {len(rows)} tensors, "
            f"{failing} beyond their limit",
            style="bold",
        ),
        soft_wrap=True,
    )
    for name in (target, result.reference):
        if name in result.moved:
            console.print(
                f"  marking {'changed' if result.moved[name] else 'did not change'} the model's own outputs on {name}",
                soft_wrap=True,
            )
    extra = sorted({name for item in items for name in item.comparison.unmatched})
    if extra:
        console.print(
            f"  not compared, on one side only: {_some(extra)}",
            soft_wrap=True,
        )
    paired = sorted({pair for item in items for pair in item.comparison.paired.items()})
    if paired:
        words = ", ".join(f"{printable(theirs)} is {printable(ours)}" for ours, theirs in paired[:8])
        console.print(f"  paired by value, {target}'s name first: {words}", soft_wrap=True)
    worst = sorted(rows, key=lambda pair: rank(pair[1]))[:MOST_ROWS]
    table = Table(box=None, pad_edge=False, show_edge=False)
    for title in ("tensor", "op", "max abs", "rel rms", "SQNR dB", "NaN/Inf", "of limit", ""):
        table.add_column(title, justify="left" if title in ("tensor", "op") else "right", no_wrap=True)
    for _, row in worst:
        table.add_row(*_cells(row, min(48, max(12, console.width - FIGURES_WIDTH))))
    console.print(table)
    for module, values in _by_module(row for _, row in worst).items():
        console.print(f"  {printable(module)}: {_some(values)}", soft_wrap=True)
    for _, row in worst:
        if words := told(row):
            console.print(f"  {printable(row.value)}: {printable(words)}", soft_wrap=True)
    limits = sorted({row.judgement.limit for _, row in rows})
    console.print(f"  limit: {limits[0] if len(limits) == 1 else 'the noise floor of each tensor'}", soft_wrap=True)
    chosen = sum(row.judgement.within and row.judgement.basis is Basis.HARDWARE for _, row in rows)
    if chosen:
        console.print(
            f"  {chosen} of them are beyond rounding, and within what such hardware chooses freely (accumulators, "
            "approximated functions): triage diagnose says what it chose",
            soft_wrap=True,
        )
    if len(rows) > MOST_ROWS:
        console.print(f"  ... and {len(rows) - MOST_ROWS} better ones")
    if result.observation == "deployed" and (lost := lost_to_format(row for _, row in rows)) is not None:
        share = f"{lost.metrics.relative_rms_error:.0%}"
        console.print(
            f"  the format alone may cost {printable(lost.value)} what is lost here, {share} of its signal: "
            "--metric-script, or --atol and --rtol, say whether that will do, and triage debug precision finds the "
            "nodes that need more bits",
            style="yellow",
            soft_wrap=True,
        )


def _by_module(rows: Iterable[Row]) -> Mapping[str, Sequence[str]]:
    """Return the tensors of each module, the worst first; those of no known module are left out."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.module and row.value not in found.setdefault(row.module, []):
            found[row.module].append(row.value)
    return found


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(printable(name) for name in names[:MOST_NAMES]) + more


ALLOWANCES = (Basis.FLOOR, Basis.FORMAT, Basis.HARDWARE)
"""What a limit rests on that the target's number format widens."""


def lost_to_format(rows: Iterable[Row]) -> Row | None:
    """Return the worst tensor that has lost a tenth of its signal or more, judged by what its format may cost."""
    found = [
        row
        for row in rows
        if row.is_rms
        and is_too_coarse(row.metrics.relative_rms_error)
        and (row.judgement.basis is Basis.LOST or (row.judgement.within and row.judgement.basis in ALLOWANCES))
    ]
    return max(found, key=lambda row: row.metrics.relative_rms_error, default=None)


def told(row: Row) -> str:
    """Return what the table does not say of a tensor: how far off it is by a measure of its own; else empty."""
    if row.is_rms or not row.figure:
        return row.note
    metrics = row.metrics
    return row.note or f"{metrics.mismatches} of {metrics.count} elements are unequal"


def rank(row: Row) -> tuple[bool, float, float]:
    """Return the sort key that puts the worst tensor first."""
    ratio, error = row.judgement.ratio, row.metrics.relative_rms_error if row.is_rms else row.figure or 0.0
    return (
        row.judgement.within,
        -math.inf if math.isnan(ratio) else -ratio,
        -math.inf if math.isnan(error) else -error,
    )


def _cells(row: Row, name_width: int) -> list[Text]:
    metrics = row.metrics
    sqnr = "inf" if math.isinf(metrics.sqnr_db) else f"{metrics.sqnr_db:.1f}"
    rms = magnitude(metrics.relative_rms_error)
    if not row.is_rms:
        sqnr = rms = "-"
    within = Text("ok", style="green") if row.judgement.within else Text("FAIL", style="bold red")
    return [
        Text(shorten(printable(row.value), name_width)),
        Text(row.op_type),
        Text("-" if row.note and not row.is_rms else magnitude(metrics.max_abs_error)),
        Text(rms),
        Text(sqnr),
        Text(str(metrics.nonfinite_mismatch or "")),
        Text(times(row.judgement.ratio)),
        within,
    ]


def closing(result: CompareResult) -> str:
    """Return the last line."""
    cost = f"{result.builds} builds in {result.build_seconds:.1f} s, {result.checks} runs in {result.run_seconds:.1f} s"
    data = "; the inputs were random" if set(result.feeds.values()) <= {"random"} else ""
    if not result.comparisons:
        verdict = "nothing was compared" if result.passed else "failed"
        return f"{verdict} ({cost}{data})"
    return f"{'passed' if result.passed else 'failed'} ({cost}{data})"


def to_document(result: CompareResult) -> str:
    """Return the comparison as one JSON document."""
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return to_json(fields | {"passed": result.passed})

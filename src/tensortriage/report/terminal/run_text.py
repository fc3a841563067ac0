"""A comparison as text: the participants, a short table of the worst tensors, the result last."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tensortriage.compare.comparison import Row
from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.judgement.within import is_too_coarse
from tensortriage.compare.task_metric import SampleScore, TaskComparison, difference_words
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.report.run_result import CompareResult, FeedComparison
from tensortriage.report.tables import JUDGED, Column, Looks, Table
from tensortriage.report.terminal.lines import Line
from tensortriage.report.terminal.table_text import table_lines
from tensortriage.runs.outcome import OutcomeKind
from tensortriage.values.grouping import grouped
from tensortriage.values.serial import to_json
from tensortriage.values.text import count, decibel, error_size, magnitude, percent, some, times

MOST_ROWS = 12
BEFORE = 2
"""Right tensors that are shown before the first wrong one, in the order of the graph."""
MOST_NAMES = 8
MOST_CHANGES = 3
"""Classes of one sample that are listed."""


@frozen_dataclass
class Shown:
    """The choice of tensors to show.

    Attributes:
        order: ``error`` for the worst first, ``graph`` for the order in which the model computes them.
        everything: Whether all are.
    """

    order: str = "error"
    everything: bool = False

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows to show of tensors in the order of the graph."""
        if self.order == "graph":
            first = next((place for place, row in enumerate(rows) if not row.judgement.within), 0)
            ordered = rows if self.everything else rows[max(0, min(first - BEFORE, len(rows) - MOST_ROWS)) :]
        else:
            ordered = sorted(rows, key=rank)
        return ordered if self.everything else ordered[:MOST_ROWS]


def comparison_lines(result: CompareResult, width: int, shown: Shown = Shown()) -> Iterator[Line]:
    """Yield a comparison, with tables for so many columns."""
    for name, outcome in result.outcomes.items():
        if not outcome.ok:
            cure = f"; {outcome.cure}" if outcome.kind is OutcomeKind.OUT_OF_MEMORY and outcome.cure else ""
            yield [(f"{name}: {outcome.kind.value}: {outcome.message}{cure}", "red")]
    if result.cuts is not None:
        yield [(result.cuts.in_words(), "yellow")]
    yield from _reference(result)
    for target, items in grouped((item.comparison.target, item) for item in result.comparisons).items():
        yield from _target(result, target, items, width, shown)
    for found in result.invalid[:MOST_ROWS]:
        words = f"{found.output} of {found.participant} on {found.feed}: {found.nan} NaN, {found.inf} Inf"
        yield [(f"invalid: {words}", "red")]
    if len(result.invalid) > MOST_ROWS:
        yield f"... and {len(result.invalid) - MOST_ROWS} more invalid outputs"
    yield from (f"built as: {command}" for command in result.commands)
    yield from (f"task metric of {name}: {magnitude(score, 6)}" for name, score in result.task_metrics.items())
    for compared in result.task_comparisons:
        yield from _task_lines(compared)
    yield [(closing(result), "green" if result.exit_code == 0 else "red")]


def _reference(result: CompareResult) -> Iterator[Line]:
    """Yield whether the reference agrees with the exact results of the model."""
    if result.unjudged:
        yield f"{result.reference} could not be judged by the model: {result.unjudged}"
    if result.unevaluated:
        yield [(f"no limit can be set: {result.unevaluated}", "red")]
    if not result.disagreements:
        return
    first = result.disagreements[0]
    others = len({found.value for found in result.disagreements}) - 1
    place = f" of {first.op_type} '{first.node}'" if first.node else ""
    more = f", and so are {others} more tensors" if others else ""
    words = (
        f"{result.reference} and the model disagree: on {first.feed}, '{first.value}'{place} is off by "
        f"{error_size(first.error)} from what the model computes ({first.limit}){more}; these are not results of this "
        "model on these inputs"
    )
    yield [(words, "bold red")]


def _target(
    result: CompareResult, target: str, items: list[FeedComparison], width: int, shown: Shown
) -> Iterator[Line]:
    rows = worst_feeds(items)
    failing = [row for row in rows if not row.judgement.within]
    sizes = f"{count(len(items), 'feed')}, {count(len(rows), 'tensor')}, {len(failing)} beyond their limit"
    yield [(f"{target} against {result.reference}: {result.observation}, {sizes}", "bold")]
    for name in (target, result.reference):
        if name in result.moved:
            changed = "changed" if result.moved[name] else "did not change"
            yield f"  marking {changed} the model's own outputs on {name}"
    if extra := sorted({name for item in items for name in item.comparison.unmatched}):
        yield f"  not compared, on one side only: {some(extra, MOST_NAMES)}"
    if paired := sorted({pair for item in items for pair in item.comparison.paired.items()}):
        words = ", ".join(f"{theirs} is {ours}" for ours, theirs in paired[:MOST_NAMES])
        yield f"  paired by value, {target}'s name first: {words}"
    drawn = shown.rows(rows)
    yield from table_lines(compared_tensors(drawn), width=width, indent="")
    if len(drawn) < len(rows):
        yield [(f"  {_not_shown(rows, drawn)}", "dim")]
    if failing and len(rows) > 1:
        yield [(f"  {first_failing(rows)}", "bold")]
    yield from (f"  {module}: {some(values, MOST_NAMES)}" for module, values in _by_module(drawn).items())
    yield from (f"  {row.value}: {words}" for row in drawn if (words := told(row)))
    if retyped := [f"'{row.value}' {row.retyped}" for row in rows if row.retyped]:
        yield f"  {some(retyped, MOST_NAMES)}"
    limits = sorted({row.judgement.limit for row in rows})
    yield f"  limit: {limits[0] if len(limits) == 1 else 'the noise floor of each tensor'}"
    chosen = [row for row in rows if row.judgement.within and row.judgement.basis is Basis.HARDWARE]
    if chosen:
        names = dict.fromkeys(name for row in chosen for name in row.judgement.allowed_by.split("+"))
        yield (
            f"  {len(chosen)} of them are beyond rounding, and explained by choices that such hardware is free to make "
            f"({', '.join(names)}): triage diagnose names the choice"
        )
    if result.observation == "deployed" and (lost := lost_to_format(sorted(rows, key=rank)[:MOST_ROWS])) is not None:
        words = (
            f"  the format alone can explain the loss of {lost.value}, {percent(lost.metrics.relative_rms_error)} "
            "of its signal: --metric, or --atol and --rtol, decide whether that is good enough, and triage debug "
            "precision finds the nodes that need more bits"
        )
        yield [(words, "yellow")]


def worst_feeds(items: Sequence[FeedComparison]) -> Sequence[Row]:
    """Return every tensor on the feed where it is worst, in the order in which the model computes them."""
    found: dict[str, Row] = {}
    for item in items:
        for row in item.comparison.rows:
            if row.value not in found or rank(row) < rank(found[row.value]):
                found[row.value] = row
    return tuple(found.values())


def first_failing(rows: Sequence[Row]) -> str:
    """Return in words the first tensor beyond its limit in the order of the graph; there must be one."""
    place, row = next((place, row) for place, row in enumerate(rows, 1) if not row.judgement.within)
    node = f", {row.op_type} '{row.node}'" if row.op_type else ""
    module = f", {row.module}" if row.module else ""
    return f"first beyond its limit in graph order: {row.value}{node}{module} (tensor {place} of {len(rows)})"


def _not_shown(rows: Sequence[Row], drawn: Sequence[Row]) -> str:
    left = [row for row in rows if not any(row is one for one in drawn)]
    failing = sum(not row.judgement.within for row in left)
    words = f"... and {count(len(left), 'tensor')} more"
    beyond = f", {failing} of them beyond their limit" if failing else " within their limits"
    return f"{words}{beyond}: --all shows them"


def compared_tensors(rows: Sequence[Row]) -> Table:
    """Return the tensors as a table, in the order that they have."""
    columns: Sequence[Column[Row]] = (
        Column("tensor", lambda row: row.value, Looks.NAME),
        Column("op", lambda row: row.op_type, Looks.OP),
        Column("max abs", lambda row: "-" if row.note and not row.is_rms else magnitude(row.metrics.max_abs_error),
               Looks.NUMBER),
        Column("rel. RMS", lambda row: magnitude(row.metrics.relative_rms_error) if row.is_rms else "-", Looks.NUMBER),
        Column("SQNR dB", lambda row: decibel(row.metrics.sqnr_db) if row.is_rms else "-", Looks.NUMBER),
        Column("NaN/Inf", lambda row: str(row.metrics.nonfinite_mismatch or "-"), Looks.NUMBER),
        Column("of limit", lambda row: times(row.judgement.ratio), Looks.NUMBER),
        Column("", lambda row: JUDGED[row.judgement.within]),
    )  # fmt: skip
    return Table.of("Compared", "tensor", columns, rows)


def _by_module(rows: Iterable[Row]) -> Mapping[str, Sequence[str]]:
    """Return the tensors of each module, the worst first; those of no known module are left out."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.module and row.value not in found.setdefault(row.module, []):
            found[row.module].append(row.value)
    return found


ALLOWANCES = (Basis.FLOOR, Basis.FORMAT, Basis.HARDWARE)
"""Bases of limits that the target's number format widens."""


def lost_to_format(rows: Iterable[Row]) -> Row | None:
    """Return the worst tensor that has lost a tenth of its signal or more, judged by the cost of its format."""
    found = [
        row
        for row in rows
        if row.is_rms
        and is_too_coarse(row.metrics.relative_rms_error)
        and (row.judgement.basis is Basis.LOST or (row.judgement.within and row.judgement.basis in ALLOWANCES))
    ]
    return max(found, key=lambda row: row.metrics.relative_rms_error, default=None)


def told(row: Row) -> str:
    """Return a remark that the table has no column for: the error by a measure of the tensor's own; else empty."""
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


def _task_lines(found: TaskComparison) -> Iterator[str]:
    """Yield the scores of a task metric for a target."""
    yield from (f"  {words}" for words in difference_words(found))
    moved = f"  worse on {found.worse}, better on {found.better}"
    if found.worse or found.better or found.flips:
        yield moved + ("" if found.flips is None else f"; another class wins on {found.flips}")
    for sample in found.worst:
        yield _sample(sample)
    for common in found.common:
        yield f"  in common: {common}"


def _sample(sample: SampleScore) -> str:
    text = f"    {sample.name}: {magnitude(sample.reference)} -> {magnitude(sample.target)}"
    if sample.flips:
        labels = zip(sample.label, sample.other, strict=False)
        changed = [f"{ours} -> {theirs}" for ours, theirs in labels if ours != theirs]
        text += f", class {some(changed, MOST_CHANGES)}"
    if sample.margin is not None:
        text += f", margin {magnitude(sample.margin)}"
    return f"{text}, largest input {magnitude(sample.largest_input)}"


def closing(result: CompareResult) -> str:
    """Return the last line."""
    builds, runs = count(result.builds, "build"), count(result.checks, "run")
    cost = f"{builds} in {result.build_seconds:.1f} s, {runs} in {result.run_seconds:.1f} s"
    data = "; the inputs were random" if set(result.feeds.values()) <= {"random"} else ""
    if not result.comparisons:
        verdict = "nothing was compared" if result.passed else "failed"
        return f"{verdict} ({cost}{data})"
    return f"{result.word} ({cost}{data})"


def to_document(result: CompareResult) -> str:
    """Return the comparison as one JSON document."""
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return to_json(fields | {"passed": result.exit_code == 0})

"""The tables of a case, each stated here and nowhere else."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tensortriage.diagnose.state.layer_rows import OutputRow
from tensortriage.diagnose.state.verdict import Culprit, ShapeRow
from tensortriage.report.document import Report
from tensortriage.report.tables import Column, Looks, Table, TableCell, Tone
from tensortriage.runs.analyses.ranges import FormatMisfit, RangeRow
from tensortriage.values.text import decibel, magnitude, percent, shape, times

MOST_ROWS = 12
"""Rows shown where there is little room; the rest is counted, and is on the page and in the data."""

_TONES: Mapping[str, Tone] = MappingProxyType(
    {"within": Tone.GOOD, "as predicted": Tone.NOTICE, "outside": Tone.PROBLEM}
)


def culprits(report: Report) -> Table:
    """Return the ops held responsible."""
    columns: Sequence[Column[Culprit]] = (
        Column("op", lambda c: c.op_type, Looks.OP),
        Column("node", lambda c: c.node, Looks.NAME),
        Column("local error", lambda c: magnitude(c.local_error), Looks.NUMBER),
        Column("x floor", lambda c: times(c.floor_ratio), Looks.NUMBER),
        Column("influence", lambda c: magnitude(c.influence), Looks.NUMBER),
        Column("explains", lambda c: percent(report.explained_share(c)), Looks.NUMBER),
        Column("from", report.origin_words, Looks.CODE, beneath=MOST_ROWS),
        Column("why", report.reason_beyond_summary, Looks.SENTENCE, beneath=3),
        Column("error", lambda c: "; ".join(report.anatomy_beyond_headline(c)), Looks.SENTENCE, beneath=3),
    )
    return Table.of("Culprits", "culprit", columns, report.verdict.culprits)


def outputs(report: Report) -> Table:
    """Return the model's outputs, the worst first."""

    def judgement(row: OutputRow) -> TableCell:
        word = report.judgement(row)
        return TableCell(word, _TONES[word])

    columns: Sequence[Column[OutputRow]] = (
        Column("", judgement),
        Column("output", lambda row: row.name, Looks.NAME),
        Column("type", lambda row: f"{row.dtype} {shape(row.shape)}", Looks.QUIET),
        Column("SQNR dB", lambda row: decibel(row.sqnr_db), Looks.NUMBER),
        Column("rel. RMS", lambda row: magnitude(row.relative_rms_error), Looks.NUMBER, "relative RMS error"),
        Column("floor", lambda row: magnitude(row.floor), Looks.NUMBER, "noise floor"),
        Column("predicted", _predicted, Looks.NUMBER, "predicted by rounding"),
        Column("max abs", lambda row: magnitude(row.max_abs_error), Looks.NUMBER, "max abs error"),
        Column("NaN/Inf", lambda row: str(row.nonfinite_target or "-"), Looks.NUMBER),
        Column("worst feed", lambda row: row.feed, Looks.NAME, beneath=0),
    )
    notes = [("", sentence) for sentence in report.output_sentences]
    notes += [("allowed by", ", ".join(report.verdict.allowed_by))] if report.verdict.allowed_by else []
    notes += [("error of the worst", sentence) for sentence in report.verdict.anatomy]
    return Table.of("Outputs", "output", columns, report.worst_outputs(), notes)


def ranges(report: Report) -> Table:
    """Return the values that the target's format cannot, or may not, hold."""
    columns: Sequence[Column[tuple[RangeRow, FormatMisfit]]] = (
        Column("op", lambda found: found[0].op_type, Looks.OP),
        Column("node", lambda found: found[0].node, Looks.NAME),
        Column("tensor", lambda found: found[0].value, Looks.NAME),
        Column("", lambda found: "constant" if found[0].constant else "", Looks.QUIET),
        Column("largest", lambda found: magnitude(found[0].max_abs), Looks.NUMBER),
        Column("what", lambda found: found[1].words, Looks.SENTENCE),
        Column("certain", lambda found: "yes" if found[1].cannot else "may be"),
    )
    return Table.of(f"What {report.ranges.precision} cannot hold", "tensor", columns, report.misfits())


def shapes(report: Report) -> Table:
    """Return the shapes of a sweep."""
    columns: Sequence[Column[ShapeRow]] = (
        Column("", lambda row: TableCell(row.outcome, Tone.PROBLEM if row.fails else Tone.GOOD)),
        Column("shape", lambda row: row.shape),
        Column("output", lambda row: row.output, Looks.NAME),
        Column("rel. RMS", lambda row: magnitude(row.error), Looks.NUMBER, "relative RMS error"),
        Column("x floor", lambda row: times(row.floor_ratio), Looks.NUMBER),
        Column("why", lambda row: row.message, Looks.SENTENCE),
    )
    return Table.of("Shapes", "shape", columns, report.verdict.shapes)


def _predicted(row: OutputRow) -> str:
    return magnitude(row.predicted if row.predicted != row.floor else None)

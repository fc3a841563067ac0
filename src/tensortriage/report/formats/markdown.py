"""The report as the text of an issue: the question, the fault, the evidence and the next steps; ready to paste.

Names are shown as code spans, where no Markdown, HTML, mention or issue reference works. A code span is closed only by
as many backticks as opened it, so the fence is one longer than the longest run inside (CommonMark 0.31, section 6.1);
in tables the pipe is escaped too (GitHub Flavored Markdown, section 4.10).
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tensortriage.report.case_tables import MOST_ROWS, culprits, outputs, ranges, shapes
from tensortriage.report.document import Report, step_cost
from tensortriage.report.tables import Column, Looks, Table, TableCell, Tone
from tensortriage.report.verdict_words import BREAKERS
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_plain
from tensortriage.values.text import abridged, count, percent, shorten

_LONGEST_NAME = 200
_LONGEST_TEXT = 1000
_LONGEST_EVIDENCE = 1500
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$])")
_BLOCK_START = re.compile(r"^(?:()([-+#=])|(\d+)([.)])(?=\s|$))")
_REFERENCE = re.compile(r"([@#](?=\w)|:(?=//))")


def render(report: Report) -> str:
    """Return GitHub-flavoured Markdown."""
    sections = (
        _head(report),
        _remedy(report),
        _environment(report),
        table_lines(culprits(report)),
        _breakers(report),
        table_lines(outputs(report)),
        table_lines(ranges(report)),
        table_lines(shapes(report)),
        _left_open(report),
        _steps(report),
        _next(report),
    )
    return "\n".join(itertools.chain.from_iterable(sections))


def issue_text(headline: str, remarks: Iterable[str], table: Table, commands: Iterable[str]) -> str:
    """Return a result of another kind as the same sort of page: headline, remarks, a table, and the next commands."""
    items = (f"- {plain(remark)}" for remark in remarks)
    return "\n".join([f"**{plain(headline)}**", "", *items, "", *table_lines(table), *fenced(commands)])


def _head(report: Report) -> Iterable[str]:
    words = report.words
    yield f"## {report.verdict.verdict}: {plain(report.headline)}"
    yield ""
    yield plain(report.verdict.summary)
    yield ""
    yield (
        f"Confidence {percent(report.confidence)}, {plain(report.verdict.inputs)} inputs; "
        f"{plain(report.cost_words)}. {words.meaning}"
    )
    yield ""


def _remedy(report: Report) -> Iterable[str]:
    remedy = report.verdict.remedy
    if report.verdict.accuracy is not None:
        yield f"**Accuracy**: {plain(report.verdict.accuracy.words)}."
        yield ""
    if report.verdict.sufficiency:
        yield f"**Good enough?** {plain('; '.join(report.verdict.sufficiency))}."
        yield ""
    if remedy is not None:
        yield f"**Remedy**, tried on {code(remedy.target)}: {plain(remedy.summary)}."
        yield ""
    if report.verdict.fix:
        yield f"**Fix**: {plain(report.verdict.fix)}."
        yield ""
    if report.verdict.repro is not None:
        yield f"**Repro**: {plain(report.repro_words)}."
        yield ""


def _environment(report: Report) -> Iterable[str]:
    case = report.case
    if case is None:
        return
    model = case.model
    yield "### Environment"
    yield ""
    facts = [
        ("Model", f"{code(model.path)}: {count(model.nodes, 'node')}, {count(model.parameters, 'parameter')}, "
                  f"opset {model.opset}, sha256 {code(model.sha256)}"),
        ("Target model", code(case.target_model.path) if case.target_model else ""),
        ("Reference", code(case.reference)),
        ("Target", code(case.target)),
        ("Inputs", ", ".join(f"{code(feed.name)} ({plain(feed.origin)})" for feed in case.feeds[:MOST_ROWS])),
        ("Versions", ", ".join(f"{plain(name)} {plain(version)}" for name, version in case.versions.items())),
        ("Command", code(case.command)),
        ("Created", plain(case.created)),
    ]  # fmt: skip
    yield from (f"- {title}: {fact}" for title, fact in facts if fact)
    yield ""


def _breakers(report: Report) -> Iterable[str]:
    if report.verdict.breakers:
        yield f"Fusion breakers ({BREAKERS}): {', '.join(map(code, report.verdict.breakers[:MOST_ROWS]))}"
        yield ""


def _left_open(report: Report) -> Iterable[str]:
    if report.left_open:
        yield from ("### Left open", "")
        yield from (f"- {plain(step.question)} {plain(step.answer)}" for step in report.left_open)
        yield ""


def _steps(report: Report) -> Iterable[str]:
    if not report.verdict.steps:
        return
    yield "### Path taken"
    yield ""
    for number, step in enumerate(report.verdict.steps, 1):
        yield f"{number}. {plain(step.question)} **{plain(step.answer)}** ({step_cost(step)})"
        if step.evidence:
            yield ""
            yield from (f"    {line}".rstrip() for line in _evidence(step.evidence))
            yield ""
    yield ""


def _evidence(evidence: Mapping[str, Any]) -> Iterable[str]:
    yield "<details><summary>evidence</summary>"
    yield ""
    for name, value in evidence.items():
        text = json.dumps(to_plain(value), ensure_ascii=False)
        yield f"- {plain(name)}: {code(text, _LONGEST_EVIDENCE)}"
    yield ""
    yield "</details>"


def _next(report: Report) -> Iterable[str]:
    if report.verdict.next:
        yield from ("### Next", "", *fenced(report.verdict.next))


def fenced(commands: Iterable[str]) -> Iterable[str]:
    """Yield commands as a block to be copied."""
    lines = list(map(printable, commands))
    fence = "`" * max(3, _longest_backtick_run("\n".join(lines)) + 1)
    yield from (f"{fence}sh", *lines, fence, "")


def table_lines(table: Table) -> Iterable[str]:
    """Yield a table under its title, of its first rows; nothing when it has none."""
    if not table.rows:
        return
    yield f"### {plain(table.title)}"
    yield ""
    yield "| " + " | ".join(column.full_title for column in table.columns) + " |"
    yield "|" + "".join("---:|" if column.looks is Looks.NUMBER else "---|" for column in table.columns)
    for row in table.rows[:MOST_ROWS]:
        yield "| " + " | ".join(map(_cell, row, table.columns)) + " |"
    if len(table.rows) > MOST_ROWS:
        yield ""
        yield f"... and {count(len(table.rows) - MOST_ROWS, table.noun)} more."
    if table.notes:
        yield ""
        yield from (f"- {plain(f'{label}: {text}' if label else text)}" for label, text in table.notes[:MOST_ROWS])
    yield ""


def _cell(cell: TableCell, column: Column[object]) -> str:
    if column.looks in (Looks.NAME, Looks.OP, Looks.CODE):
        return cell_code(cell.text) if cell.text else "-"
    if column.looks is Looks.NUMBER:
        return cell.text
    return f"**{plain(cell.text)}**" if cell.tone is Tone.PROBLEM else plain(cell.text) or "-"


def plain(text: str) -> str:
    """Return text without characters that are special in Markdown, HTML or an issue tracker.

    Mentions, issue numbers and bare addresses are found in the *rendered* text, where backslashes are gone; an empty
    comment keeps them apart.
    """
    escaped = _SPECIAL.sub(r"\\\1", abridged(printable(text), _LONGEST_TEXT)).strip()
    return _REFERENCE.sub(r"\1<!-- -->", _BLOCK_START.sub(r"\1\3\\\2\4", escaped))


def code(text: str, width: int = _LONGEST_NAME) -> str:
    """Return a code span that shows exactly ``text`` (shortened in the middle beyond ``width`` characters)."""
    text = shorten(printable(text), width)
    if not text.strip():
        return "(empty)" if not text else "(blank)"
    run = _longest_backtick_run(text)
    fence = "`" * (run + 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell_code(text: str) -> str:
    """Return a code span for a table cell, where a pipe must be escaped even inside code."""
    return code(text).replace("|", "\\|")


def _longest_backtick_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)

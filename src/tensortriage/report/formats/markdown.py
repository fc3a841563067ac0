"""The report as the text of an issue: what was asked, what is wrong, the evidence, how to go on; ready to paste.

Names are shown as code spans, in which no Markdown, HTML, mention or issue reference works. A code span is closed only
by as many backticks as opened it, so the fence is one longer than the longest run inside (CommonMark 0.31, section
6.1); in tables the pipe is escaped too (GitHub Flavored Markdown, section 4.10).
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.report.document import Report
from tensortriage.report.verdict_words import BREAKERS
from tensortriage.values.printable import printable
from tensortriage.values.serial import to_plain
from tensortriage.values.text import count, decibel, duration, magnitude, percent, shape, shorten, times

MAX_ROWS = 12
_LONGEST_NAME = 200
_LONGEST_TEXT = 600
_LONGEST_EVIDENCE = 1500
_WITHIN = {"within": "yes", "as predicted": "as predicted", "outside": "**no**"}
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$])")
_BLOCK_START = re.compile(r"^(?:()([-+#=])|(\d+)([.)])(?=\s|$))")
_REFERENCE = re.compile(r"([@#](?=\w)|:(?=//))")


def render(report: Report) -> str:
    """Return GitHub-flavoured Markdown."""
    sections = (
        _head(report),
        _remedy(report),
        _environment(report),
        _culprits(report),
        _outputs(report),
        _ranges(report),
        _shapes(report),
        _steps(report),
        _next(report),
    )
    return "\n".join(itertools.chain.from_iterable(sections))


def _head(report: Report) -> Iterable[str]:
    words = report.words
    yield f"## {report.verdict.verdict}: {words.title}"
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
    if remedy is not None:
        yield f"**Remedy**, tried on {code(remedy.target)}: {plain(remedy.summary)}."
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
        ("Inputs", ", ".join(f"{code(feed.name)} ({plain(feed.origin)})" for feed in case.feeds[:MAX_ROWS])),
        ("Versions", ", ".join(f"{plain(name)} {plain(version)}" for name, version in case.versions.items())),
        ("Command", code(case.command)),
        ("Created", plain(case.created)),
    ]  # fmt: skip
    yield from (f"- {title}: {fact}" for title, fact in facts if fact)
    yield ""


def _culprits(report: Report) -> Iterable[str]:
    culprits = report.verdict.culprits
    if not culprits:
        return
    yield "### Culprits"
    yield ""
    yield from _table(
        ("op", "node", "local error", "x floor", "influence", "explains", "why"),
        (
            (
                cell_code(c.op_type), _node(report, c), magnitude(c.local_error), times(c.floor_ratio),
                magnitude(c.influence), percent(report.explained_share(c)),
                "; ".join(filter(None, (plain(c.reason), *map(plain, c.anatomy)))) or "-",
            )
            for c in culprits[:MAX_ROWS]
        ),
    )  # fmt: skip
    yield from _more(len(culprits), "culprit")
    yield ""
    if report.verdict.breakers:
        yield f"Fusion breakers ({BREAKERS}): {', '.join(map(code, report.verdict.breakers[:MAX_ROWS]))}"
        yield ""


def _node(report: Report, culprit: Culprit) -> str:
    origin = report.origin_words(culprit)
    return cell_code(culprit.node) + (f" from {cell_code(origin)}" if origin else "")


def _outputs(report: Report) -> Iterable[str]:
    rows = report.worst_outputs()
    if not rows:
        return
    yield "### Outputs"
    yield ""
    yield from _table(
        ("output", "type", "SQNR dB", "relative RMS error", "floor", "predicted", "max abs error", "NaN/Inf", "within"),
        (
            (
                cell_code(row.name), plain(f"{row.dtype} {shape(row.shape)}"), decibel(row.sqnr_db),
                magnitude(row.relative_rms_error), magnitude(row.floor), magnitude(row.predicted),
                magnitude(row.max_abs_error), str(row.nonfinite_target or "-"), _WITHIN[report.judgement(row)],
            )
            for row in rows[:MAX_ROWS]
        ),
    )  # fmt: skip
    yield from _more(len(rows), "output")
    if report.told_outputs:
        yield ""
        yield from (f"- {plain(sentence)}" for sentence in report.told_outputs[:MAX_ROWS])
    if report.verdict.anatomy:
        yield ""
        yield "The error of the worst output:"
        yield ""
        yield from (f"- {plain(sentence)}" for sentence in report.verdict.anatomy)
    yield ""


def _shapes(report: Report) -> Iterable[str]:
    if not report.verdict.shapes:
        return
    yield "### Shapes"
    yield ""
    yield from _table(
        ("shape", "outcome", "output", "relative RMS error", "x floor", "why"),
        (
            (
                plain(row.shape), f"**{plain(row.outcome)}**" if row.fails else plain(row.outcome),
                cell_code(row.output) if row.output else "-", magnitude(row.error), times(row.floor_ratio),
                plain(row.message) or "-",
            )
            for row in report.verdict.shapes
        ),
    )  # fmt: skip
    yield ""


def _ranges(report: Report) -> Iterable[str]:
    misfits = report.misfits()
    if not misfits:
        return
    yield f"### What {report.ranges.precision} cannot hold"
    yield ""
    yield from _table(
        ("op", "node", "tensor", "largest", "what", "certain"),
        (
            (
                cell_code(row.op_type), cell_code(row.node), cell_code(row.value), magnitude(row.max_abs),
                plain(misfit.words), "yes" if misfit.cannot else "may be",
            )
            for row, misfit in misfits[:MAX_ROWS]
        ),
    )  # fmt: skip
    yield from _more(len(misfits), "tensor")
    yield ""


def _steps(report: Report) -> Iterable[str]:
    if not report.verdict.steps:
        return
    yield "### Path taken"
    yield ""
    for number, step in enumerate(report.verdict.steps, 1):
        yield f"{number}. {plain(step.question)} **{plain(step.answer)}** ({duration(step.seconds)})"
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
    if not report.verdict.next:
        return
    commands = [printable(command) for command in report.verdict.next]
    fence = "`" * max(3, _longest_backtick_run("\n".join(commands)) + 1)
    yield "### Next"
    yield ""
    yield f"{fence}sh"
    yield from commands
    yield fence
    yield ""


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[str]:
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _more(total: int, noun: str) -> Iterable[str]:
    if total > MAX_ROWS:
        yield ""
        yield f"... and {count(total - MAX_ROWS, noun)} more."


def plain(text: str) -> str:
    """Return text in which no character means anything to Markdown, HTML or an issue tracker.

    Mentions, issue numbers and bare addresses are found in the *rendered* text, where backslashes are gone; an empty
    comment keeps them apart.
    """
    escaped = _SPECIAL.sub(r"\\\1", shorten(printable(text), _LONGEST_TEXT)).strip()
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

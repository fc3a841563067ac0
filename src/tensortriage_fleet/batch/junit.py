"""A batch as JUnit's XML, which CI systems show: a suite with a test for each cell, whose file is the model's.

The format is that of Ant's JUnit task, as read by Jenkins and GitLab: ``failure`` for an unexpected result, ``error``
for a command without a result about the model (a crash, a time-out, bad input), ``skipped`` for cells that were left
out.
"""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec

from tensortriage.sdk import printable
from tensortriage_fleet.batch.batch_result import BATCH_FORMAT, BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.findings.finding import Document, kind_of
from tensortriage_fleet.findings.located import located_in, question_of

SUFFIXES = (".xml",)

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (section 2.2), not even escaped."""
_SAYING = (0, 1, 4)
"""Exit codes of commands with a result about the model."""


def render(document: Document, source: Path) -> str:
    """Return a document as XML: a batch with all its cells, another as one test."""
    if kind_of(document) == BATCH_FORMAT.partition("/")[0].removeprefix("tensortriage."):
        return junit(msgspec.convert(document, BatchResult, strict=False))
    subject, model, command = question_of(document)
    findings = tuple(located.finding for located in located_in(document, source))
    first = next(iter(findings), None)
    outcome = CellOutcome.UNEXPECTED if findings else CellOutcome.AS_EXPECTED
    ending = CellEnding(1 if findings else 0, 0.0, summary=first.message if first else "", findings=findings)
    kind, file = kind_of(document), str(model or source)
    title = first.title if first else ""
    cell = CellResult(
        subject, subject, "", "", kind, outcome, "nothing wrong", title, line=command, ending=ending, file=file
    )
    return junit(BatchResult("", (cell,), 0.0))


def junit(result: BatchResult) -> str:
    """Return the XML."""
    failed = [cell for cell in result.cells if cell.outcome is CellOutcome.UNEXPECTED]
    errors = sum(_is_error(cell) for cell in failed)
    suite = ElementTree.Element(
        "testsuite",
        name=_text(result.file) or "triage",
        tests=str(len(result.cells)),
        failures=str(len(failed) - errors),
        errors=str(errors),
        skipped=str(result.count_of(CellOutcome.SKIPPED) + result.count_of(CellOutcome.NOT_RUN)),
        time=f"{sum(cell.ending.seconds for cell in result.cells if cell.ending):.3f}",
        timestamp=_text(result.created),
    )
    for cell in result.cells:
        _add(suite, cell, Path(result.file).parent)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _add(suite: ElementTree.Element, cell: CellResult, folder: Path) -> None:
    seconds = cell.ending.seconds if cell.ending else 0.0
    name = " / ".join(filter(None, (cell.feed, cell.target, cell.command)))
    case = ElementTree.SubElement(
        suite, "testcase", classname=_text(cell.model), name=_text(name), time=f"{seconds:.3f}"
    )
    if cell.file:
        case.set("file", _text((folder / cell.file).as_posix()))
    if cell.outcome is CellOutcome.UNEXPECTED:
        kind = "error" if _is_error(cell) else "failure"
        findings = cell.ending.findings if cell.ending else ()
        details = dict.fromkeys(text for finding in findings for text in finding.details if text not in cell.reason)
        message = "; ".join((cell.reason, *(text for text in details if findings and text in findings[0].details)))
        found = ElementTree.SubElement(case, kind, message=_text(message), type=findings[0].rule if findings else kind)
        summary = cell.ending.summary if cell.ending else ""
        found.text = _text("\n".join(filter(None, (summary, *details, cell.line, cell.note))))
    elif cell.outcome is not CellOutcome.AS_EXPECTED:
        ElementTree.SubElement(case, "skipped", message=_text(cell.reason))
    if cell.ending is not None:
        ElementTree.SubElement(case, "system-out").text = _text(f"{cell.ending.verdict}\n{cell.ending.summary}".strip())


def _is_error(cell: CellResult) -> bool:
    return cell.ending is None or cell.ending.code not in _SAYING


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", "\n".join(printable(line) for line in text.splitlines()))

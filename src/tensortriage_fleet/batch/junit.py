"""A batch as JUnit's XML, which CI systems show: a suite with a test for each cell, whose file is the model's.

The format is that of Ant's JUnit task, as read by Jenkins and GitLab: ``failure`` for what is not as expected,
``error`` for a command that said nothing of the model (a crash, a time-out, bad input), ``skipped`` for what was left
out.
"""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.sdk import printable
from tensortriage_fleet.batch.batch_result import BatchResult, CellEnding, CellOutcome, CellResult
from tensortriage_fleet.findings.located import located_in

if TYPE_CHECKING:
    from tensortriage.api import Report

SUFFIXES = (".xml",)

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (section 2.2), not even escaped."""
_SAYING = (0, 1, 4)
"""Exit codes of commands that said something of the model."""


def render(report: "Report") -> str:
    """Return a diagnosis as the XML of one test."""
    case, verdict = report.case, report.verdict
    model, target = (case.model.path, case.target) if case is not None else ("model", "")
    findings = tuple(found.finding for found in located_in(report))
    ending = CellEnding(verdict.exit_code, verdict.cost.seconds, verdict.verdict, verdict.summary, findings=findings)
    cell = CellResult(
        f"{model} / {target}", Path(model).name, "", target, "diagnose",
        CellOutcome.UNEXPECTED if verdict.exit_code else CellOutcome.AS_EXPECTED, "nothing wrong",
        f"{verdict.verdict}: {report.headline}", line=case.command if case is not None else "",
        ending=ending, file=model,
    )  # fmt: skip
    return junit(BatchResult(model, (cell,), verdict.cost.seconds, case.created if case is not None else ""))


def junit(result: BatchResult) -> str:
    """Return the XML."""
    failed = [cell for cell in result.cells if cell.outcome is CellOutcome.UNEXPECTED]
    errors = sum(_is_error(cell) for cell in failed)
    suite = ElementTree.Element(
        "testsuite",
        name=_text(result.file),
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
        suite,
        "testcase",
        classname=_text(cell.model),
        name=_text(name),
        time=f"{seconds:.3f}",
        **({"file": _text((folder / cell.file).as_posix())} if cell.file else {}),
    )
    if cell.outcome is CellOutcome.UNEXPECTED:
        kind = "error" if _is_error(cell) else "failure"
        findings = cell.ending.findings if cell.ending else ()
        details = dict.fromkeys(text for finding in findings for text in finding.details if text not in cell.reason)
        message = "; ".join((cell.reason, *(text for text in details if findings and text in findings[0].details)))
        found = ElementTree.SubElement(case, kind, message=_text(message), type=findings[0].rule if findings else kind)
        said = cell.ending.summary if cell.ending else ""
        found.text = _text("\n".join(filter(None, (said, *details, cell.line, cell.note))))
    elif cell.outcome is not CellOutcome.AS_EXPECTED:
        ElementTree.SubElement(case, "skipped", message=_text(cell.reason))
    if cell.ending is not None:
        ElementTree.SubElement(case, "system-out").text = _text(f"{cell.ending.verdict}\n{cell.ending.summary}".strip())


def _is_error(cell: CellResult) -> bool:
    return cell.ending is None or cell.ending.code not in _SAYING


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", "\n".join(printable(line) for line in text.splitlines()))

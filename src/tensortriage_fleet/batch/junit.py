"""A batch as JUnit's XML, which CI systems show: a suite with a test for each cell.

The format is that of Ant's JUnit task, as read by Jenkins and GitLab: ``failure`` for what is not as expected,
``error`` for a command that said nothing of the model (a crash, a time-out, bad input), ``skipped`` for what was left
out.
"""

import re
import xml.etree.ElementTree as ElementTree

from tensortriage.sdk import printable
from tensortriage_fleet.batch.batch_result import BatchResult, CellOutcome, CellResult

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold (section 2.2), not even escaped."""
_SAYING = (0, 1, 4)
"""Exit codes of commands that said something of the model."""


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
        _add(suite, cell)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _add(suite: ElementTree.Element, cell: CellResult) -> None:
    seconds = cell.ending.seconds if cell.ending else 0.0
    name = " / ".join(filter(None, (cell.feed, cell.target, cell.command)))
    case = ElementTree.SubElement(
        suite, "testcase", classname=_text(cell.model), name=_text(name), time=f"{seconds:.3f}"
    )
    if cell.outcome is CellOutcome.UNEXPECTED:
        kind = "error" if _is_error(cell) else "failure"
        found = ElementTree.SubElement(case, kind, message=_text(cell.reason), type=kind)
        found.text = _text("\n".join(filter(None, (cell.ending.summary if cell.ending else "", cell.line, cell.note))))
    elif cell.outcome is not CellOutcome.AS_EXPECTED:
        ElementTree.SubElement(case, "skipped", message=_text(cell.reason))
    if cell.ending is not None:
        ElementTree.SubElement(case, "system-out").text = _text(f"{cell.ending.verdict}\n{cell.ending.summary}".strip())


def _is_error(cell: CellResult) -> bool:
    return cell.ending is None or cell.ending.code not in _SAYING


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", "\n".join(printable(line) for line in text.splitlines()))

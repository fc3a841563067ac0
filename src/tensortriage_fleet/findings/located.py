"""Findings with the model, the question and the commands that they are about."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortriage.sdk import to_plain
from tensortriage_fleet.findings.finding import Finding, findings_of

if TYPE_CHECKING:
    from tensortriage.api import Report


@dataclasses.dataclass(frozen=True, slots=True)
class Located:
    """A finding about a model.

    Attributes:
        finding: What was found.
        subject: What was asked: the name of a cell, or the model and its target.
        model: Path of the model, from the working directory.
        expected: What was expected instead, in words; empty where nothing was said of it.
        command: Command line that shows it again, likewise.
        report: Page that shows more, likewise.
    """

    finding: Finding
    subject: str
    model: Path
    expected: str = ""
    command: str = ""
    report: str = ""

    @property
    def sentences(self) -> Sequence[str]:
        """Everything that is known, a sentence a line."""
        return list(self._sentences())

    def _sentences(self) -> Iterator[str]:
        yield self.finding.message
        yield from (text for text in self.finding.details if text not in self.finding.message)
        for label, text in (("expected", self.expected), ("command", self.command), ("report", self.report)):
            if text:
                yield f"{label}: {text}"


def located_in(report: "Report") -> Sequence[Located]:
    """Return what a diagnosis found; nothing where it ended well."""
    plain: Any = to_plain(report)
    case = report.case
    if case is None:
        return [Located(found, report.verdict.verdict, Path()) for found in findings_of(plain)]
    model = Path((case.target_model or case.model).path)
    subject = f"{model.name} on {case.target}"
    return [Located(found, subject, model, command=case.command) for found in findings_of(plain)]

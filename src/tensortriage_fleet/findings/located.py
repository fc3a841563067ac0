"""Findings of a document with the model, the question and the commands that they are about.

A diagnosis, a comparison, steps or a check is about one model; of a batch each cell is.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tensortriage_fleet.findings.finding import Document, Finding, findings_of, kind_of

_NOT_AS_IT_WAS = ("changed", "new", "gone", "unjudged", "not-checked")
"""Outcomes of a model on a target, of ``triage baseline check``, that are reported."""
UNEXPECTED = "unexpected"
"""Rule of a cell that is not as expected though its command found nothing wrong."""


@dataclasses.dataclass(frozen=True, slots=True)
class Located:
    """A finding about a model.

    Attributes:
        subject: The name of a cell, or the model and its target.
        model: Path of the model, from the working directory; None where the document does not name it.
        expected: The expected outcome, in words; empty where none was declared.
        command: Command line that shows it again, likewise.
        report: Page that shows more, likewise.
    """

    finding: Finding
    subject: str
    model: Path | None
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


def located_in(document: Document, source: Path) -> Sequence[Located]:
    """Return the faults in a document; none where all is well.

    Args:
        document: A command's ``--json`` document.
        source: The case or the file that holds it.
    """
    if kind_of(document) == "batch-result":
        cells = [cell for cell in document["cells"] if cell["outcome"] == "unexpected"]
        return [found for cell in cells for found in _of_cell(cell, Path(document["file"]).parent, source)]
    if kind_of(document) == "baseline-result":
        entries = [entry for entry in document["entries"] if entry["outcome"] in _NOT_AS_IT_WAS]
        return [_of_entry(entry, Path(document["folder"]), source) for entry in entries]
    subject, model, command = question_of(document)
    page = source / "report.html"
    report = str(page) if source.is_dir() and page.is_file() else ""
    return [Located(found, subject, model, command=command, report=report) for found in findings_of(document)]


def question_of(document: Document) -> tuple[str, Path | None, str]:
    """Return the subject of a document in words, its model, and its command line, if it has them."""
    case = document.get("case") or {}
    facts = case.get("target_model") or case.get("model") or {}
    model = facts.get("path") or document.get("model")
    target = case.get("target") or document.get("target") or ", ".join(document.get("targets", ()))
    words = " on ".join(filter(None, (Path(model).name if model else "", target)))
    return words or kind_of(document), Path(model) if model else None, case.get("command", "")


def _of_cell(cell: dict[str, Any], folder: Path, case: Path) -> Iterator[Located]:
    ending = cell.get("ending") or {}
    found = msgspec.convert(ending.get("findings", ()), tuple[Finding, ...], strict=False)
    for finding in found or (Finding(ending.get("verdict") or UNEXPECTED, "not as expected", cell["reason"]),):
        yield Located(
            finding,
            cell["name"],
            folder / cell["file"] if cell.get("file") else None,
            cell["expected"],
            cell["line"],
            str(case / cell["report"]) if cell["report"] else "",
        )


def _of_entry(entry: dict[str, Any], folder: Path, case: Path) -> Located:
    """Return the changes against a baseline: the output that is farthest off, with the op of the diagnosis."""
    outcome, changes, verdict = entry["outcome"], entry["changes"], entry.get("verdict") or {}
    outputs = [change for change in changes if change["ratio"] is not None]
    worst: dict[str, Any] = max(outputs, key=lambda change: float(change["ratio"]), default={})
    nodes = [*verdict.get("culprits", ()), *(node for change in changes for node in change["nodes"])]
    op_type, _, node = nodes[0].partition(" ") if nodes else ("", "", "")
    clauses = [f"{change['what']}: {change['sentence']}" for change in changes]
    finding = Finding(
        rule=f"baseline-{outcome}",
        title=outcome + (f" at {nodes[0]}" if nodes else ""),
        message="; ".join(filter(None, (entry["reason"], *clauses, verdict.get("sentence")))) or outcome,
        output=worst.get("output", ""),
        ratio=float(worst["ratio"]) if worst else None,
        node=node.strip("'"),
        op_type=op_type,
        is_sure=outcome != "unjudged",
    )
    report = str(case / entry["report"]) if entry["report"] else ""
    model = folder.parent / entry["model"]
    return Located(finding, f"{entry['model']} on {entry['target']}", model, "as it was", report=report)

"""Findings as SARIF 2.1.0 (OASIS, errata 1), which code scanning of GitHub, Azure DevOps and editors read.

A result lies at the line of the source that its node was made from, or in the model's file, and names the node as its
logical location. Its fingerprint is of the question and the culprit, not of figures: a finding stays the same one when
a run is off by another digit.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensortriage import __version__
from tensortriage.api import Report, Verdict, VerdictKind
from tensortriage.sdk import printable
from tensortriage_fleet.findings.finding import Document, Finding
from tensortriage_fleet.findings.located import Located, located_in, question_of
from tensortriage_fleet.findings.repository import FilePlace, Repository

SUFFIXES = (".sarif",)
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""Symbol for the folder of the repository (SARIF 2.1.0, section 3.14.14)."""


def render(document: Document, source: Path) -> str:
    """Return the findings of a document; a log without results where all is well."""
    repository = Repository.here()
    about = str(document.get("file") or question_of(document)[0])
    return sarif(located_in(document, source), repository, about=about, document=repository.path(source))


def sarif(found: Sequence[Located], repository: Repository, *, about: str, document: str = "") -> str:
    """Return a log of one run.

    Args:
        found: The findings; none where all is well.
        repository: The repository that holds the files.
        about: Name of the question, so that logs of several questions can be uploaded together.
        document: Path of the document; the place of findings without a model.
    """
    rules = list(dict.fromkeys(located.finding.rule for located in found))
    run = {
        "tool": {"driver": {"name": "TensorTriage", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "automationDetails": {"id": printable(f"triage/{about}/")},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, rules.index(one.finding.rule), repository, document) for one in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, allow_nan=False) + "\n"


def _rule(rule: str) -> dict[str, Any]:
    if rule not in {kind.value for kind in VerdictKind}:
        return {"id": rule}
    words = Report(Verdict(rule, 1.0, "")).words
    return {"id": rule, "shortDescription": {"text": words.title}, "fullDescription": {"text": words.meaning}}


def _result(located: Located, rule: int, repository: Repository, document: str) -> dict[str, Any]:
    finding = located.finding
    model = FilePlace(repository.path(located.model) if located.model is not None else document)
    place = repository.place(finding, located.model)
    place = place if place.file else model
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": "error" if finding.is_sure else "warning",
        "message": {"text": "\n".join(map(printable, [f"{located.subject}: {finding.title}", *located.sentences]))},
        "locations": [{"physicalLocation": _physical(place), **_logical(finding)}],
        "partialFingerprints": {"triage/v1": _fingerprint(located, model)},
        "properties": _properties(located),
    }
    if place != model:
        result["relatedLocations"] = [{"physicalLocation": _physical(model), "message": {"text": "the model"}}]
    return result


def _physical(place: FilePlace) -> dict[str, Any]:
    """Return a place; code scanning wants a line, and that of a file without lines is its first."""
    path = quote(place.file.encode("utf-8", "surrogateescape"))
    artifact = {"uri": f"file://{path}"} if path.startswith("/") else {"uri": path, "uriBaseId": ROOT}
    return {"artifactLocation": artifact, "region": {"startLine": max(place.line, 1)}}


def _logical(finding: Finding) -> dict[str, Any]:
    named = [("node", finding.node), ("module", finding.module), ("output", finding.output)]
    found = [{"fullyQualifiedName": printable(name), "kind": kind} for kind, name in named if name]
    return {"logicalLocations": found} if found else {}


def _fingerprint(located: Located, model: FilePlace) -> str:
    finding = located.finding
    parts = (located.subject, model.file, finding.rule, finding.node or finding.output)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _properties(located: Located) -> dict[str, Any]:
    finding = located.finding
    properties = {
        "subject": located.subject,
        "op_type": finding.op_type,
        "output": finding.output,
        "ratio": finding.ratio,
    }
    return {
        name: printable(value) if isinstance(value, str) else value
        for name, value in properties.items()
        if value not in ("", None, float("inf"))
    }

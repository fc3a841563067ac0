"""Lint findings as text, one paragraph per rule, and as Polygraphy's JSON."""

import json
from collections.abc import Iterator, Sequence

from tensortriage.sdk import Line, LintFinding, Severity, count, grouped

MOST_PLACES = 3
"""Places shown per rule; --json has them all."""

_COLOURS = {Severity.EXCEPTION: "red", Severity.PROBLEM: "red", Severity.HINT: "cyan"}
_LEVELS = {Severity.EXCEPTION: "exception", Severity.PROBLEM: "warning", Severity.HINT: "info"}


def finding_lines(findings: Sequence[LintFinding]) -> Iterator[Line]:
    """Yield a paragraph for each rule, the first line of it at the margin and in the colour of its severity."""
    for (severity, slug), group in grouped(((found.severity, found.slug), found) for found in findings).items():
        places = "" if len(group) == 1 else f", {len(group)} times"
        yield [(f"{severity.value}[{slug}]{places}", _COLOURS[severity])]
        reason = ""
        for finding in group[:MOST_PLACES]:
            place = _place(finding)
            yield f"  {place}: {finding.why}" if place and finding.why != reason else f"  {place or finding.why}"
            reason = finding.why
        if len(group) > MOST_PLACES:
            yield f"  ... and {len(group) - MOST_PLACES} more: --json has them all"
        if group[0].cure:
            yield f"  cure: {group[0].cure}"


def closing_line(
    findings: Sequence[LintFinding], *, target: str, formats: Sequence[str], passing: int, failing: int, skipped: int
) -> str:
    """Return the last line: the number of findings, and of checks."""
    numbers = [(count(sum(f.severity is severity for f in findings), severity.value)) for severity in Severity]
    text = ", ".join(numbers)
    if formats:
        text += f"; meant for {', '.join(formats)}"
    if target:
        text += f"; {target} runs {passing} of {count(passing + failing + skipped, 'node')}"
    return text


def polygraphy_report(findings: Sequence[LintFinding], *, passing: Sequence[str], failing: Sequence[str]) -> str:
    """Return the findings in the JSON of ``polygraphy check lint -o`` (version 0.53)."""
    entries = []
    for finding in findings:
        message = f"{finding.slug}: {finding.why}" if finding.source == "rule" else finding.why
        entry: dict[str, object] = {"level": _LEVELS[finding.severity], "source": finding.source, "message": message}
        if finding.node:
            entry["nodes"] = [finding.node]
        entries.append(entry)
    summary = {"passing": sorted(passing), "failing": sorted(failing)}
    return json.dumps({"summary": summary, "lint_entries": entries}, ensure_ascii=False, indent=1)


def _place(finding: LintFinding) -> str:
    parts = [f"{finding.op_type} '{finding.node}'"] if finding.node else []
    if origin := finding.origin.beside(finding.node):
        parts.append(origin)
    if finding.value:
        parts.append(f"value '{finding.value}'")
    if finding.where:
        parts.append(f"in {finding.where}")
    return ", ".join(parts)

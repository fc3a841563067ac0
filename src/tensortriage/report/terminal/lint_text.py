"""Lint findings as text, one paragraph per rule, and as Polygraphy's JSON."""

import json
from collections.abc import Iterator, Sequence

from tensortriage.model.lint.finding import LintFinding, Severity
from tensortriage.values.printable import printable
from tensortriage.values.text import count

MOST_PLACES = 3
"""Places told of each rule; --json has them all."""

_LEVELS = {Severity.EXCEPTION: "exception", Severity.PROBLEM: "warning", Severity.HINT: "info"}


def finding_lines(findings: Sequence[LintFinding]) -> Iterator[tuple[Severity, str]]:
    """Yield lines, each with the severity of what it tells; the first of a paragraph starts at the margin."""
    groups: dict[tuple[Severity, str], list[LintFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.slug), []).append(finding)
    for (severity, slug), group in groups.items():
        places = "" if len(group) == 1 else f", {len(group)} times"
        yield severity, f"{severity.value}[{printable(slug)}]{places}"
        said = ""
        for finding in group[:MOST_PLACES]:
            place = _place(finding)
            why = printable(finding.why)
            yield severity, f"  {place}: {why}" if place and why != said else f"  {place or why}"
            said = why
        if len(group) > MOST_PLACES:
            yield severity, f"  ... and {len(group) - MOST_PLACES} more: --json has them all"
        if group[0].cure:
            yield severity, f"  cure: {printable(group[0].cure)}"


def closing_line(
    findings: Sequence[LintFinding], *, target: str, formats: Sequence[str], passing: int, failing: int, skipped: int
) -> str:
    """Return the last line: what was found, and what was run."""
    numbers = [(count(sum(f.severity is severity for f in findings), severity.value)) for severity in Severity]
    text = ", ".join(numbers)
    if formats:
        text += f"; meant for {', '.join(formats)}"
    if target:
        text += f"; {printable(target)} runs {passing} of {count(passing + failing + skipped, 'node')}"
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
    parts = [f"{printable(finding.op_type)} '{printable(finding.node)}'"] if finding.node else []
    if origin := finding.origin.beside(finding.node):
        parts.append(printable(origin))
    if finding.value:
        parts.append(f"value '{printable(finding.value)}'")
    if finding.where:
        parts.append(f"in {printable(finding.where)}")
    return ", ".join(parts)

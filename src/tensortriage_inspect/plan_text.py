"""A plan as text: one line per region, with a mark where it differs from the request, then a summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tensortriage.sdk import (
    AuditedRegion,
    Column,
    Line,
    Looks,
    PlanAudit,
    PrecisionMatch,
    Table,
    TableCell,
    Tone,
    count,
    shorten,
    some,
    table_lines,
)

MARK = "!"
"""Starts the line of a region that differs from the request."""

_MOST_NAMES = 8
_MEANING = {
    PrecisionMatch.WIDER: "wider than requested",
    PrecisionMatch.NARROWER: "narrower than requested",
    PrecisionMatch.OTHER: "other than requested",
}


def region_lines(audit: PlanAudit, regions: Iterable[AuditedRegion]) -> Iterator[Line]:
    """Yield the lines of regions, numbered as in the whole plan."""
    numbers = {id(region): number for number, region in enumerate(audit.regions, 1)}
    columns: Sequence[Column[AuditedRegion]] = (
        Column("", lambda region: TableCell(MARK, Tone.PROBLEM) if region.is_finding else ""),
        Column("#", lambda region: str(numbers[id(region)]), Looks.NUMBER),
        Column("kind", lambda region: region.kind),
        Column("implementation", lambda region: region.implementation or "-"),
        Column("precision", _precision),
        Column("nodes", _nodes),
        Column("modules", _modules),
    )
    yield from table_lines(Table.of("Plan", "region", columns, regions), indent="")


def closing_lines(audit: PlanAudit) -> Iterator[Line]:
    """Yield the summary of a plan."""
    placed = sum(len(region.nodes) for region in audit.regions)
    judged = [region for region in audit.regions if region.match is not PrecisionMatch.NOT_JUDGED]
    request = f"{audit.requested} requested" if audit.requested else "the types of the model requested"
    untold = sum(1 for region in audit.regions if region.asked and not region.built)
    yield (
        f"{audit.target}: {count(len(audit.regions), 'region')} execute {count(placed, 'node')}; {request}; "
        f"{count(len(judged), 'region')} compute in floating point"
        + (f", the format of {untold} more is unknown" if untold else "")
    )
    if audit.unplaced:
        yield f"in no region: {some(audit.unplaced, _MOST_NAMES)}"
    elsewhere = Counter((_subject(region), region.device) for region in audit.regions if region.fell_back)
    for (subject, device), number in elsewhere.most_common():
        yield [(f"{MARK} {number} x {subject}: {audit.device} requested, runs on {device}", "red")]
    wrong = [region for region in audit.findings if region.match.is_finding]
    groups = Counter((_subject(region), region.asked, region.built, region.match) for region in wrong)
    for (subject, wanted, built, match), number in groups.most_common():
        yield [(f"{MARK} {number} x {subject}: {wanted} requested, computes in {built} ({_MEANING[match]})", "red")]
    if judged:
        verdict = f"{len(wrong)} of {len(judged)} are not" if wrong else "all are"
        yield f"as requested: {verdict}"


def _subject(region: AuditedRegion) -> str:
    ops = ", ".join(region.op_types)
    return shorten(ops if region.kind == ops else f"{region.kind} of {ops}", 60)


def _precision(region: AuditedRegion) -> str:
    label = f"{region.built}, not {region.asked}" if region.match.is_finding else region.built or "-"
    return f"{label} on {region.device}" if region.fell_back else label


def _modules(region: AuditedRegion) -> str:
    """Return the module that the region's result is of, and how many others it joins."""
    if not region.modules:
        return ""
    others = len(region.modules) - 1
    return region.modules[-1] + (f" and {count(others, 'other')}" if others else "")


def _nodes(region: AuditedRegion) -> str:
    if not region.nodes:
        return f"(its own: {region.name})"
    if len(region.nodes) == 1:
        return region.nodes[0]
    return f"{', '.join(region.op_types)} to {region.nodes[-1]} ({len(region.nodes)})"

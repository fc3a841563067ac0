"""What a report of steps shows of its figures, in a terminal and on a page."""

from collections.abc import Iterator

from tensortriage.report.steps_page import StepsPage
from tensortriage.report.terminal.steps_text import StepLine
from tensortriage.values.text import count, magnitude
from tensortriage.workflows.steps.steps_request import FreeRun, SelfValue, StepRow, StepsReport


def page_of(report: StepsReport) -> StepsPage:
    """Return the page of a report."""
    return StepsPage(
        model=report.model,
        reference=report.reference,
        target=report.target,
        inputs=report.inputs,
        carried=report.carried,
        verdict=report.verdict,
        summary=report.summary,
        exit_code=report.exit_code,
        lines=tuple(map(line_of, report.rows)),
        remarks=tuple(remarks_of(report)),
        next=report.next,
        report="" if report.diagnosis is None else f"step-{report.first}/report.html",
        format=report.format,
    )


def line_of(row: StepRow) -> StepLine:
    """Return what the table shows of a step: its first wrong output, else the one nearest to its limit."""
    worst = max(row.values, key=lambda value: (not value.within, value.ratio))
    if row.outside:
        worst = row.outside[0]
    drift = max((value.ratio for value in row.drifted), default=None)
    return StepLine(
        row.step,
        row.length,
        worst.value,
        worst.error,
        worst.ratio,
        row.divergence,
        row.top_agreement,
        row.margin,
        drift,
        bool(row.outside),
    )


def remarks_of(report: StepsReport) -> Iterator[str]:
    """Yield what there is to say besides the table and the summary."""
    if report.free is not None:
        yield _alone(report.free)
    kept = [value for value in report.self_values[1:] if value.claimed and value.within]
    yield from (_self(value) for value in report.self_values if value not in kept)
    if kept:
        yield f"{count(len(kept), 'state')}: the same"
    if report.stopped and report.stopped not in report.summary:
        yield f"note: the reference stops: {report.stopped}"
    yield from (f"note: {note}" for note in report.notes)


def _alone(free: FreeRun) -> str:
    """Say what both generate alone."""
    if free.first is None:
        return f"alone, both generate the same {len(free.reference)} tokens"
    ours, theirs = (list(tokens[free.first]) for tokens in (free.reference, free.target))
    text = f"alone, the tokens part at step {free.first}: {ours} and {theirs}"
    if free.margin is None:
        return text
    lead = f"the reference's leads by {magnitude(free.margin)} of what healthy engines move"
    return f"{text}; {lead}: {'a tie' if free.tie else 'no tie'}"


def _self(value: SelfValue) -> str:
    """Say whether the whole sequence at once gives what the steps give."""
    if not value.claimed:
        return f"'{value.value}': the model itself gives something else for the whole sequence at once; not claimed"
    word = "the same" if value.within else "NOT the same"
    return (
        f"'{value.value}': {word} for the whole sequence at once as step by step "
        f"({magnitude(value.difference)}, allowed {magnitude(value.allowed)})"
    )

"""Steps: run a model step by step on two engines, find the first wrong step, and have that one diagnosed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import DiagnoseRequest, EngineError, EngineSpec, FeedRequest, Model, VerdictKind, diagnose
from tensortriage.envelope.sdk import PREDICTED, Iteration, Kind, Lab, Origin, Precision, resolve, save, usable
from tensortriage.sdk import Case, DataError, Listener, magnitude, write_text
from tensortriage_steps.feeds.next_feed import Arrays
from tensortriage_steps.feeds.step_feeds import StepFeeds
from tensortriage_steps.judging.drawn_limits import may_be_chance
from tensortriage_steps.judging.free_run import free_run
from tensortriage_steps.judging.measured_steps import MeasuredSteps
from tensortriage_steps.request import StepsRequest
from tensortriage_steps.shown_steps import render_steps
from tensortriage_steps.step_words import summary_of
from tensortriage_steps.steps_report import FreeRun, StepDiagnosis, StepRow, StepsReport, StepValue

DATA, PAGE = "steps.json", "report.html"
MOST_DIAGNOSES = 3
"""Steps beyond their limits that are looked into: where all of them are rounding, the others are left open."""


def walk(
    request: StepsRequest,
    *,
    say: Callable[[str], None] = lambda text: None,
    told: Callable[[StepFeeds], None] = lambda feeds: None,
    listener: Listener | None = None,
) -> StepsReport:
    """Run a model step by step and report.

    The case holds ``steps.json``, the same as ``report.html``, and the diagnosis of the first wrong step.

    Args:
        request: The user's request.
        say: Receives progress lines.
        told: Called with the carried pairs, before the first step.
        listener: Receives the diagnosis' steps and progress.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here.
        EngineError: When the reference fails at the first step; at a later one the report notes it.
    """
    reference, target = (usable(text, limits=request.limits) for text in (request.reference, request.target))
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    feeds = StepFeeds(request, model)
    told(feeds)
    try:
        with Case(request.case, fresh=request.fresh) as case:
            with Lab(case, limits=request.limits, progress=say) as lab:
                steps = MeasuredSteps(lab, model, feeds, reference=reference, target=target, drift=request.drift)
                report = _measured(request, steps, target, say)
            if report.again:
                report = _settled(request, report, steps.open_feeds, feeds.origin, listener)
            return _written(report, case)
    finally:
        feeds.close()


def _written(report: StepsReport, case: Case) -> StepsReport:
    report = dataclasses.replace(report, summary=summary_of(report))
    case.write(DATA, report)
    write_text(case.folder / PAGE, render_steps(report))
    return report


def _measured(
    request: StepsRequest, steps: MeasuredSteps, target: EngineSpec, say: Callable[[str], None]
) -> StepsReport:
    feeds, free = steps.feeds, None
    made, stopped = _made(steps, say)
    if stopped:
        steps.drop_reference()  # its process may be gone, and a wrong step is run again
    rows = steps.by_chance(made)
    wrong = next((row.step for row in rows if row.outside), None)
    if request.free_running and stopped:
        steps.notes.append("neither engine generated on its own, because the reference stops")
    elif request.free_running and feeds.roles.generates:
        say("generating")
        with steps.another_target() as fresh:
            free = free_run(steps, feeds, fresh)
    elif request.free_running:
        steps.notes.append("nothing was generated: no input takes token ids, or no output is called logits")
    again = True if wrong is None else steps.again(steps.open_feeds[wrong])
    report = _report(request, target, feeds, rows, free, [*feeds.notes, *steps.notes])
    return _stopped(dataclasses.replace(report, again=again, stopped=stopped))


def _stopped(report: StepsReport) -> StepsReport:
    """Return the report of a walk that the reference ended: questions beyond these steps are open."""
    unsure = report.stopped and report.verdict in ("match", "drift")
    return dataclasses.replace(report, verdict="inconclusive") if unsure else report


def _made(steps: MeasuredSteps, say: Callable[[str], None]) -> tuple[tuple[StepRow, ...], str]:
    """Return the steps made, and why the reference stopped: their measurements stay valid.

    Raises:
        EngineError: When the reference fails at the first step.
        DataError: When it gives NaN there.
    """
    made: list[StepRow] = []
    try:
        for row in steps.rows(say):
            made.append(row)  # one by one: those before an error are kept
    except (EngineError, DataError) as error:
        if not made:
            raise
        return tuple(made), f"{error.message}; {error.cure}"
    return tuple(made), ""


def _report(
    request: StepsRequest,
    target: EngineSpec,
    feeds: StepFeeds,
    rows: tuple[StepRow, ...],
    free: FreeRun | None,
    notes: Sequence[str],
) -> StepsReport:
    carried = tuple(f"{pair.output}={pair.input}" for pair in feeds.roles.carry)
    report = StepsReport(
        str(request.model), request.reference, request.target, feeds.origin.value, carried, "", "", rows,
        free=free, notes=tuple(notes),
    )  # fmt: skip
    return _judged(report, resolve(target).precision)


def _judged(report: StepsReport, precision: Precision) -> StepsReport:
    """Return the report with the verdict of its rows, and the first step that is wrong."""
    wrong = next((row for row in report.rows if row.outside), None)
    return dataclasses.replace(
        report,
        verdict=_verdict(report.rows, report.free, precision),
        first=wrong.step if wrong else None,
        value=wrong.outside[0].value if wrong else "",
    )


def _verdict(rows: Sequence[StepRow], free: FreeRun | None, precision: Precision) -> str:
    if any(row.outside for row in rows):
        return "fault"
    if any(not value.within for row in rows for value in row.drifted):
        return "drift-beyond"
    if free is not None and free.tie is False:
        return "tokens"
    drifted = any(value.error for row in rows for value in row.drifted)
    return "drift" if drifted and precision in PREDICTED else "match"


def _settled(
    request: StepsRequest,
    report: StepsReport,
    in_question: Mapping[int, Arrays],
    origin: Origin,
    listener: Listener | None,
) -> StepsReport:
    """Return the report with the diagnoses of steps beyond their limits, the first wrong one last.

    A step that is beyond its limit by no more than chance, and in which the diagnosis finds nothing but rounding, is
    right. Of the steps that chance alone explains the furthest is looked into, for an op may be wrong in it.
    """
    rows = {row.step: row for row in report.rows if row.step in in_question}
    precision = resolve(EngineSpec.parse(request.target)).precision
    if report.first is None and rows and request.diagnosis:
        farthest = max(rows.values(), key=lambda row: _nearest(row).ratio)
        judged = _judged(_with_row(report, farthest, _nearest(farthest), within=False), precision)
        found = _diagnosed(request, judged, in_question[farthest.step], origin, listener)
        return found if found.diagnosis and found.diagnosis.node and found.verdict == "fault" else report
    found = report
    for _ in range(MOST_DIAGNOSES):
        if report.first is None:
            break
        found, row = _diagnosed(request, report, in_question[report.first], origin, listener), rows[report.first]
        if found.verdict != "inconclusive" or not all(map(may_be_chance, row.outside)):
            return found
        note = f"step {row.step}: '{report.value}' is off by {magnitude(row.outside[0].ratio)} times its limit; "
        note += f"its diagnosis finds nothing but {found.diagnosis.verdict if found.diagnosis else 'rounding'}"
        right = _with_row(report, row, *row.outside, within=True)
        report = _stopped(_judged(dataclasses.replace(right, notes=(*report.notes, note)), precision))
    return report if report.first is None else found


def _nearest(row: StepRow) -> StepValue:
    return max(row.values, key=lambda value: value.ratio)


def _with_row(report: StepsReport, row: StepRow, *values: StepValue, within: bool) -> StepsReport:
    """Return the report with given values of a row judged so."""
    values_judged = tuple(dataclasses.replace(v, within=within) if v in values else v for v in row.values)
    other = dataclasses.replace(row, values=values_judged)
    return dataclasses.replace(report, rows=tuple(other if each is row else each for each in report.rows))


def _diagnosed(
    request: StepsRequest, report: StepsReport, feed: Arrays, origin: Origin, listener: Listener | None
) -> StepsReport:
    """Return the report with the diagnosis of the first wrong step, or with the command for it."""
    name = f"step-{report.first}"
    path, case = request.case / f"{name}.npz", request.case / name
    path.unlink(missing_ok=True)
    save(path, [("", [Iteration({n: np.asarray(array) for n, array in feed.items()})])], kind=Kind.INPUTS)
    command = f"triage diagnose {request.model} --target {request.target} --inputs {path} --case {case}"
    if not request.diagnosis:
        return dataclasses.replace(report, next=(command,))
    verdict = diagnose(
        DiagnoseRequest(
            model=request.model,
            target=request.target,
            reference=request.reference,
            feeding=FeedRequest(paths=(str(path),)),
            case=case,
            limits=request.limits,
            external_data_dir=request.external_data_dir,
            random_too=False,
        ),
        listener=listener,
    )
    place, body = ("", "", "", ""), ""
    if verdict.culprits:
        culprit = verdict.culprits[0]
        place = (culprit.node, culprit.op_type, culprit.value, culprit.origin.module)
        body = culprit.origin.body
    found = StepDiagnosis(verdict.verdict, verdict.summary, *place, str(path), str(case), body)
    healthy = verdict.kind in (VerdictKind.MATCH, VerdictKind.ROUNDING)
    word = "inconclusive" if healthy else report.verdict
    following = (command,) if healthy else tuple(verdict.next)
    return dataclasses.replace(report, verdict=word, diagnosis=found, next=following)


def case_files(case: Path) -> tuple[Path, ...]:
    """Return the reports that a case of steps holds."""
    return tuple(sorted(case.glob("step-*/report.html")))

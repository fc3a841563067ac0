"""Diagnose: one call walks the guide and leaves a case with a verdict, its evidence and a report."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

from tensortriage.diagnose.climb import climb
from tensortriage.diagnose.floors_ahead import floors_ahead
from tensortriage.diagnose.measurements.output_rows import output_rows
from tensortriage.diagnose.rungs.other_model.other_file import with_other_file
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.layer_rows import Layers, Outputs
from tensortriage.diagnose.state.record import Listener, Silent
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.inputs.synthetic.candidates import candidates
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.report.document import Report
from tensortriage.report.renderers import FORMATS
from tensortriage.runs.case import Case, FeedFacts
from tensortriage.runs.feeds.trial import made_up_sizes
from tensortriage.runs.questions.question import Question
from tensortriage.values.files import write_text
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.diagnosis.found_after import found_after
from tensortriage.workflows.diagnosis.in_blocks import BlockDiagnosis
from tensortriage.workflows.diagnosis.subject import DiagnosisSubject, case_facts, read_subject
from tensortriage.workflows.diagnosis.verdict_of import verdict_of
from tensortriage.workflows.requests import DiagnoseRequest

INPUTS = "do the inputs look as usual?"
"""Asked of the feeds before anything is run; told where something is odd about them."""


def diagnose(request: DiagnoseRequest, *, listener: Listener | None = None) -> Verdict:
    """Walk the guide and return the verdict; ``request.case`` then holds everything about it.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here.
    """
    return diagnosed(request, listener=listener or Silent()).verdict


def diagnosed(request: DiagnoseRequest, *, listener: Listener, began: float | None = None) -> Report:
    """Walk the ladder and return the resulting case.

    Args:
        request: What is asked.
        listener: Who is told of the progress.
        began: When the work began, by `time.perf_counter`, if it was before this call, as with an export.

    Raises:
        TriageError: As `diagnose` does.
    """
    began = time.perf_counter() if began is None else began
    subject = read_subject(request)
    if subject.cut is None:
        report = _on_ladder(request, subject, listener, began)
    else:
        of_block = partial(diagnose, listener=listener)
        report = BlockDiagnosis(request, subject, subject.cut, compare, of_block, listener).report()
    write_text(request.case / "report.html", FORMATS["html"].render(report))
    return report


def _on_ladder(request: DiagnoseRequest, subject: DiagnosisSubject, listener: Listener, began: float) -> Report:
    """Walk the ladder with the whole model, and leave facts, evidence and verdict in the case."""
    model, engines, ours = subject.model, subject.engines, request.feeding.chooses
    question = Question(
        model=model,
        feeds=subject.feeds,
        reference=engines.reference,
        target=engines.target,
        target_model=subject.target_model,
        tolerance=request.tolerance,
        limits=request.limits,
        input_paths=request.feeding.words,
        batch_bytes=request.batch_bytes,
        budget_seconds=request.budget_seconds,
        sweep=subject.sweep,
        random_too=request.random_too,
        builds=request.builds,
        network=engines.network,
        against=engines.against,
        others=partial(candidates, model, request.feeding.shapes) if ours else None,
        began=began,
        goal=request.goal,
    )
    facts = case_facts(request, subject)
    with Case(request.case, fresh=request.fresh) as case, ThreadPoolExecutor(1) as beside:
        beside.submit(FORMATS["html"].prepare)  # while engines work
        case.write("case.json", facts)
        investigation = Investigation.begin(question, case, listener=listener)
        try:
            if subject.oddities:
                investigation.record.answered(INPUTS, f"no: {'; '.join(subject.oddities)}")
            with floors_ahead(investigation) if request.in_blocks else nullcontext(investigation) as asking:
                end = climb(asking)
            investigation = end.investigation
            samples = investigation.question.feeds
            if ours and (fed := tuple(map(FeedFacts.of, samples))) != facts.feeds:  # other data were made up
                facts = dataclasses.replace(facts, feeds=fed)
                case.write("case.json", facts)
            sizes = made_up_sizes(model, samples[0], request.feeding.shapes) if ours else ""
            files = (model, investigation.question.target_model or subject.target_model, investigation.model)
            graphs = [each.graph for each in files if each is not None]
            found = found_after(request, end, question)
            verdict = verdict_of(end, found, graphs=graphs, sizes=sizes)
            evidence = with_other_file(investigation, end.evidence)
            layers = Layers(evidence.layer_rows(investigation))
            outputs = Outputs(output_rows(evidence.results, investigation, verdict))
        finally:
            investigation.lab.close()
        report = Report(verdict, facts, layers, outputs, evidence.ranges)
        case.write("layers.json", report.layers)
        case.write("ranges.json", report.ranges)
        case.write("outputs.json", report.outputs)
        case.write("verdict.json", verdict)
    if request.emit_breakers is not None and verdict.breakers and not investigation.question.taken:
        mark_outputs(investigation.model, verdict.breakers).save(request.emit_breakers)
    return report

"""Diagnose: one call walks the guide and leaves a case with a verdict, its evidence and a report."""

import dataclasses
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from tensortriage.compare.judgement.tolerance import check_names
from tensortriage.diagnose.climb import ClimbResult, climb
from tensortriage.diagnose.floors_ahead import floors_ahead
from tensortriage.diagnose.measurements.dissection import dissection
from tensortriage.diagnose.measurements.outputs import output_rows
from tensortriage.diagnose.rungs.other_model.other_file import with_other_file
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.layer_rows import Layers, Outputs
from tensortriage.diagnose.state.record import Listener, Silent
from tensortriage.diagnose.state.verdict import Verdict, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import oddities
from tensortriage.inputs.synthetic.candidates import candidates
from tensortriage.inputs.synthetic.size_sweep import swept
from tensortriage.model.cutting.narrow_cuts import weights_bytes
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.report.document import Report
from tensortriage.report.renderers import FORMATS, write
from tensortriage.runs.blocks.memory import block_bytes, memory_bytes
from tensortriage.runs.case import Case, CaseFacts, FeedFacts, ModelFacts, command_line, now, versions
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.feeds.trial import made_up_sizes
from tensortriage.runs.questions.question import Question
from tensortriage.values.output_files import check_output
from tensortriage.workflows.common.memory_cuts import CutModel, cut_to_memory
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.diagnosis.accuracies import Accuracies, WantedFix, no_fix
from tensortriage.workflows.diagnosis.good_enough import sufficiency
from tensortriage.workflows.diagnosis.in_blocks import BlockDiagnosis
from tensortriage.workflows.diagnosis.verdict_of import FoundAfter, verdict_of
from tensortriage.workflows.engines.source_network import network_behind
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
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_usable_engines, request)
        try:
            model, changed, samples, cut = _read(request)
        except TriageError:
            asked.result()  # an engine that cannot be used is told of first
            raise
        reference, target = asked.result()
    if cut is not None:
        return _in_blocks(request, cut, samples, (reference, target), listener=listener)
    question = Question(
        model=model,
        feeds=samples,
        reference=reference,
        target=target,
        target_model=changed,
        tolerance=request.tolerance,
        limits=request.limits,
        input_paths=tuple(request.feeding.paths),
        batch_bytes=request.batch_bytes,
        budget_seconds=request.budget_seconds,
        sweep=swept(samples[0], model.inputs, request.sweep) if request.sweep else (),
        random_too=request.random_too,
        builds=request.builds,
        network=usable(request.network, limits=request.limits) if request.network else network_behind(reference),
        against=usable(request.against, limits=request.limits) if request.against else None,
        others=partial(candidates, model, request.feeding.shapes) if request.feeding.chooses else None,
        began=began,
        goal=_goal(request),
    )
    if request.metric is not None:
        request.metric.check(samples[0])
    with Case(request.case, fresh=request.fresh) as case, ThreadPoolExecutor(1) as beside:
        beside.submit(FORMATS["html"].prepare)  # while engines work
        asked_of = facts(request, model, changed, samples, reference, target)
        case.write("case.json", asked_of)
        investigation = Investigation.begin(question, case, listener=listener)
        try:
            odd = [found.sentence for found in oddities(samples, model.inputs)]
            if odd:
                investigation.record.answered(INPUTS, f"no: {'; '.join(odd)}")
            with floors_ahead(investigation) if _has_room(request, model) else nullcontext(investigation) as asking:
                end = climb(asking)
            investigation = end.investigation
            files = (model, investigation.question.target_model or changed, investigation.model)
            graphs = [each.graph for each in files if each is not None]
            if (fed := feed_facts(investigation.question.feeds)) != asked_of.feeds and question.others is not None:
                asked_of = dataclasses.replace(asked_of, feeds=fed)  # other data were made up
                case.write("case.json", asked_of)
            fed, given = investigation.question.feeds[0], request.feeding.shapes
            sizes = made_up_sizes(model, fed, given) if request.feeding.chooses else ""
            verdict = verdict_of(end, _found_after(request, end, question), graphs=graphs, sizes=sizes)
            evidence = with_other_file(investigation, end.evidence)
            layers = Layers(evidence.layer_rows(investigation))
            outputs = Outputs(output_rows(evidence.results, investigation, verdict))
        finally:
            investigation.lab.close()
        report = Report(verdict, asked_of, layers, outputs, evidence.ranges)
        case.write("layers.json", report.layers)
        case.write("ranges.json", report.ranges)
        case.write("outputs.json", report.outputs)
        case.write("verdict.json", verdict)
    write(FORMATS["html"].render(report), request.case / "report.html")
    if request.emit_breakers is not None and verdict.breakers and not investigation.question.taken:
        mark_outputs(investigation.model, verdict.breakers).save(request.emit_breakers)
    return report


def _goal(request: DiagnoseRequest) -> tuple[str, ...]:
    """Return the options for the user's goal by a metric."""
    if request.metric is None:
        return ()
    least = () if request.metric_min is None else ("--metric-min", f"{request.metric_min:g}")
    return ("--metric", request.metric.words, *least)


def _found_after(request: DiagnoseRequest, end: ClimbResult, asked: Question) -> FoundAfter:
    """Find the pattern of the error, whether it is good enough, a repro and a remedy."""
    inv, evidence, conclusion = end.investigation, end.evidence, end.conclusion
    errors = dissection(inv, evidence, conclusion)
    told = sufficiency(inv, evidence) if conclusion.kind is VerdictKind.ROUNDING and evidence.results else ()
    metric, least = request.metric, request.metric_min
    accuracies = None if metric is None else Accuracies(inv, asked, metric, least, request.feeding)
    accuracy = None if accuracies is None else accuracies.compared()
    if conclusion.kind.exit_code != 1:
        return FoundAfter(errors, told, accuracy, fix=no_fix(conclusion, request.fix))
    # A fault takes imports that others need not.
    from tensortriage.workflows.diagnosis.remedy import fix_words, remedy_of
    from tensortriage.workflows.diagnosis.reproduce import reproduction

    # One op is built in less time than a remedy, which is the whole model.
    repro = reproduction(inv, evidence, conclusion) if request.repro else None
    remedy = remedy_of(inv, evidence, conclusion, WantedFix(request.fix, accuracies, accuracy))
    if accuracy is not None and remedy is not None:
        accuracy = dataclasses.replace(accuracy, remedy=remedy.metric)
    return FoundAfter(errors, told, accuracy, fix_words(inv, conclusion, remedy, request.fix), repro, remedy)


def _usable_engines(request: DiagnoseRequest) -> tuple[EngineSpec, EngineSpec]:
    """Return reference and target; a target with its own process is started."""
    reference, target = (usable(text, limits=request.limits) for text in (request.reference, request.target))
    return reference, target


def _read(
    request: DiagnoseRequest,
) -> tuple[Model, Model | None, tuple[Feed, ...], CutModel | None]:
    """Return model, the target's if it has one of its own, samples, and a model beyond memory cut."""
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    if request.tolerance is not None:
        check_names([request.tolerance], [spec.name for spec in model.outputs])
    changed = None
    if request.target_model is not None:
        changed = Model.load(request.target_model, external_data_dir=request.external_data_dir)
    for path in (request.fix, request.emit_breakers):
        check_output(path, *model.files, *(changed.files if changed else ()))
    samples = tuple(feeds(request.feeding, model))
    cut = cut_to_memory(model, request.limits.memory_bytes) if _can_be_cut(request) else None
    if cut is None:
        _ = model.fingerprint  # all weights are read for it, best while the target starts
    return model, changed, samples, cut


def _has_room(request: DiagnoseRequest, model: Model) -> bool:
    """Return whether memory allows evaluating a model while engines build it, measured where they take turns."""
    memory = memory_bytes(request.limits.memory_bytes)
    return request.in_blocks and (
        memory is None or weights_bytes(model.graph.initializers.values()) <= block_bytes(memory)
    )


def _can_be_cut(request: DiagnoseRequest) -> bool:
    """Return whether no question needs the whole model."""
    of_the_whole = (request.target_model, request.tolerance, request.metric, request.fix, request.emit_breakers)
    return request.in_blocks and not any((*of_the_whole, request.network, request.against, request.sweep))


def _in_blocks(
    request: DiagnoseRequest,
    cut: CutModel,
    samples: tuple[Feed, ...],
    engines: tuple[EngineSpec, EngineSpec],
    *,
    listener: Listener,
) -> Report:
    """Diagnose the block that is wrong in isolation, and leave the whole's facts and verdict in the case."""

    def of_block(path: Path, own: Sequence[Feed], inputs: Path) -> Verdict:
        feeding = FeedRequest(given=own, paths=(str(inputs),))
        block = dataclasses.replace(
            request, model=path, feeding=feeding, external_data_dir=None, random_too=False, in_blocks=False
        )
        return diagnose(block, listener=listener)

    verdict = BlockDiagnosis(
        request=request,
        cut=cut,
        samples=samples,
        reference=engines[0],
        target=engines[1],
        compare=compare,
        diagnose=of_block,
        listener=listener,
    ).verdict()
    report = Report(verdict, facts(request, cut.model, None, samples, *engines))
    with Case(request.case) as case:
        case.write("case.json", report.case)
        case.write("verdict.json", verdict)
    write(FORMATS["html"].render(report), request.case / "report.html")
    return report


def model_facts(model: Model, path: Path) -> ModelFacts:
    """Return the facts about a model that a case stores."""
    return ModelFacts(str(path), model.fingerprint, len(model.graph.nodes), model.parameter_count, model.opset)


def feed_facts(samples: Sequence[Feed]) -> tuple[FeedFacts, ...]:
    """Return the facts about feeds for a case."""
    return tuple(FeedFacts(feed.name, feed.origin.value, feed.digest) for feed in samples)


def facts(
    request: DiagnoseRequest,
    model: Model,
    changed: Model | None,
    samples: Sequence[Feed],
    reference: EngineSpec,
    target: EngineSpec,
) -> CaseFacts:
    """Return the content of ``case.json``."""
    return CaseFacts(
        command=command_line(),
        model=model_facts(model, request.model),
        target_model=model_facts(changed, request.target_model) if changed and request.target_model else None,
        reference=str(reference),
        target=str(target),
        feeds=feed_facts(samples),
        versions=versions(),
        created=now(),
    )

"""Diagnose: one call walks the guide and leaves a case with a verdict, its evidence and a report."""

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensortriage.compare.cuts import Cuts
from tensortriage.compare.judgement.tolerance import Tolerance, check_names
from tensortriage.diagnose.ladder import climb
from tensortriage.diagnose.measurements.culprit_origins import with_origins
from tensortriage.diagnose.measurements.dissection import with_anatomy
from tensortriage.diagnose.measurements.outputs import output_rows
from tensortriage.diagnose.state.investigation import Investigation, Question
from tensortriage.diagnose.state.layer_rows import Layers, Outputs
from tensortriage.diagnose.state.record import Listener, Silent
from tensortriage.diagnose.state.verdict import Verdict
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.generated.size_sweep import swept
from tensortriage.model.cutting.narrow_cuts import ModelBlock
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs
from tensortriage.report.document import Report
from tensortriage.report.renderers import FORMATS, write
from tensortriage.runs.capture import BATCH_BYTES
from tensortriage.runs.case import Case, CaseFacts, FeedFacts, ModelFacts, command_line, now, versions
from tensortriage.runs.engine_specs import REFERENCE, usable
from tensortriage.runs.feeds.feed_request import FeedRequest, feeds
from tensortriage.runs.runner import feed_digest
from tensortriage.values.output_files import check_output
from tensortriage.workflows.common.memory_cuts import cuts_of
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.diagnosis.in_blocks import BlockDiagnosis
from tensortriage.workflows.diagnosis.remedy import with_remedy
from tensortriage.workflows.diagnosis.reproduce import with_repro

MOST_FEEDS = 8
"""Samples a diagnosis looks at unless told otherwise."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DiagnoseRequest:
    """What to diagnose.

    Attributes:
        model: ONNX file taken as right.
        target: Spec of the engine under suspicion.
        reference: Spec of the engine taken as right.
        target_model: ONNX file that the target runs, if it is not MODEL.
        feeding: Where the samples come from.
        case: Directory of the case; a case that is already there is resumed.
        tolerance: The user's own tolerance; None to judge by the noise floor.
        limits: Time and memory limits of isolated engines.
        external_data_dir: Directory of the external data, if they do not lie beside the model.
        batch_bytes: Largest amount of captured tensors held at once.
        budget_seconds: Wall time that the diagnosis may take; what is not asked for lack of it is said. None for any.
        sweep: Sizes by open dimension; every combination is looked at too.
        repro: Whether the culprit is cut out as a case of its own.
        fix: Where to write the model with a remedy that holds on the target.
        random_too: Whether random data are looked at as well when real data pass.
        builds: How often the target is built again; None for what its engine makes sensible.
        emit_breakers: Where to write the model with its fusion breakers as outputs, when there are any.
        against: Spec of another engine, version or precision that the target is held against; empty without one.
        network: Spec of the PyTorch network that the model was exported from, ``torch:...``; empty without one.
        in_blocks: Whether a model that does not fit into memory is cut.
    """

    model: Path
    target: str
    reference: str = REFERENCE
    target_model: Path | None = None
    feeding: FeedRequest = dataclasses.field(default_factory=lambda: FeedRequest(most=MOST_FEEDS))
    case: Path = Path("triage-case")
    tolerance: Tolerance | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    external_data_dir: Path | None = None
    batch_bytes: int | None = BATCH_BYTES
    budget_seconds: float | None = None
    sweep: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    repro: bool = True
    fix: Path | None = None
    random_too: bool = True
    builds: int | None = None
    emit_breakers: Path | None = None
    network: str = ""
    in_blocks: bool = True
    against: str = ""


def diagnose(request: DiagnoseRequest, *, listener: Listener | None = None) -> Verdict:
    """Walk the guide and return the verdict; ``request.case`` then holds everything about it.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here.
    """
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_usable_engines, request)
        try:
            model, changed, samples = _read(request)
        except TriageError:
            asked.result()  # an engine that cannot be used is told of first
            raise
        reference, target = asked.result()
    if (cut := cuts_of(model, request.limits.memory_bytes) if _can_be_cut(request) else None) is not None:
        return _in_blocks(request, model, samples, (reference, target), *cut, listener=listener or Silent())
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
        network=usable(request.network, limits=request.limits) if request.network else None,
        against=usable(request.against, limits=request.limits) if request.against else None,
    )
    with Case(request.case) as case:
        case.write("case.json", facts(request, model, changed, samples, reference, target))
        investigation = Investigation(question, case, listener=listener)
        try:
            end = climb(investigation)
            investigation, evidence = end.investigation, end.evidence
            verdict = with_anatomy(investigation, evidence, end.verdict)
            if request.repro:  # one op is built in less time than a remedy, which is the whole model
                verdict = with_repro(investigation, evidence, verdict)
            verdict = with_remedy(investigation, evidence, verdict, request.fix)
            verdict = with_origins(verdict, model.graph, *((changed.graph,) if changed else ()))
            case.write("layers.json", Layers(evidence.layer_rows(investigation)))
            case.write("ranges.json", evidence.ranges)
            case.write("outputs.json", Outputs(output_rows(evidence.results, investigation)))
        finally:
            investigation.close()
        case.write("verdict.json", verdict)
    write(FORMATS["html"].render(Report.load(request.case)), request.case / "report.html")
    if request.emit_breakers is not None and verdict.breakers:
        mark_outputs(investigation.model, verdict.breakers).save(request.emit_breakers)
    return verdict


def _usable_engines(request: DiagnoseRequest) -> tuple[EngineSpec, EngineSpec]:
    """Return reference and target; a target in a process of its own is started to be asked."""
    reference, target = (usable(text, limits=request.limits) for text in (request.reference, request.target))
    return reference, target


def _read(request: DiagnoseRequest) -> tuple[Model, Model | None, tuple[Feed, ...]]:
    """Return model, the target's model if it has one of its own, and samples; paths and names are checked."""
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    if request.tolerance is not None:
        check_names([request.tolerance], [spec.name for spec in model.outputs])
    changed = None
    if request.target_model is not None:
        changed = Model.load(request.target_model, external_data_dir=request.external_data_dir)
    for path in (request.fix, request.emit_breakers):
        check_output(path, *model.files, *(changed.files if changed else ()))
    samples = tuple(feeds(request.feeding, model))
    _ = model.fingerprint  # all weights are read for it, best while the target starts
    return model, changed, samples


def _can_be_cut(request: DiagnoseRequest) -> bool:
    """Whether nothing is asked that only the whole model can answer."""
    of_the_whole = (request.target_model, request.tolerance, request.fix, request.emit_breakers)
    return request.in_blocks and not any((*of_the_whole, request.network, request.against, request.sweep))


def _in_blocks(
    request: DiagnoseRequest,
    model: Model,
    samples: tuple[Feed, ...],
    engines: tuple[EngineSpec, EngineSpec],
    cuts: Cuts,
    blocks: Sequence[ModelBlock],
    *,
    listener: Listener,
) -> Verdict:
    """Diagnose the block that is wrong by itself, and leave the whole's facts and verdict in the case."""

    def of_block(path: Path, own: Sequence[Feed], inputs: Path) -> Verdict:
        feeding = FeedRequest(given=own, paths=(str(inputs),))
        block = dataclasses.replace(
            request, model=path, feeding=feeding, external_data_dir=None, random_too=False, in_blocks=False
        )
        return diagnose(block, listener=listener)

    verdict = BlockDiagnosis(
        model=model,
        samples=samples,
        reference=engines[0],
        target=engines[1],
        cuts=cuts,
        blocks=blocks,
        case=request.case,
        limits=request.limits,
        batch_bytes=request.batch_bytes,
        compare=compare,
        diagnose=of_block,
        listener=listener,
    ).verdict()
    with Case(request.case) as case:
        case.write("case.json", facts(request, model, None, samples, *engines))
        case.write("verdict.json", verdict)
    write(FORMATS["html"].render(Report.load(request.case)), request.case / "report.html")
    return verdict


def model_facts(model: Model, path: Path) -> ModelFacts:
    """Return what a case says about a model."""
    return ModelFacts(str(path), model.fingerprint, len(model.graph.nodes), model.parameter_count, model.opset)


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
        feeds=tuple(FeedFacts(feed.name, feed.origin.value, feed_digest(feed.tensors)) for feed in samples),
        versions=versions(),
        created=now(),
    )

"""The subject of a diagnosis: its engines, models and feeds, read and checked before anything is run."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tensortriage.compare.judgement.tolerance import check_names
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import TriageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import oddities
from tensortriage.inputs.synthetic.size_sweep import Shaped, swept
from tensortriage.model.model import Model
from tensortriage.runs.case import CaseFacts, FeedFacts, ModelFacts, command_line, now, versions
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.feed_request import feeds
from tensortriage.values.output_files import check_output
from tensortriage.workflows.common.memory_cuts import CutModel, cut_to_memory
from tensortriage.workflows.engines.source_network import network_behind
from tensortriage.workflows.requests import DiagnoseRequest


@frozen_dataclass
class Engines:
    """Engines that can be used here.

    Attributes:
        reference: The one assumed to be right.
        target: The one under suspicion.
        network: The PyTorch network behind the model; None where that is not at hand.
        against: Another target to compare with; None for none.
    """

    reference: EngineSpec
    target: EngineSpec
    network: EngineSpec | None
    against: EngineSpec | None


@frozen_dataclass
class DiagnosisSubject:
    """Models, feeds and engines of a diagnosis.

    Attributes:
        model: The model assumed to be right.
        target_model: The target's, where it is another file.
        feeds: The samples, at least one.
        sweep: Feeds of other shapes.
        oddities: What is unusual about the feeds, in sentences.
        cut: The model, cut; None where it fits into memory, or is needed as a whole.
        engines: Reference, target, and others that are asked.
    """

    model: Model
    target_model: Model | None
    feeds: tuple[Feed, ...]
    sweep: Sequence[Shaped]
    oddities: Sequence[str]
    cut: CutModel | None
    engines: Engines


def read_subject(request: DiagnoseRequest) -> DiagnosisSubject:
    """Read models and feeds, while engines with processes of their own start.

    Raises:
        TriageError: For bad input, an unknown engine, or an engine that is not usable here; of an engine first.
    """
    with ThreadPoolExecutor(1) as pool:
        engines = pool.submit(_usable_engines, request)
        try:
            model, target_model, samples = _files(request)
            sweep = swept(samples[0], model.inputs, request.sweep) if request.sweep else ()
            odd = [found.sentence for found in oddities(samples, model.inputs)]
            cut = cut_to_memory(model, request.limits.memory_bytes) if request.can_be_cut else None
            if cut is None:
                _ = model.fingerprint  # all weights are read for it, best while the target starts
        except TriageError:
            engines.result()
            raise
        return DiagnosisSubject(model, target_model, samples, sweep, odd, cut, engines.result())


def _usable_engines(request: DiagnoseRequest) -> Engines:
    reference, target = (usable(name, limits=request.limits) for name in (request.reference, request.target))
    network = usable(request.network, limits=request.limits) if request.network else network_behind(reference)
    against = usable(request.against, limits=request.limits) if request.against else None
    return Engines(reference, target, network, against)


def _files(request: DiagnoseRequest) -> tuple[Model, Model | None, tuple[Feed, ...]]:
    """Return the model, the target's if it has one of its own, and the samples."""
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    target_model = None
    if request.target_model is not None:
        target_model = Model.load(request.target_model, external_data_dir=request.external_data_dir)
    if request.tolerance is not None:
        check_names([request.tolerance], [spec.name for spec in model.outputs])
    for path in (request.fix, request.emit_breakers):
        check_output(path, *model.files, *(target_model.files if target_model else ()))
    samples = tuple(feeds(request.feeding, model))
    if request.metric is not None:
        request.metric.check(samples[0])
    return model, target_model, samples


def case_facts(request: DiagnoseRequest, subject: DiagnosisSubject) -> CaseFacts:
    """Return the content of ``case.json``."""
    engines, target = subject.engines, subject.target_model
    return CaseFacts(
        command=command_line(),
        model=ModelFacts.of(subject.model, request.model),
        target_model=ModelFacts.of(target, request.target_model) if target and request.target_model else None,
        reference=str(engines.reference),
        target=str(engines.target),
        feeds=tuple(map(FeedFacts.of, subject.feeds)),
        versions=versions(),
        created=now(),
    )

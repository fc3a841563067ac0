"""Reduce: the smallest piece of a model that still fails, found by asking engines, a command or a person.

The steps are the same with any judge: the premise first, then the search, then everything else that can be smaller,
and the result is seen to fail again before it is called one.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tensortriage.diagnose.measurements.local_errors.suspicions import suspicions
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.record import Listener, Silent
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.annotate import with_inferred_shapes, with_input_shapes
from tensortriage.model.transforms.constant_nodes import without_constant_nodes
from tensortriage.reduce.commands.by_command import StagedAsking, StagedRequest, UndoError
from tensortriage.reduce.engines.by_engine import EngineAsking, EnginePremises, EngineRequest
from tensortriage.reduce.inside_subgraphs import Asking, FoundInside, go_inside
from tensortriage.reduce.passing_pieces import PassingPieces
from tensortriage.reduce.pieces.piece_search import Search
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.pieces.polygraphy_modes import passes_of
from tensortriage.reduce.reduction_result import Effort, KeptNode, Opened, OtherFailure, Reduction, ReductionFinish
from tensortriage.reduce.request import Ends, ReduceRequest
from tensortriage.runs.case import Case, command_line
from tensortriage.runs.commands.check import CheckSpec
from tensortriage.runs.commands.command_oracle import ShownTo
from tensortriage.runs.commands.phases import Phases
from tensortriage.runs.elsewhere import OpenedCluster
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage.runs.questions.question import Question
from tensortriage.search.search_result import Progress, SearchBudget, SearchResult, SearchStop
from tensortriage.search.statistics.repeats import Repeats
from tensortriage.values.output_files import check_output
from tensortriage.workflows.common.judged import output_judge

SHRINK_SECONDS = 60.0
"""Time for making engines' models smaller; a step takes milliseconds."""
TRUSTED = Repeats(premise=1, measure=1)
"""A person sees each candidate once."""


class ReduceListener(Listener, Protocol):
    """A receiver of a reduction's progress."""

    def checked(self, progress: Progress[str]) -> None:
        """A piece was checked."""

    def tell(self, text: str) -> None:
        """A text to show unchanged."""


def reduce(request: ReduceRequest, *, listener: ReduceListener | None = None) -> Reduction:
    """Find the smallest piece of a model that still fails, and write it.

    Ctrl-C ends the search with the smallest piece found so far, which is written.

    Raises:
        UsageError: When there is no judge for the pieces (``reduce-no-judge``).
        TriageError: For bad input, a whole that does not fail, a check that always does, or a missing engine.
    """
    listener = listener or Silent()
    if not request.target and request.check is None and request.person is None:
        raise UsageError(
            "neither an engine nor a command is named to judge the pieces",
            slug="reduce-no-judge",
            cure="give --target or --check",
        )
    if request.cluster is not None and request.check is None:
        raise UsageError(
            "a cluster runs the checks of a command", slug="cluster-without-check",
            cure="let a command judge: --check; --jobs asks an engine several times at once",
        )  # fmt: skip
    for spec in (request.target, request.reference) if request.target else ():
        usable(spec, limits=request.limits, anew=True)
    model = Model.load(request.model, external_data_dir=request.external_data_dir)
    for output in (request.output, request.min_good):
        check_output(output, *model.files)
    if request.input_shapes:
        model = with_inferred_shapes(with_input_shapes(model, request.input_shapes))
    if request.mode.is_polygraphys and not request.target:
        model = without_constant_nodes(model)
    phases = Phases(request.mode.value, apart=request.mode.is_polygraphys)
    with Case(request.case, fresh=request.fresh) as case, contextlib.ExitStack() as entered:
        place = None if request.cluster is None else entered.enter_context(request.cluster.opened())
        asking: Asking = entered.enter_context(
            contextlib.closing(_asking(request, model, case, listener, phases, place))
        )
        good = PassingPieces(phases)
        found = _find(request, asking, request.budget, listener, good)
        path: Sequence[FoundInside] = [found]
        opened: tuple[Opened, ...] = ()
        if request.ends is Ends.BOTH and not request.mode.is_polygraphys:
            path, opened = go_inside(
                found,
                lambda inner, budget: _find(request, inner, budget, listener, PassingPieces(phases)),
                budget=request.budget,
                enter=entered,
                say=listener.progress,
            )
        last = path[-1]
        effort = Effort.WRITE if last.result.stop is SearchStop.INTERRUPTED else Effort.FULL
        finish = last.asking.finish(last.nodes, request.output, last.result.rate, effort)
        reduction = dataclasses.replace(
            _reduction(request, path, finish),
            opened=opened,
            files=_files(request, asking.pieces, good, finish),
            others=_others(path, case),
        )
        case.write("reduction.json", reduction)
    return reduction


def _find(
    request: ReduceRequest, asking: Asking, budget: SearchBudget, listener: ReduceListener, good: PassingPieces
) -> FoundInside:
    """See that the whole fails, and search."""
    search = Search(
        pieces=asking.pieces,
        oracle=asking.oracle,
        identity=asking.identity,
        cache=asking.cache,
        repeats=asking.repeats,
        budget=budget,
        passes=passes_of(request.mode, asking.pieces, request.ends, good.phases),
        observe=_observer(listener, good),
    )
    while True:  # begins again, with the answers so far, when one is taken back
        with contextlib.suppress(UndoError), asking.executor() as executor:
            listener.progress("does the whole model fail?")
            result = search.run(dict if request.mode.is_polygraphys else asking.suspicion, executor)
            if request.check is not None and result.stop is SearchStop.FINISHED:
                search.refuse_constant_answers(result)
            return FoundInside(asking, result)
        assert isinstance(asking, StagedAsking)
        asking.undo()


def _observer(listener: ReduceListener, good: PassingPieces) -> Callable[[Progress[str]], None]:
    def observe(progress: Progress[str]) -> None:
        good.take(progress)
        listener.checked(progress)

    return observe


def _asking(
    request: ReduceRequest,
    model: Model,
    case: Case,
    listener: ReduceListener,
    phases: Phases,
    place: OpenedCluster | None,
) -> EngineAsking | StagedAsking:
    ends = request.mode.ends(request.ends)
    if not request.target:
        return StagedAsking(_staged(request, model, ends, listener, phases, place), case)
    question = Question(
        model=model,
        feeds=feeds_that_run(request.feeding, model),
        reference=usable(request.reference, limits=request.limits),
        target=usable(request.target, limits=request.limits, anew=True),
        tolerance=request.tolerance,
        limits=request.limits,
        input_paths=request.feeding.words,
        batch_bytes=request.batch_bytes,
    )
    engine_request = EngineRequest(
        ends=ends,
        shrink_seconds=SHRINK_SECONDS if request.shrink_seconds is None else request.shrink_seconds,
        repeats=Repeats(premise=request.premise),
        say=listener.progress,
        jobs=request.jobs,
    )
    return EngineAsking(_premises(question, case, listener), engine_request)


def _premises(question: Question, case: Case, listener: Listener) -> EnginePremises:
    """Return the premises for asking engines about a model."""
    inv = Investigation.begin(question, case, listener=listener)
    return EnginePremises(
        source=inv.golden,
        tolerance=question.tolerance,
        judge=lambda: output_judge(inv, question.feeds[0]),
        suspicions=lambda feed: suspicions(inv, feed),
        inside=lambda model, feeds: _premises(
            dataclasses.replace(question, model=model, feeds=feeds, tolerance=None), case, listener
        ),
    )


def _staged(
    request: ReduceRequest,
    model: Model,
    ends: Ends,
    listener: ReduceListener,
    phases: Phases,
    place: OpenedCluster | None,
) -> StagedRequest:
    jobs = request.jobs if place is None else place.jobs()
    samples = functools.cache(lambda: feeds_that_run(request.feeding, model, nan_will_do=True))
    to = ShownTo(
        check=request.check or CheckSpec(words=("a person",)),
        artifact=request.artifact,
        keep_artifact=request.keep_artifact,
        person=request.person.judge if request.check is None and request.person is not None else None,
        jobs=jobs if request.check is not None else 1,
        where=None if place is None else place.commands(),
        phases=phases,
        save_replay=request.save_replay,
        load_replay=request.load_replay,
        tell=listener.tell,
    )
    return StagedRequest(
        model=model,
        samples=lambda: iter(samples()),
        to=to,
        ends=ends,
        shape_source=request.shape_source,
        repeats=Repeats(premise=request.premise) if request.check is not None else TRUSTED,
        shrink_seconds=request.shrink_seconds or 0.0,
    )


def _reduction(request: ReduceRequest, path: Sequence[FoundInside], finish: ReductionFinish) -> Reduction:
    """Assemble the result of a reduction."""
    outside, last = path[0], path[-1]
    result, pieces = last.result, outside.asking.pieces
    return Reduction(
        asked=outside.asking.word,
        command=command_line(),
        model=str(request.model),
        sha256=pieces.model.fingerprint,
        nodes_before=len(pieces.nodes(pieces.items)),
        kept=tuple(_kept(last.asking.pieces, result)),
        minimality=result.minimality.value,
        block_items=result.block_items,
        stop=result.stop.value,
        checks=sum(found.result.checks for found in path),
        repeats=sum(found.result.repeats for found in path),
        cache_hits=sum(found.result.cache_hits for found in path),
        candidates=sum(found.result.candidates for found in path),
        seconds=sum(found.result.seconds for found in path),
        failed_runs=result.rate.failed,
        runs=result.rate.runs,
        confidence=result.confidence,
        signature=outside.result.verdict.signature,
        failure=outside.asking.failure(),
        local=finish.local,
        verified=finish.verified,
        otherwise=finish.otherwise,
        shrunk=finish.shrunk,
    )


def _kept(pieces: Pieces, result: SearchResult[str]) -> Iterator[KeptNode]:
    graph = pieces.model.graph
    removals = {item: verdict.outcome.value for item, verdict in result.removals.items()}
    for name in pieces.nodes(result.kept):
        node = graph.node(name)
        item = pieces.item_of(name)
        yield KeptNode(name, node.op_type, node.outputs, removals.get(item or "", ""), graph.origin(name))


def _files(request: ReduceRequest, pieces: Pieces, good: PassingPieces, finish: ReductionFinish) -> dict[str, str]:
    """Write the requested passing piece, and return the existing files."""
    files: dict[str, str] = {}
    if request.output is not None:
        files["result"] = str(request.output)
    if finish.repro is not None:
        files["repro"] = str(finish.repro)
    if request.min_good is not None:
        nearest = good.nearest()
        if nearest is not None:
            pieces.cut(pieces.nodes(nearest)).save(request.min_good)
            files["min-good"] = str(request.min_good)
    return files


def _others(path: Sequence[FoundInside], case: Case) -> tuple[OtherFailure, ...]:
    """Save the pieces that fail in another way."""
    found: list[OtherFailure] = []
    for pieces, other in [(step.asking.pieces, other) for step in path for other in step.result.others]:
        nodes = pieces.nodes(other.candidate)
        place = Path("interesting") / f"{len(found)}.onnx"
        try:
            pieces.cut(nodes).save(case.folder / place)
            written = str(place)
        except ModelError:
            written = ""
        found.append(OtherFailure(len(nodes), other.verdict.signature, other.verdict.detail, written))
    return tuple(found)

"""Precision: the fewest nodes that must compute in more bits, and the model in which they do.

With any judge, an engine or a command, candidates are typed models (in 8 bits on an engine, models with Q/DQ pairs),
and the emulation of the format sets the order in which they are tried.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensortriage.diagnose.measurements.local_errors.local import local_errors, suspects
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.record import Silent
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.floors import fp32_floors
from tensortriage.errors import StoreError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.precision.plan import ErrorFacts, PrecisionPlan
from tensortriage.precision.search.by_command import CommandSearch, on_command
from tensortriage.precision.search.by_engine import EnginePremise, EngineSearch, on_engine
from tensortriage.precision.search.command_candidates import shown
from tensortriage.precision.search.outcome import minimality, mode_words, written
from tensortriage.precision.search.request import FEEDS, PrecisionListener, PrecisionRequest, load_model, low_precision
from tensortriage.precision.search.shared_parts import untried
from tensortriage.precision.selection.typed_candidates import deployed
from tensortriage.runs.case import Case, command_line
from tensortriage.runs.commands.command_oracle import ShownTo
from tensortriage.runs.commands.process import RunsCommands
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.feeds.trial import feeds_that_run
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision
from tensortriage.values.output_files import check_output
from tensortriage.values.serial import dump, load
from tensortriage.workflows.diagnosis.accuracies import Accuracies

MOST_SCORED = 256
"""Feeds that a search is judged on by a metric: each candidate is run on all of them."""


def find_precision(request: PrecisionRequest, *, listener: PrecisionListener | None = None) -> PrecisionPlan:
    """Find the fewest nodes to keep in higher precision, write the mixed model, and ``precision.json`` next to it.

    Ctrl-C ends the search; answers so far are kept in the case, and the best known choice is written: the smallest set
    that was seen to be enough, else the emulation's, else the model as it is.

    Raises:
        TriageError: For bad input, an engine that is missing, a goal that nothing reaches, or a target that fails with
            every node in the higher precision.
    """
    listener = listener or Silent()
    if request.cluster is not None and request.check is None:
        raise UsageError(
            "a cluster runs the checks of a command; an engine is tested one build at a time",
            slug="cluster-without-check",
            cure="leave it out, or let a command judge: --check",
        )
    check_output(request.output, request.model)
    _check_formats(request)
    with Case(request.case, fresh=request.fresh) as case:
        model = load_model(request)
        earlier = _earlier(case, model)
        kept = [node.node for node in earlier.nodes] if earlier is not None else []
        try:
            ask = _by_engine if request.target else _by_command
            plan = ask(request, model, case, listener, kept)
        except KeyboardInterrupt:
            plan = _unsearched(request, model, earlier)
        case.write("precision.json", plan)
    if request.output is not None:
        dump(plan, request.output.with_name("precision.json"))
    return plan


def _earlier(case: Case, model: Model) -> PrecisionPlan | None:
    """Return the result of an earlier search of the same model in a case; None where there was none."""
    with contextlib.suppress(StoreError, OSError):
        found = load(case.folder / "precision.json", PrecisionPlan)
        return found if found.sha256 == model.fingerprint else None
    return None


def _unsearched(request: PrecisionRequest, model: Model, earlier: PrecisionPlan | None) -> PrecisionPlan:
    """Return the end of a search that was interrupted before it could ask anything.

    The result of an earlier search by the same command stands; else the model is written as it is, with every node in
    fp32.
    """
    file = str(request.output) if request.output is not None and request.output.exists() else ""
    if earlier is not None and (earlier.command, earlier.files.get("model", "")) == (command_line(), file):
        return dataclasses.replace(earlier, interrupted=True)
    target = usable(request.target, limits=request.limits) if request.target else None
    names = tuple(node.name for node in model.graph.nodes)
    return PrecisionPlan(
        kept=names,
        builds=0,
        checks=0,
        error=ErrorFacts("not measured yet", None, None, None, None, None),
        precision=low_precision(request, target).value,
        higher=Precision.FP32.value,
        asked="engine" if target is not None else "check",
        mode=mode_words(request),
        minimality=minimality(request.mode, complete=False, interrupted=True),
        nodes=untried(model.graph, names),
        candidates=len(names),
        fixed=(),
        low_share=0.0,
        casts=0,
        confirmed=False,
        files=written(request, model),
        interrupted=True,
        model=str(request.model),
        sha256=model.fingerprint,
        target=request.target,
        deployed=request.target,
        command=command_line(),
    )


def _check_formats(request: PrecisionRequest) -> None:
    """Refuse a format that differs from the one requested of the target."""
    target = EngineSpec.parse(request.target) if request.target else None
    precision = resolve(target).precision if target is not None and "precision" in target.options else None
    if request.low is None or precision in (None, Precision.FP64, Precision.FP32, Precision.TF32, request.low):
        return
    raise UsageError(
        f"--{request.low.value} contradicts {request.target}",
        slug="precision-formats-many",
        cure="name one format, preferably in --target",
    )


def _by_engine(
    request: PrecisionRequest, model: Model, case: Case, listener: PrecisionListener, earlier: Sequence[str]
) -> PrecisionPlan:
    """Find the nodes to keep by asking an engine."""
    target = usable(request.target, limits=request.limits, anew=True)
    reference = usable(request.reference, limits=request.limits)
    precision = low_precision(request, target)
    question = Question(
        model=model,
        feeds=feeds_that_run(_enough_for(request), model),
        reference=reference,
        target=target,
        limits=request.limits,
        input_paths=request.feeding.words,
        batch_bytes=request.batch_bytes,
    )

    def stands_out(feed: Feed) -> list[str]:
        return [value for value, _ in suspects(local_errors(inv, feed))]

    def floors_of(feed: Feed, names: Sequence[str]) -> Mapping[str, float]:
        return fp32_floors(inv.setting(feed), names)

    with _lab(question, case, listener) as lab:
        inv = Investigation.begin(question, lab=lab)
        premise = EnginePremise(source=inv.golden, floors_of=floors_of, stands_out=stands_out)
        with on_engine(request, premise, listener, precision) as subject:
            plan = EngineSearch(subject, stands_out, earlier).plan()
        return _judged(plan, request, inv)


def _enough_for(request: PrecisionRequest) -> FeedRequest:
    """Return the feeds to search on: a mean of a metric takes more than an error does."""
    if request.goal.metric is None or request.feeding.most != FEEDS:
        return request.feeding
    return dataclasses.replace(request.feeding, most=MOST_SCORED)


def _judged(plan: PrecisionPlan, request: PrecisionRequest, inv: Investigation) -> PrecisionPlan:
    """Return the plan with the written file's scores on the engine, over all inputs."""
    metric, written = request.goal.metric, plan.files.get("model")
    if metric is None or not written or plan.interrupted:
        return plan
    scores = Accuracies(inv, inv.question, metric, request.goal.metric_min, request.feeding)
    target = inv.question.target
    spec = deployed(target) if plan.precision in ("fp16", "bf16") or target.name == "emulate" else target
    return dataclasses.replace(plan, accuracy=scores.of(spec, Model.load(Path(written))))


def _by_command(
    request: PrecisionRequest, model: Model, case: Case, listener: PrecisionListener, earlier: Sequence[str]
) -> PrecisionPlan:
    """Find the nodes to keep by asking a command."""
    assert request.check is not None
    if request.low is None:
        raise UsageError(
            "no lower format is named for the nodes that are not kept in fp32",
            slug="precision-low-missing",
            cure="add --fp16, --bf16, --int8 or --fp8",
        )
    question = Question(
        model=model,
        feeds=feeds_that_run(request.feeding, model),
        reference=usable(request.reference, limits=request.limits),
        target=usable(request.reference, limits=request.limits),
        limits=request.limits,
        batch_bytes=request.batch_bytes,
    )
    with _lab(question, case, listener) as lab, contextlib.ExitStack() as entered:
        source = GoldenValues(question, lab)
        candidates = shown(source, request.low, listener.tell)
        where, jobs = _place(request, entered)
        to = ShownTo(
            check=request.check,
            artifact=request.artifact,
            keep_artifact=request.keep_artifact,
            jobs=jobs,
            where=where,
            save_replay=request.save_replay,
            load_replay=request.load_replay,
            tell=listener.tell,
        )
        command = entered.enter_context(on_command(to, case, candidates, listener))
        return CommandSearch(request, source, candidates, command, earlier=earlier).plan()


def _lab(question: Question, case: Case, listener: PrecisionListener) -> Lab:
    """Return the lab that asks engines about a model."""
    return Lab(case, limits=question.limits, batch_bytes=question.batch_bytes, progress=listener.progress)


def _place(request: PrecisionRequest, entered: contextlib.ExitStack) -> tuple[RunsCommands | None, int]:
    """Return where commands run, until the stack is left, and how many at once."""
    if request.cluster is None:
        return None, 1
    cluster = entered.enter_context(request.cluster.opened())
    return cluster.commands(), cluster.jobs()

"""Precision: the fewest nodes that must compute in more bits, and the model in which they do.

Whoever judges, an engine or a command, candidates are typed models (in 8 bits, asked of an engine, models with Q/DQ
pairs), and the emulation of the format says which to try first.
"""

import contextlib
import dataclasses
from functools import partial

from tensortriage.cluster.ray_cluster import open_cluster
from tensortriage.diagnose.measurements.floors import fp32_floors
from tensortriage.diagnose.measurements.local_errors.local import local_errors, suspects
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.question import Question
from tensortriage.diagnose.state.record import Silent
from tensortriage.diagnose.state.verdict import Step
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.precision.plan import PrecisionPlan
from tensortriage.precision.search.by_command import Command, CommandSearch
from tensortriage.precision.search.by_engine import EngineSearch
from tensortriage.precision.search.command_candidates import shown
from tensortriage.precision.search.request import PrecisionListener, PrecisionRequest, load_model, low_precision
from tensortriage.runs.case import Case
from tensortriage.runs.commands.cluster_commands import ClusterCommands
from tensortriage.runs.commands.process import RunsCommands
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.feed_request import feeds
from tensortriage.values.dtype import Precision
from tensortriage.values.output_files import check_output
from tensortriage.values.serial import dump


def find_precision(request: PrecisionRequest, *, listener: PrecisionListener | None = None) -> PrecisionPlan:
    """Find the fewest nodes to keep in higher precision, write the mixed model, and ``precision.json`` beside it.

    Ctrl-C ends the search; what was asked so far is kept in the case, and a set that was seen to be enough is written.

    Raises:
        TriageError: For bad input, an engine that is missing, a goal that nothing reaches, or a target that fails with
            every node in the higher precision.
    """
    listener = listener or Silent()
    if request.cluster is not None and request.check is None:
        raise UsageError(
            "a cluster runs the checks of a command; an engine is asked about one build after the other",
            slug="cluster-without-check",
            cure="leave it out, let a command judge, or run triage debug precision there with --cluster",
        )
    check_output(request.output, request.model)
    _check_formats(request)
    with Case(request.case) as case:
        plan = _by_engine(request, case, listener) if request.target else _by_command(request, case, listener)
        case.write("precision.json", plan)
    if request.output is not None:
        dump(plan, request.output.with_name("precision.json"))
    return plan


def _check_formats(request: PrecisionRequest) -> None:
    """Refuse a format that is not the one the target is told to compute in."""
    target = EngineSpec.parse(request.target) if request.target else None
    told = resolve(target).precision if target is not None and "precision" in target.options else None
    if request.low is None or told in (None, Precision.FP64, Precision.FP32, Precision.TF32, request.low):
        return
    raise UsageError(
        f"--{request.low.value} contradicts {request.target}",
        slug="precision-formats-many",
        cure="name one format, preferably in --target",
    )


@dataclasses.dataclass
class _Heard:
    """Passes what an investigation says on to the listener of a search."""

    listener: PrecisionListener

    def step(self, step: Step) -> None:
        """Ignore the steps of a diagnosis."""

    def progress(self, text: str) -> None:
        """Pass on."""
        self.listener.progress(text)


def _by_engine(request: PrecisionRequest, case: Case, listener: PrecisionListener) -> PrecisionPlan:
    """Find the nodes to keep by asking an engine."""
    target = usable(request.target, limits=request.limits, anew=True)
    reference = usable(request.reference, limits=request.limits)
    precision = low_precision(request, target)
    model = load_model(request)
    question = Question(
        model=model,
        feeds=tuple(feeds(request.feeding, model)),
        reference=reference,
        target=target,
        limits=request.limits,
        input_paths=tuple(request.feeding.paths),
        batch_bytes=request.batch_bytes,
    )
    inv = Investigation(question, case, listener=_Heard(listener))

    def stands_out(feed: Feed) -> list[str]:
        return [value for value, _ in suspects(local_errors(inv, feed))]

    with contextlib.closing(inv):
        search = EngineSearch(
            request, inv, listener, precision, floors_of=partial(fp32_floors, inv), stands_out=stands_out
        )
        with contextlib.closing(search):
            return search.plan()


def _by_command(request: PrecisionRequest, case: Case, listener: PrecisionListener) -> PrecisionPlan:
    """Find the nodes to keep by asking a command."""
    assert request.check is not None
    if request.low is None:
        raise UsageError(
            "no lower format is named for the nodes that are not kept in fp32",
            slug="precision-low-missing",
            cure="add --fp16, --bf16, --int8 or --fp8",
        )
    model = load_model(request)
    question = Question(
        model=model,
        feeds=tuple(feeds(request.feeding, model)),
        reference=usable(request.reference, limits=request.limits),
        target=usable(request.reference, limits=request.limits),
        limits=request.limits,
        batch_bytes=request.batch_bytes,
    )
    inv = Investigation(question, case, listener=_Heard(listener))
    with contextlib.closing(inv):
        candidates = shown(inv, request.low, listener.tell)
        with contextlib.ExitStack() as entered:
            where, jobs = _place(request, entered)
            command = entered.enter_context(
                contextlib.closing(
                    Command(
                        request, request.check, model, case, listener, made=candidates.identity, where=where, jobs=jobs
                    )
                )
            )
            return CommandSearch(request, inv, case, listener, candidates, command).plan()


def _place(request: PrecisionRequest, entered: contextlib.ExitStack) -> tuple[RunsCommands | None, int]:
    """Return where commands run, until the stack is left, and how many at once."""
    if request.cluster is None:
        return None, 1
    cluster = entered.enter_context(open_cluster(request.cluster))
    needs = request.cluster.needs
    return ClusterCommands(cluster, needs), cluster.slots(needs)

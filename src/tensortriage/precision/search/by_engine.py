"""Searches the nodes to keep with an engine as judge: emulation chooses them, the engine confirms the choice."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.precision.goal import GoalReading
from tensortriage.precision.plan import PrecisionPlan
from tensortriage.precision.search.engine_plan import EngineSubject, said
from tensortriage.precision.search.number_formats import Calibrating, number_format
from tensortriage.precision.search.outcome import prefixes
from tensortriage.precision.search.request import PrecisionListener, PrecisionMode, PrecisionRequest
from tensortriage.precision.search.shared_parts import (
    OutputFloors,
    goal_of,
    open_typed,
    samples_of,
)
from tensortriage.precision.selection.engine_confirmation import Questions, Settled, explained, not_precision, settle
from tensortriage.precision.selection.node_choice import answered
from tensortriage.precision.selection.node_groups import Groups, groups_of
from tensortriage.precision.selection.switchable_model import TYPED, raised
from tensortriage.precision.selection.typed_candidates import EngineSetup
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.values.dtype import Precision


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnginePremise:
    """Facts of the model that a search on an engine starts from; an investigation has all of them.

    Attributes:
        source: The model and its golden values.
        floors_of: Measures noise floors, for a goal that follows from them.
        stands_out: Names the values whose local error on the target is more than rounding, on one feed.
    """

    source: GoldenValues
    floors_of: OutputFloors
    stands_out: Callable[[Feed], Sequence[str]]


@contextlib.contextmanager
def on_engine(
    request: PrecisionRequest, premise: EnginePremise, listener: PrecisionListener, precision: Precision
) -> Iterator[EngineSubject]:
    """Record the reference, and yield the question: in 8 bits after trying the ways to calibrate."""
    started, source, target = time.perf_counter(), premise.source, premise.source.question.target
    typed = precision in TYPED
    written = request.output is not None or target.name != "emulate"
    form = number_format(precision) if written and not typed else None
    listener.progress("recording the reference")
    specs = source.specs(source.question.feeds[0])
    calibrating = samples = samples_of(source)
    if form is not None:
        calibrating, held_out = form.divided(samples, listener.tell)
        if request.goal.metric is None:
            samples = held_out
        else:  # labels calibrate nothing, and a quarter of the samples says little of a mean
            listener.tell(f"all {len(samples)} judge by {request.goal.metric.words}")
    goal = goal_of(request.goal, premise.floors_of, samples, precision)
    model, seconds = raised(source.question.model, precision), request.budget_seconds
    bench = EngineSetup(spec=target, samples=samples, goal=goal, lab=source.lab, latency=request.latency)
    stage, emulation, candidates = (
        open_typed(bench, model, precision, specs, typed=typed, seconds=seconds)
        if form is None
        else form.opened(
            model, specs, bench, Calibrating(calibrating, request.goal.metric), tell=listener.tell, seconds=seconds
        )
    )  # fmt: skip
    with contextlib.closing(emulation):
        yield EngineSubject(
            request=request,
            source=source,
            listener=listener,
            precision=precision,
            format=form,
            samples=samples,
            goal=goal,
            bench=bench,
            stage=stage,
            emulation=emulation,
            candidates=candidates,
            started=started,
        )


class EngineSearch:
    """One search.

    Args:
        subject: The model, its engine and its goal.
        stands_out: Names the values whose local error on the target is more than rounding, on one feed.
        earlier: Nodes that an earlier search in the case ended with.
    """

    def __init__(
        self, subject: EngineSubject, stands_out: Callable[[Feed], Sequence[str]], earlier: Collection[str] = ()
    ) -> None:
        self._on = subject
        self._stands_out = stands_out
        self._earlier = frozenset(earlier)
        self._asked: GoalReading | None = None
        self._settled: Settled | None = None

    def plan(self) -> PrecisionPlan:
        """Search, and assemble the result; Ctrl-C ends it with the best choice so far."""
        try:
            self._settled = settled = self._search()
            return self._on.finished(self._asked, settled, explains=self._explained(settled))
        except KeyboardInterrupt:
            return self._on.finished(self._asked, self._best_known(), explains=True)

    def _search(self) -> Settled:
        self._asked = reading = self._on.candidates.as_asked()
        self._on.listener.tell(f"{self._on.bench.spec}: {said(reading)}; wanted: {self._on.goal.words}")
        rounding = self._on.emulation.read(frozenset())
        reason = explained(reading, rounding)
        self._on.listener.tell(
            f"{self._on.precision.value} alone, emulated: {said(rounding)}"
            + ("" if reason else "; the target's error exceeds it by more than rounding explains (3 dB)")
        )
        return self._settle(reading)

    def _explained(self, settled: Settled) -> bool:
        """Return whether rounding explains the target's error, as requested and with the kept nodes."""
        rounding = self._on.emulation.read(frozenset())
        return explained(self._asked, rounding) and explained(settled.reading, settled.predicted)

    def _best_known(self) -> Settled:
        """Return the smallest choice that the target has seen to be enough, else the emulation; nothing is run.

        Where neither has, and where the target has refused the emulation's, every node is kept.
        """
        if self._settled is not None:
            return dataclasses.replace(self._settled, interrupted=True)
        read, emulated = dict(self._on.candidates.read_sets), self._on.emulation.known
        if (
            self._earlier <= {*self._on.stage.items}
            and (known := self._on.candidates.recalled(self._earlier)) is not None
        ):
            read[self._earlier] = known
        enough = {kept for kept, reading in read.items() if reading.within}
        likely = {kept for kept, reading in emulated.items() if reading.within and kept not in read}
        whole = frozenset(self._on.stage.items)
        kept = min(enough or likely or {whole}, key=len)
        return Settled(
            tuple(name for name in self._on.stage.items if name in kept),
            read.get(kept), emulated.get(kept), frozenset(), complete=False, interrupted=True,
        )  # fmt: skip

    def _settle(self, asked: GoalReading) -> Settled:
        if self._on.request.mode is not PrecisionMode.AUTO:
            return self._prefix()
        nothing = frozenset[str]()
        if asked.within and self._on.read(nothing).within:
            return Settled((), self._on.read(nothing), self._on.emulation.read(nothing), nothing, complete=True)
        first = self._on.emulation.fewest()
        if first is None:
            raise not_precision(self._on.emulation.read(frozenset(self._on.stage.items)), "in emulation")
        self._on.listener.tell(
            f"emulation keeps {len(first.kept)} of {len(self._on.stage.items)} nodes: {said(first.reading)} "
            f"({self._on.emulation.runs} runs)"
        )
        return settle(
            first,
            Questions(
                engine=self._on.read,
                emulated=self._on.emulation.read,
                stricter=self._on.emulation.fewest,
                items=self._on.stage.items,
                suspicion=self._suspicion,
                limited=self._on.goal.limits,
                exact=self._on.bench.spec.name == "emulate",
                suspects=self._suspects,
                groups=lambda: self.groups,
                builds_left=lambda: self._on.request.max_builds - self._on.candidates.asked,
            ),
        )

    def _suspicion(self, node: str) -> float:
        found = self._on.emulation.influences
        return found.ratio(node) if node in found.power else 0.0

    def _suspects(self) -> list[str]:
        """Return the nodes whose result on golden inputs is worse on the target than rounding explains."""
        if self._on.format is not None:  # an op alone has no scales
            return []
        feed = self._on.source.question.feeds[0]
        self._on.listener.tell("the error exceeds the prediction; measuring every op in isolation")
        try:
            found = self._stands_out(feed)
        except EngineError as error:
            self._on.listener.tell(f"isolated ops cannot be run: {error.message}")
            return []
        makers = (self._on.stage.model.graph.producer(value) for value in found)
        return [node.name for node in makers if node is not None]

    @cached_property
    def groups(self) -> Groups:
        """The nodes that are best kept together on the target."""
        stage = self._on.stage
        found = groups_of(stage.model.graph, stage.items, stage.movers, self._on.candidates.fused())
        self._on.listener.tell(f"keeping these nodes is not enough; trying {len(found.sets)} fusion groups")
        return found

    def _prefix(self) -> Settled:
        """Return the result of Polygraphy's modes."""
        kept: list[str] = []
        if not self._on.read(frozenset()).within:
            if not (everything := self._on.read(frozenset(self._on.stage.items))).within:
                raise not_precision(everything, "on the target")
            kept = answered(
                prefixes(self._on.request, self._on.stage.items),
                lambda prefix: self._on.read(prefix).within,
            )
        chosen = frozenset(kept)
        return Settled(tuple(kept), self._on.read(chosen), self._on.emulation.read(chosen), frozenset(), complete=False)

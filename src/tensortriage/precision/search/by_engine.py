"""Searches the nodes to keep with an engine as judge: emulation chooses them, the engine confirms the choice."""

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Sequence
from functools import cached_property

from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.precision.goal import GoalReading, GoalSample, PrecisionGoal
from tensortriage.precision.low_precision_work import low_share
from tensortriage.precision.plan import Honoured, Keeping, Point, PrecisionAlternative, PrecisionPlan
from tensortriage.precision.search.alternatives import other_ways
from tensortriage.precision.search.number_formats import number_format
from tensortriage.precision.search.outcome import facts, minimality, mode_words, point, prefixes, read_back, written
from tensortriage.precision.search.request import PrecisionListener, PrecisionMode, PrecisionRequest
from tensortriage.precision.search.shared_parts import (
    OutputFloors,
    casts_in,
    goal_of,
    in_order,
    keepings,
    open_typed,
    samples_of,
    untried,
)
from tensortriage.precision.selection.emulation import Emulation
from tensortriage.precision.selection.engine_confirmation import Questions, Settled, explained, not_precision, settle
from tensortriage.precision.selection.node_choice import answered
from tensortriage.precision.selection.node_groups import Groups, groups_of
from tensortriage.precision.selection.switchable_model import TYPED, Choosable, raised
from tensortriage.precision.selection.typed_candidates import Candidates, EngineSetup
from tensortriage.precision.tool_settings import settings_for
from tensortriage.runs.case import command_line
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.dtype import Precision
from tensortriage.values.text import error_size, magnitude

CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Numbers of kept nodes at which the emulation draws the curve of accuracy."""


class EngineSearch:
    """One search.

    Args:
        request: What is searched.
        source: The model and its golden values.
        listener: Who hears of it.
        precision: The lower format.
        floors_of: Measures noise floors, for a goal that follows from them.
        stands_out: Names the values whose local error on the target is more than rounding, on one feed.
        earlier: Nodes that an earlier search in the case ended with.
    """

    def __init__(
        self,
        request: PrecisionRequest,
        source: GoldenValues,
        listener: PrecisionListener,
        precision: Precision,
        *,
        floors_of: OutputFloors,
        stands_out: Callable[[Feed], Sequence[str]],
        earlier: Collection[str] = (),
    ) -> None:
        self._request = request
        self._source = source
        self._stands_out = stands_out
        self._listener = listener
        self._precision = precision
        self._started = time.perf_counter()
        self._target = source.question.target
        typed = precision in TYPED
        written = request.output is not None or self._target.name != "emulate"
        self._format = number_format(precision) if written and not typed else None
        self._floors_of = floors_of
        self._earlier = frozenset(earlier)
        self._opened = False
        self._asked: GoalReading | None = None
        self._settled: Settled | None = None
        self._samples: tuple[GoalSample, ...]
        self._goal: PrecisionGoal
        self._bench: EngineSetup
        self._stage: Choosable
        self.emulation: Emulation
        self._candidates: Candidates

    def _open(self) -> None:
        """Record the reference, and get ready what is asked: in 8 bits after trying the ways to calibrate."""
        request, source, precision, tell = self._request, self._source, self._precision, self._listener.tell
        self._listener.progress("recording the reference")
        specs = source.specs(source.question.feeds[0])
        calibrating = self._samples = samples_of(source)
        if self._format is not None:
            calibrating, self._samples = self._format.divided(self._samples, tell)
        self._goal = goal_of(request.goal, self._floors_of, self._samples, precision)
        model = raised(source.question.model, precision)
        self._bench = bench = EngineSetup(
            spec=self._target, samples=self._samples, goal=self._goal, lab=source.lab, latency=request.latency
        )
        seconds = request.budget_seconds
        self._stage, self.emulation, self._candidates = (
            self._format.opened(
                model, specs, bench, calibrating=calibrating, metric=request.goal.metric, tell=tell, seconds=seconds
            )
            if self._format is not None
            else open_typed(bench, model, precision, specs, typed=precision in TYPED, seconds=seconds)
        )  # fmt: skip
        self._opened = True

    def close(self) -> None:
        """Release the session of the emulation."""
        if self._opened:
            self.emulation.close()

    @property
    def asked(self) -> int:
        """Models asked about, the original included; those answered from the case count as well."""
        return self._candidates.asked

    def plan(self) -> PrecisionPlan:
        """Search, and put together what came of it; Ctrl-C ends it with the best choice that is known.

        Raises:
            KeyboardInterrupt: When it comes before there is anything to choose from.
        """
        try:
            self._open()
            self._search()
            return self._finished(explains=self._explained())
        except KeyboardInterrupt:
            if not self._opened:
                raise
            self._settled = self._best_known()
            return self._finished(explains=True)

    def _search(self) -> None:
        self._asked = asked = self._candidates.as_asked()
        self._listener.tell(f"{self._target}: {self._say(asked)}; wanted: {self._goal.words}")
        rounding = self.emulation.read(frozenset())
        reason = explained(asked, rounding)
        self._listener.tell(
            f"{self._precision.value} alone, emulated: {self._say(rounding)}"
            + ("" if reason else "; the target does worse by more than rounding explains (3 dB)")
        )
        self._settled = self._settle(asked)

    def _explained(self) -> bool:
        """Whether rounding explains what the target does, as it was named and with what is kept."""
        assert self._settled is not None
        rounding = self.emulation.read(frozenset())
        return explained(self._asked, rounding) and explained(self._settled.reading, self._settled.predicted)

    def _best_known(self) -> Settled:
        """Return the smallest choice that the target has seen to be enough, else the emulation; nothing is run.

        Where neither has, and where the target has refused the emulation's, every node is kept.
        """
        if self._settled is not None:
            return dataclasses.replace(self._settled, interrupted=True)
        read, emulated = dict(self._candidates.read_sets), self.emulation.known
        if self._earlier <= {*self._stage.items} and (known := self._candidates.recalled(self._earlier)) is not None:
            read[self._earlier] = known
        enough = {kept for kept, reading in read.items() if reading.within}
        likely = {kept for kept, reading in emulated.items() if reading.within and kept not in read}
        whole = frozenset(self._stage.items)
        kept = min(enough or likely or {whole}, key=len)
        return Settled(
            tuple(name for name in self._stage.items if name in kept),
            read.get(kept), emulated.get(kept), frozenset(), complete=False, interrupted=True,
        )  # fmt: skip

    def _say(self, reading: GoalReading) -> str:
        if reading.failure:
            return f"failed: {reading.failure}"
        number = f"error {error_size(reading.error)}"
        number += "" if math.isinf(reading.error) else f" ({reading.sqnr_db:.1f} dB)"
        metric = "" if reading.metric is None else f", metric {magnitude(reading.metric, 6)}"
        return number + metric + (", good enough" if reading.within else ", not good enough")

    def _settle(self, asked: GoalReading) -> Settled:
        if self._request.mode is not PrecisionMode.AUTO:
            return self._prefix()
        nothing = frozenset[str]()
        if asked.within and self._engine(nothing).within:
            return Settled((), self._engine(nothing), self.emulation.read(nothing), nothing, complete=True)
        first = self.emulation.fewest()
        if first is None:
            raise not_precision(self.emulation.read(frozenset(self._stage.items)), "in emulation")
        self._listener.tell(
            f"emulation keeps {len(first.kept)} of {len(self._stage.items)} nodes: {self._say(first.reading)} "
            f"({self.emulation.runs} runs)"
        )
        return settle(
            first,
            Questions(
                engine=self._engine,
                emulated=self.emulation.read,
                stricter=self.emulation.fewest,
                items=self._stage.items,
                suspicion=self._suspicion,
                limited=self._goal.limits,
                exact=self._target.name == "emulate",
                suspects=self._suspects,
                groups=lambda: self.groups,
                builds_left=lambda: self._request.max_builds - self.asked,
            ),
        )

    def _suspicion(self, node: str) -> float:
        found = self.emulation.influences
        return found.ratio(node) if node in found.power else 0.0

    def _suspects(self) -> list[str]:
        """Return the nodes whose result on golden inputs is worse on the target than rounding it explains."""
        if self._format is not None:  # an op alone has no scales
            return []
        feed = self._source.question.feeds[0]
        self._listener.tell("the error exceeds the prediction; measuring every op in isolation")
        try:
            found = self._stands_out(feed)
        except EngineError as error:
            self._listener.tell(f"isolated ops cannot be run: {error.message}")
            return []
        makers = (self._stage.model.graph.producer(value) for value in found)
        return [node.name for node in makers if node is not None]

    @cached_property
    def groups(self) -> Groups:
        """The nodes that are best kept together on the target."""
        stage = self._stage
        found = groups_of(stage.model.graph, stage.items, stage.movers, self._candidates.fused())
        self._listener.tell(f"keeping these nodes is not enough; trying {len(found.sets)} fusion groups")
        return found

    def _engine(self, kept: frozenset[str]) -> GoalReading:
        known, before = kept in self._candidates.read_sets, self._bench.builds.count
        reading = self._candidates.read(kept)
        if not known:
            word = f"build {self.asked}" if self._bench.builds.count > before else "known from the case"
            self._listener.tell(f"{word}: {len(kept)} nodes kept: {self._say(reading)}")
        return reading

    def _prefix(self) -> Settled:
        """Return what Polygraphy's modes find."""
        kept: list[str] = []
        if not self._engine(frozenset()).within:
            if not (everything := self._engine(frozenset(self._stage.items))).within:
                raise not_precision(everything, "on the target")
            kept = answered(prefixes(self._request, self._stage.items), lambda prefix: self._engine(prefix).within)
        chosen = frozenset(kept)
        return Settled(tuple(kept), self._engine(chosen), self.emulation.read(chosen), frozenset(), complete=False)

    # -- putting together ----------------------------------------------------------------------------------------

    def _finished(self, *, explains: bool) -> PrecisionPlan:
        request, stage, settled = self._request, self._stage, self._settled
        assert settled is not None
        rounding = set(settled.kept)
        whole = in_order(stage.model, self._candidates.complete(rounding))
        files: dict[str, str] = {}
        casts = None
        if request.output is not None:
            made = self._candidates.model(rounding)
            files = written(request, made)
            casts = casts_in(made) - casts_in(stage.model)
        points = self._pareto(settled)
        remedies = self._remedies(settled)
        builds = self._bench.builds.count
        wide = {*whole, *stage.fixed}
        return PrecisionPlan(
            kept=whole,
            builds=builds,
            checks=builds * len(self._samples),
            known=max(self.asked - builds, 0),
            confirmed=settled.reading is not None and settled.reading.within,
            error=facts(self._asked, settled, self._goal, self._samples, explains=explains),
            precision=self._precision.value,
            higher=Precision.FP32.value,
            asked="engine",
            mode=mode_words(request),
            minimality=minimality(request.mode, complete=settled.complete, interrupted=settled.interrupted),
            nodes=self._nodes(settled),
            candidates=len(stage.items),
            fixed=stage.fixed,
            low_share=low_share(stage.model.graph, stage.specs, wide),
            casts=casts,
            pareto=points,
            honoured=self._honoured(settled) if not settled.interrupted else None,
            remedies=remedies,
            settings=(
                self._format.settings(whole, stage)
                if self._format is not None
                else settings_for(stage.model.graph, whole, self._precision)
            ),
            next=self._next(explains=explains),
            files=files,
            emulated=self.emulation.runs,
            seconds=round(time.perf_counter() - self._started, 2),
            interrupted=settled.interrupted,
            model=str(request.model),
            sha256=stage.model.fingerprint,
            target=str(self._target),
            deployed=str(self._target if self._target.name == "emulate" else self._candidates.spec),
            inputs=self._source.question.inputs_word,
            command=command_line(),
        )

    def _nodes(self, settled: Settled) -> tuple[Keeping, ...]:
        if settled.interrupted and len(settled.kept) == len(self._stage.items):
            return untried(self._stage.model.graph, settled.kept)
        feeds = self._source.question.feeds
        nothing = self.emulation.known.get(frozenset())
        feed = next((f for f in feeds if nothing is not None and f.name == nothing.sample), feeds[0])
        measured = self._request.mode is PrecisionMode.AUTO and settled.kept and not settled.interrupted
        found = self.emulation.influences if measured else None
        made = keepings(
            self._stage,
            settled.kept,
            found,
            self._source.of(feed),
            feed,
            limited=self._goal.limits,
            scaled=self._format is not None,
        )
        chosen = frozenset(settled.kept)

        def seen(node: str) -> str:
            if node not in settled.tried_without:
                return ""
            return "fails" if chosen - {node} in self._candidates.read_sets else "fails in emulation"

        return tuple(dataclasses.replace(keeping, without=seen(keeping.node)) for keeping in made)

    def _pareto(self, settled: Settled) -> tuple[Point, ...]:
        """Return every choice measured on the engine, and the emulated curve in between."""
        request = self._request
        if request.latency and not settled.interrupted:  # the two ends of the curve
            for end in (frozenset[str](), frozenset(self._stage.items)):
                self._engine(end)
        points = [point(len(kept), reading, measured=True) for kept, reading in self._candidates.read_sets.items()]
        if request.mode is PrecisionMode.AUTO and not settled.interrupted and settled.kept:
            order = self.emulation.influences.order()
            for count in CURVE:
                if count < len(order):
                    points.append(point(count, self.emulation.read(frozenset(order[:count])), measured=False))
        return tuple(sorted(points, key=lambda point: (point.kept, point.measured)))

    def _honoured(self, settled: Settled) -> Honoured | None:
        if self._precision not in TYPED and self._format is None:
            return None
        self._listener.progress("reading back what the engine made of the types")
        found = self._candidates.audited(settled.kept)
        if found is None:
            return None
        lowered = () if self._format is None else self._stage.items
        return read_back(found, self._candidates.complete(settled.kept), lowered=lowered)

    def _remedies(self, settled: Settled) -> tuple[PrecisionAlternative, ...]:
        request = self._request
        if not request.remedies or not settled.kept or self._precision not in TYPED or settled.interrupted:
            return ()
        self._listener.tell("trying alternatives to fp32")
        recorded = {spec.name: spec for spec in self._stage.specs.values()}
        return other_ways(
            self._bench,
            self._source.question.model,
            self._precision,
            recorded,
            fewer_than=len(settled.kept),
            output=request.output,
        )

    def _next(self, *, explains: bool) -> tuple[str, ...]:
        commands = []
        if not explains and self._format is not None:
            commands += self._format.doubting(self._source)
        elif not explains:
            commands.append(
                triage_command(
                    self._source.question, "debug reduce", "-o", "reduced.onnx", "--target", str(self._target)
                )
            )
        if self._request.output is not None and self._target.name != "emulate":
            commands.append(
                triage_command(
                    self._source.question,
                    "run",
                    "--target",
                    str(self._candidates.spec),
                    "--target-model",
                    str(self._request.output),
                )
            )
        return tuple(commands)

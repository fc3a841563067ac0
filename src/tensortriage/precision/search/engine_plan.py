"""The state of a search on an engine, and the assembly of its result."""

import dataclasses
import math
import time

from tensortriage.precision.goal import GoalReading, GoalSample, PrecisionGoal
from tensortriage.precision.plan import Honoured, Keeping, Point, PrecisionAlternative, PrecisionPlan
from tensortriage.precision.search.alternatives import other_ways
from tensortriage.precision.search.number_formats import NumberFormat
from tensortriage.precision.search.outcome import facts, planned, point, read_back, written
from tensortriage.precision.search.request import PrecisionListener, PrecisionMode, PrecisionRequest
from tensortriage.precision.search.shared_parts import casts_in, in_order, keepings, recorded_on, untried
from tensortriage.precision.selection.emulation import Emulation
from tensortriage.precision.selection.engine_confirmation import Settled
from tensortriage.precision.selection.switchable_model import TYPED, Choosable
from tensortriage.precision.selection.typed_candidates import Candidates, EngineSetup
from tensortriage.precision.tool_settings import settings_for
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.runs.questions.suggested_commands import triage_command
from tensortriage.values.dtype import Precision
from tensortriage.values.text import error_size, magnitude

CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Numbers of kept nodes at which the emulation draws the curve of accuracy."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineSubject:
    """A model on an engine, in which nodes are chosen.

    Attributes:
        request: The user's request.
        source: The model and its golden values.
        listener: Receives steps and progress.
        precision: The lower format.
        format: The converter to the narrow format; None where the model's types suffice.
        samples: Feeds and golden outputs that judge a candidate.
        goal: The goal for the outputs.
        bench: Runs candidates.
        stage: Units of choice.
        emulation: Predicts the cost of a choice; must be closed.
        candidates: The choices as models on the engine.
        started: When the search began, by `time.perf_counter`.
    """

    request: PrecisionRequest
    source: GoldenValues
    listener: PrecisionListener
    precision: Precision
    format: NumberFormat | None
    samples: tuple[GoalSample, ...]
    goal: PrecisionGoal
    bench: EngineSetup
    stage: Choosable
    emulation: Emulation
    candidates: Candidates
    started: float

    def read(self, kept: frozenset[str]) -> GoalReading:
        """Return the engine's reading of a choice; a first reading is reported to the listener."""
        known, before = kept in self.candidates.read_sets, self.bench.builds.count
        reading = self.candidates.read(kept)
        if not known:
            word = f"build {self.candidates.asked}" if self.bench.builds.count > before else "known from the case"
            self.listener.tell(f"{word}: {len(kept)} nodes kept: {said(reading)}")
        return reading

    def finished(self, asked: GoalReading | None, settled: Settled, *, explains: bool) -> PrecisionPlan:
        """Write the model, and assemble the result of the search.

        Args:
            asked: Reading of the target as the user named it; None when interrupted before.
            settled: The confirmed choice.
            explains: Whether rounding explains the target's error.
        """
        request, stage = self.request, self.stage
        rounding = set(settled.kept)
        whole = in_order(stage.model, self.candidates.complete(rounding))
        files: dict[str, str] = {}
        casts = None
        if request.output is not None:
            made = self.candidates.model(rounding)
            files = written(request, made)
            casts = casts_in(made) - casts_in(stage.model)
        points = self._pareto(settled)
        remedies = self._remedies(settled)
        builds = self.bench.builds.count
        plan = planned(request, stage, whole, complete=settled.complete, interrupted=settled.interrupted)
        return dataclasses.replace(
            plan,
            builds=builds,
            checks=builds * len(self.samples),
            known=max(self.candidates.asked - builds, 0),
            confirmed=settled.reading is not None and settled.reading.within,
            error=facts(asked, settled, self.goal, self.samples, explains=explains),
            nodes=self._nodes(settled),
            casts=casts,
            pareto=points,
            honoured=self._honoured(settled) if not settled.interrupted else None,
            remedies=remedies,
            settings=(
                self.format.settings(whole, stage)
                if self.format is not None
                else settings_for(stage.model.graph, whole, self.precision)
            ),
            next=self._next(explains=explains),
            files=files,
            emulated=self.emulation.runs,
            seconds=round(time.perf_counter() - self.started, 2),
            target=str(self.bench.spec),
            deployed=str(self.bench.spec if self.bench.spec.name == "emulate" else self.candidates.spec),
            inputs=self.source.question.inputs_word,
        )

    def _nodes(self, settled: Settled) -> tuple[Keeping, ...]:
        if settled.interrupted and len(settled.kept) == len(self.stage.items):
            return untried(self.stage.model.graph, settled.kept)
        feeds = self.source.question.feeds
        nothing = self.emulation.known.get(frozenset())
        feed = next((f for f in feeds if nothing is not None and f.name == nothing.sample), feeds[0])
        measured = self.request.mode is PrecisionMode.AUTO and settled.kept and not settled.interrupted
        found = self.emulation.influences if measured else None
        made = keepings(
            self.stage,
            settled.kept,
            found,
            recorded_on(self.source, feed),
            limited=self.goal.limits,
            scaled=self.format is not None,
        )
        chosen = frozenset(settled.kept)

        def seen(node: str) -> str:
            if node not in settled.tried_without:
                return ""
            return "fails" if chosen - {node} in self.candidates.read_sets else "fails in emulation"

        return tuple(dataclasses.replace(keeping, without=seen(keeping.node)) for keeping in made)

    def _pareto(self, settled: Settled) -> tuple[Point, ...]:
        """Return every choice measured on the engine, and the emulated curve in between."""
        request = self.request
        if request.latency and not settled.interrupted:  # the two ends of the curve
            for end in (frozenset[str](), frozenset(self.stage.items)):
                self.read(end)
        points = [point(len(kept), reading, measured=True) for kept, reading in self.candidates.read_sets.items()]
        if request.mode is PrecisionMode.AUTO and not settled.interrupted and settled.kept:
            order = self.emulation.influences.order()
            for count in CURVE:
                if count < len(order):
                    points.append(point(count, self.emulation.read(frozenset(order[:count])), measured=False))
        return tuple(sorted(points, key=lambda point: (point.kept, point.measured)))

    def _honoured(self, settled: Settled) -> Honoured | None:
        if self.precision not in TYPED and self.format is None:
            return None
        self.listener.progress("reading back the types that the engine uses")
        found = self.candidates.audited(settled.kept)
        if found is None:
            return None
        lowered = () if self.format is None else self.stage.items
        return read_back(found, self.candidates.complete(settled.kept), lowered=lowered)

    def _remedies(self, settled: Settled) -> tuple[PrecisionAlternative, ...]:
        request = self.request
        if not request.remedies or not settled.kept or self.precision not in TYPED or settled.interrupted:
            return ()
        self.listener.tell("trying alternatives to fp32")
        recorded = {spec.name: spec for spec in self.stage.specs.values()}
        return other_ways(
            self.bench,
            self.source.question.model,
            self.precision,
            recorded,
            fewer_than=len(settled.kept),
            output=request.output,
        )

    def _next(self, *, explains: bool) -> tuple[str, ...]:
        commands = []
        if not explains and self.format is not None:
            commands += self.format.doubting(self.source)
        elif not explains:
            commands.append(
                triage_command(
                    self.source.question, "debug reduce", "-o", "reduced.onnx", "--target", str(self.bench.spec)
                )
            )
        if self.request.output is not None and self.bench.spec.name != "emulate":
            commands.append(
                triage_command(
                    self.source.question,
                    "run",
                    "--target",
                    str(self.candidates.spec),
                    "--target-model",
                    str(self.request.output),
                )
            )
        return tuple(commands)


def said(reading: GoalReading) -> str:
    """Return a reading in words."""
    if reading.failure:
        return f"failed: {reading.failure}"
    number = f"error {error_size(reading.error)}"
    number += "" if math.isinf(reading.error) else f" ({reading.sqnr_db:.1f} dB)"
    metric = "" if reading.metric is None else f", metric {magnitude(reading.metric, 6)}"
    return number + metric + (", good enough" if reading.within else ", not good enough")

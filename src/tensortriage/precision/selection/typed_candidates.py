"""Candidates on the engine itself: the model typed so that some nodes compute in the higher precision, built and run.

An engine applies a requested precision to everything; for a mixture it is run with the types of the model instead,
which set the format of each node.
"""

import abc
import dataclasses
import functools
import statistics
from collections.abc import Callable, Collection, Sequence

from tensortriage.engines.base import Plan
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.precision.goal import Arrays, GoalReading, GoalSample, PrecisionGoal, failed, identity_of
from tensortriage.precision.selection.node_groups import fused_nodes
from tensortriage.precision.selection.switchable_model import Choosable, SwitchableModel
from tensortriage.runs.analyses.plan_audit import PlanAudit, audit
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.derived import Derived
from tensortriage.values.dtype import Precision

AS_TYPED = {"openvino": "dynamic", "tensorrt": "mixed"}
"""Word for the option ``precision`` that makes an engine follow the types of the model; others just lose the option."""

WARM_UP, TIMED, TIMED_SECONDS = 3, 50, 2.0
"""Runs before timing, most runs timed, and the time after which no further run is timed."""


@dataclasses.dataclass(slots=True)
class Builds:
    """A number of models that were built on the engine."""

    count: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineSetup:
    """The setup in which candidates run on the engine.

    Attributes:
        spec: The engine as the user named it.
        samples: Feeds to run, with golden outputs.
        goal: The goal for the outputs.
        lab: Asks the engine, and keeps the readings.
        latency: Whether to time runs.
        builds: Builds of this search; answers that the case knew are not among them.
    """

    spec: EngineSpec
    samples: Sequence[GoalSample]
    goal: PrecisionGoal
    lab: Lab
    latency: bool = False
    builds: Builds = dataclasses.field(default_factory=Builds)

    @functools.cached_property
    def _identity(self) -> str:
        return identity_of(self.samples, self.goal)

    def read(
        self, spec: EngineSpec, original: Model, candidate: Callable[[], Model], what: str, *words: object
    ) -> GoalReading:
        """Return the reading of a candidate on an engine.

        Args:
            spec: The engine.
            original: The model without changes.
            candidate: Makes it, unless its reading is known.
            what: Its name, for people.
            words: Identify it among candidates of the same original.
        """

        def ask() -> GoalReading:
            self.lab.progress(f"building and running {what} on {spec}")
            reading = self._run(spec, candidate())
            self.builds.count += 1
            return reading

        return self.reading(spec, original, what, *words).of(ask)

    def reading(self, spec: EngineSpec, original: Model, what: str, *words: object) -> Derived[GoalReading]:
        """Return the place in the case for the reading of a candidate; see `read`."""
        inputs = (spec, original, self._identity, self.latency, *words)
        return self.lab.derived(GoalReading, f"{what} on {spec}", *inputs)

    def plan(self, spec: EngineSpec, model: Model) -> Plan | None:
        """Return the plan of an engine for a model; None when it reports none."""
        before = self.lab.tally.builds
        try:
            found = self.lab.plan(spec, model)
        except EngineError:
            return None
        self.builds.count += self.lab.tally.builds - before
        return found

    def _run(self, spec: EngineSpec, model: Model) -> GoalReading:
        wanted = list(self.samples[0].outputs)
        try:
            with self.lab.session(spec, model, sequence=True) as run:
                results: list[Arrays] = []
                for sample in self.samples:
                    outputs = run(sample.feed)
                    results.append({name: outputs[name] for name in wanted if name in outputs})
                reading = self.goal.judge(self.samples, results)
                if self.latency:
                    reading = dataclasses.replace(
                        reading, latency_ms=timed(lambda feed: run.of(feed).seconds, self.samples[0])
                    )
                return reading
        except EngineError as error:
            return failed(error.message)


def timed(run: Callable[[Feed], float], sample: GoalSample) -> float:
    """Return the median time of a run in ms; ``run`` returns that of one in seconds."""
    for _ in range(WARM_UP):
        run(sample.feed)
    seconds: list[float] = []
    while len(seconds) < TIMED and (len(seconds) < WARM_UP or sum(seconds) < TIMED_SECONDS):
        seconds.append(run(sample.feed))
    return 1000.0 * statistics.median(seconds)


class Candidates(abc.ABC):
    """Models of one original in which some nodes compute in float32, on an engine.

    Args:
        stage: The original and the units of choice in it.
        bench: Runs candidates.
        spec: The engine, following the types of candidates.
        words: Identify them among others of the same original.
    """

    def __init__(
        self, stage: Choosable, *, bench: EngineSetup, spec: EngineSpec, words: tuple[object, ...] = ()
    ) -> None:
        self.bench = bench
        self.read_sets: dict[frozenset[str], GoalReading] = {}
        self.spec = spec
        self._original = stage.model
        self._words = (stage.precision.value, *words)

    @abc.abstractmethod
    def model(self, kept: Collection[str]) -> Model:
        """Return the model in which given nodes, and those between them, compute in float32."""

    @abc.abstractmethod
    def as_asked(self) -> GoalReading:
        """Return the reading of the model without kept nodes, as requested."""

    @property
    @abc.abstractmethod
    def asked(self) -> int:
        """Models measured, the requested one included; those answered from the case count as well."""

    def complete(self, kept: Collection[str]) -> frozenset[str]:
        """Return kept nodes with those that only hand numbers on between them."""
        return frozenset(kept)

    def audited(self, kept: Collection[str]) -> PlanAudit | None:
        """Return the engine's plan for a model, audited against its types; None when it does not report one."""
        spec, model = self._engine(frozenset(kept)), self.model(kept)
        plan = self.bench.plan(spec, model)
        return None if plan is None else audit(plan, model, spec, resolve(spec).engine)

    def fused(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that the engine executes as one when none is kept; empty when it does not report them."""
        return ()

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading of a set of kept nodes; one build and one run per sample unless it is known."""
        wanted = frozenset(kept)
        if wanted not in self.read_sets:
            what, whole = self._named(wanted)
            self.read_sets[wanted] = self.bench.read(
                self._engine(wanted), self._original, lambda: self._built(whole), what, *self._words, whole
            )
        return self.read_sets[wanted]

    def recalled(self, kept: Collection[str]) -> GoalReading | None:
        """Return the reading of a set of kept nodes if the case has it; nothing is built."""
        what, whole = self._named(frozenset(kept))
        return self.bench.reading(self._engine(frozenset(kept)), self._original, what, *self._words, whole).known()

    def _named(self, kept: frozenset[str]) -> tuple[str, list[str]]:
        return f"the model with {len(kept)} nodes in fp32", sorted(self.complete(kept))

    def _engine(self, kept: frozenset[str]) -> EngineSpec:
        return self.spec

    def _built(self, whole: Sequence[str]) -> Model:
        return self.model(whole)


class TypedCandidates(Candidates):
    """Typed models of one original.

    Args:
        stage: The original and the units of choice in it.
        bench: Runs candidates.
    """

    def __init__(self, stage: SwitchableModel, *, bench: EngineSetup) -> None:
        super().__init__(stage, bench=bench, spec=deployed(bench.spec))
        self._stage = stage
        self._emulated = bench.spec.name == "emulate"
        self._asked_for_regions = False

    def model(self, kept: Collection[str]) -> Model:
        """See `Candidates`."""
        return self._typed(sorted(self.complete(kept)))

    def _typed(self, whole: Sequence[str]) -> Model:
        return convert(self._stage.model, self._stage.precision, specs=self._stage.specs, kept_nodes=whole)

    def complete(self, kept: Collection[str]) -> frozenset[str]:
        """See `Candidates`."""
        return frozenset(kept) | self._stage.islands.carriers(kept)

    def as_asked(self) -> GoalReading:
        """Return the reading of the original on the engine as the user named it."""
        original = self._stage.model
        return self.bench.read(self.bench.spec, original, lambda: original, "the model as it is", "as asked")

    @property
    def asked(self) -> int:
        """See `Candidates`; the original is one more, and so is asking for its regions."""
        return 1 + len(self.read_sets) + self._asked_for_regions

    def fused(self) -> tuple[tuple[str, ...], ...]:
        """See `Candidates`."""
        if self._emulated:
            return ()
        self._asked_for_regions = True
        self.bench.lab.progress(f"reading the fused nodes of {self.bench.spec}")
        plan = self.bench.plan(self.bench.spec, self._stage.model)
        return () if plan is None else fused_nodes(plan, self._stage.model.graph)

    def _built(self, whole: Sequence[str]) -> Model:
        if self._emulated:
            return round_results(self._stage.model, self._stage.precision, specs=self._stage.specs, kept=whole)
        return self._typed(whole)

    def audited(self, kept: Collection[str]) -> PlanAudit | None:
        """See `Candidates`."""
        return None if self._emulated else super().audited(kept)


def typed_file_note(precision: Precision) -> str:
    """Return how a file that holds a number format in its types is run."""
    return (
        "it holds its own types: run it with onnxruntime or a strongly typed engine; "
        f"emulate:precision={precision.value} would round the kept ops again"
    )


def deployed(spec: EngineSpec) -> EngineSpec:
    """Return the engine with the option to follow the types of the model.

    The engine ``emulate`` has no kernels of its own: the model that it would make is run without optimizations instead.
    """
    if spec.name == "emulate":
        return PLAIN
    options = {key: value for key, value in spec.options.items() if key not in ("precision", "kept")}
    if spec.name in AS_TYPED:
        options["precision"] = AS_TYPED[spec.name]
    return spec.with_options(options)

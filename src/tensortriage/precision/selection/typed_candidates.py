"""Candidates on the engine itself: the model typed so that some nodes compute in the higher precision, built and run.

An engine that is asked for a precision applies it to everything; to get a mixture it is asked to follow the types of
the model instead, and the types say which node computes in what.
"""

import abc
import dataclasses
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from tensortriage.engines.base import Limits, Plan
from tensortriage.engines.registry import create
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import EngineError
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.precision.goal import Arrays, GoalReading, GoalSample, PrecisionGoal, failed
from tensortriage.precision.selection.node_groups import fused_nodes
from tensortriage.precision.selection.pass_through_nodes import Islands
from tensortriage.runs.capabilities.plan_audit import PlanAudit, audit
from tensortriage.runs.check_cache import CheckCache, digest
from tensortriage.runs.runner import Runner, Tally, engine_identity
from tensortriage.runs.workspace import Workspace
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

AS_TYPED = {"openvino": "dynamic", "tensorrt": "mixed"}
"""Word for the option ``precision`` that makes an engine follow the types of the model; others just lose the option."""

WARM_UP, TIMED, TIMED_SECONDS = 3, 50, 2.0
"""Runs before timing, most runs timed, and the time after which no further run is timed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineSetup:
    """What is needed to run anything on the engine.

    Attributes:
        spec: The engine as the user named it.
        samples: What to run on.
        goal: What is asked of the outputs.
        workspace: For model files.
        limits: Time and memory limits.
        cache: Where readings are kept.
        identity: Digest of all that readings depend on besides engine and candidate.
        tally: Counts builds and runs.
        latency: Whether to time runs.
        heard: Told what is under way.
    """

    spec: EngineSpec
    samples: Sequence[GoalSample]
    goal: PrecisionGoal
    workspace: Workspace
    limits: Limits
    cache: CheckCache
    identity: str
    tally: Tally
    latency: bool = False
    heard: Callable[[str], None] = lambda text: None

    def read(self, spec: EngineSpec, model: Callable[[], Model], what: str, *key: object) -> GoalReading:
        """Return the reading of a model on an engine, from the cache when it is there."""
        name = digest(self.identity, engine_identity(spec), self.latency, self.goal.words, *key)
        found = self.cache.get(name, GoalReading)
        if found is None:
            self.heard(f"building and running {what} on {spec}")
            started = time.perf_counter()
            found = self._run(spec, model())
            self.cache.put(name, f"{what} on {spec}", found, seconds=time.perf_counter() - started)
        return found

    def fused(self, spec: EngineSpec, model: Model, *key: object) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that an engine executes as one, cached like readings; empty when it does not tell."""
        name = digest(self.identity, engine_identity(spec), "fused", *key)

        def ask() -> tuple[tuple[str, ...], ...]:
            try:
                with Runner(spec, model, workspace=self.workspace, limits=self.limits, tally=self.tally) as runner:
                    plan: Plan | None = runner.plan()
            except EngineError:
                return ()
            return () if plan is None else fused_nodes(plan, model.graph)

        self.heard(f"asking {spec} what it runs as one")
        return self.cache.remember(name, f"regions of {spec}", tuple[tuple[str, ...], ...], ask)

    def audited(self, spec: EngineSpec, model: Model) -> PlanAudit | None:
        """Return what an engine made of a model, against the model's types; None when it does not tell."""
        path = self.workspace.file(model)
        typed = Model.load(path)
        try:
            with Runner(spec, typed, workspace=self.workspace, limits=self.limits, tally=self.tally) as runner:
                plan: Plan | None = runner.plan()
            return None if plan is None else audit(plan, typed, spec, create(spec))
        except EngineError:
            return None
        finally:
            self.workspace.release(path)

    def _run(self, spec: EngineSpec, model: Model) -> GoalReading:
        try:
            with Runner(spec, model, workspace=self.workspace, limits=self.limits, tally=self.tally) as runner:
                wanted = list(self.samples[0].outputs)
                results: list[Arrays] = []
                for sample in self.samples:
                    outputs = runner.run(sample.feed)
                    results.append({name: np.array(outputs[name]) for name in wanted if name in outputs})
                reading = self.goal.judge(self.samples, results)
                if self.latency:
                    reading = dataclasses.replace(reading, latency_ms=timed(runner, self.samples[0]))
                return reading
        except EngineError as error:
            return failed(error.message)


def timed(runner: Runner, sample: GoalSample) -> float:
    """Return the median time of a run in ms."""
    for _ in range(WARM_UP):
        runner.run(sample.feed)
    seconds: list[float] = []
    while len(seconds) < TIMED and (len(seconds) < WARM_UP or sum(seconds) < TIMED_SECONDS):
        started = time.perf_counter()
        runner.run(sample.feed)
        seconds.append(time.perf_counter() - started)
    return 1000.0 * statistics.median(seconds)


class Candidates(abc.ABC):
    """Models of one original in which some nodes compute in float32, on an engine.

    Args:
        precision: The lower format.
        bench: Where candidates run.
        spec: The engine as candidates want it.
    """

    def __init__(self, precision: Precision, *, bench: EngineSetup, spec: EngineSpec) -> None:
        self.bench = bench
        self.read_sets: dict[frozenset[str], GoalReading] = {}
        self.spec = spec
        self._precision = precision

    @abc.abstractmethod
    def model(self, kept: Collection[str]) -> Model:
        """Return the model in which some nodes, and what lies between them, compute in float32."""

    @abc.abstractmethod
    def as_asked(self) -> GoalReading:
        """Return the reading of the model in which nothing is kept, as the user asked for it."""

    @property
    @abc.abstractmethod
    def builds(self) -> int:
        """Models asked about, what the user asked for included; those answered from the cache count as well."""

    def complete(self, kept: Collection[str]) -> frozenset[str]:
        """Return kept nodes with those that only hand numbers on between them."""
        return frozenset(kept)

    def audited(self, kept: Collection[str]) -> PlanAudit | None:
        """Return what the engine made of a model, against its types; None when it does not tell."""
        return None

    def fused(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that the engine executes as one when none is kept; empty when it does not tell."""
        return ()

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading of a set of kept nodes; one build and one run per sample unless it is known."""
        wanted = frozenset(kept)
        if wanted not in self.read_sets:
            whole = sorted(self.complete(wanted))
            what = f"the model with {len(wanted)} nodes in fp32"
            self.read_sets[wanted] = self.bench.read(
                self._engine(wanted), lambda: self._built(whole), what, self._precision.value, whole
            )
        return self.read_sets[wanted]

    def _engine(self, kept: frozenset[str]) -> EngineSpec:
        return self.spec

    def _built(self, whole: Sequence[str]) -> Model:
        return self.model(whole)


class TypedCandidates(Candidates):
    """Typed models of one original.

    Args:
        model: The original.
        precision: The lower format.
        islands: Completes sets of kept nodes.
        specs: Types of the values of the original.
        bench: Where candidates run.
    """

    def __init__(
        self,
        model: Model,
        precision: Precision,
        islands: Islands,
        *,
        specs: Mapping[str, ValueSpec],
        bench: EngineSetup,
    ) -> None:
        super().__init__(precision, bench=bench, spec=deployed(bench.spec))
        self._model = model
        self._islands = islands
        self._specs = specs
        self._emulated = bench.spec.name == "emulate"
        self._asked_for_regions = False

    def model(self, kept: Collection[str]) -> Model:
        """See `Candidates`."""
        return convert(self._model, self._precision, specs=self._specs, kept_nodes=sorted(self.complete(kept)))

    def complete(self, kept: Collection[str]) -> frozenset[str]:
        """See `Candidates`."""
        return frozenset(kept) | self._islands.carriers(kept)

    def as_asked(self) -> GoalReading:
        """Return the reading of the original on the engine as the user named it."""
        return self.bench.read(self.bench.spec, lambda: self._model, "the model as it is", "as asked")

    @property
    def builds(self) -> int:
        """See `Candidates`; the original is one more, and so is asking for its regions."""
        return 1 + len(self.read_sets) + self._asked_for_regions

    def fused(self) -> tuple[tuple[str, ...], ...]:
        """See `Candidates`."""
        if self._emulated:
            return ()
        self._asked_for_regions = True
        return self.bench.fused(self.bench.spec, self._model)

    def _built(self, whole: Sequence[str]) -> Model:
        if self._emulated:
            return round_results(self._model, self._precision, specs=self._specs, kept=whole)
        return convert(self._model, self._precision, specs=self._specs, kept_nodes=whole)

    def audited(self, kept: Collection[str]) -> PlanAudit | None:
        """See `Candidates`."""
        return None if self._emulated else self.bench.audited(self.spec, self.model(kept))


def deployed(spec: EngineSpec) -> EngineSpec:
    """Return the engine told to follow the types of the model.

    The engine ``emulate`` has no kernels of its own: the model that it would make is run without optimizations instead.
    """
    if spec.name == "emulate":
        return PLAIN
    options = {key: value for key, value in spec.options.items() if key not in ("precision", "kept")}
    if spec.name in AS_TYPED:
        options["precision"] = AS_TYPED[spec.name]
    return spec.with_options(options)

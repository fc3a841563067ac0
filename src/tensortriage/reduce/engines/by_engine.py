"""Reduces a model with engines as judge: golden values from the reference, pieces on the target, a case to hand on."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from tensortriage.cluster.ray_cluster import Cluster, Shared
from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.cluster_place import ClusterPlace
from tensortriage.reduce.engines.engine_oracle import EngineOracle
from tensortriage.reduce.engines.portable_oracle import parts_of, put_together
from tensortriage.reduce.engines.sample import GoldenSample, agreed, recorded
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.oracle_source import Effort, ReductionFinish
from tensortriage.reduce.pieces.node_bodies import Opening, turns
from tensortriage.reduce.pieces.pieces import Ends, Pieces
from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.reduce.repro.repro_case import Repro, ReproOracle, ReproSample, failure_of
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.simplify.steps import shrink
from tensortriage.reduce.simplify.trials import EngineTrials
from tensortriage.reduce.thread_executor import Threads
from tensortriage.runs.case import versions
from tensortriage.runs.check_cache import digest
from tensortriage.runs.golden_source import GoldenSource
from tensortriage.search.execution.executors import Executor
from tensortriage.search.execution.executors import OracleQuestion as Asked
from tensortriage.search.execution.process_pool import ProcessPool
from tensortriage.search.search_result import SearchResult
from tensortriage.search.statistics.repeats import Rate, Repeats
from tensortriage.search.statistics.retry_count import attempts_for

FRESH_SECONDS = 600.0
"""Longest verification in a fresh process."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnginePremises:
    """What a reduction asks engines with; an investigation of the model has all of it.

    Attributes:
        source: The model, its samples and their golden values.
        tolerance: The user's own; None to judge by the noise floor.
        judge: Makes what says which outputs of the whole model fail.
        suspicions: Measures, on one sample, the local error of nodes over what is allowed, where it is more.
        inside: Makes the premises of another model on other samples, with the same engines and without a tolerance.
    """

    source: GoldenSource
    tolerance: Tolerance | None
    judge: Callable[[], OutputJudge]
    suspicions: Callable[[Feed], Mapping[str, float]]
    inside: Callable[[Model, Sequence[Feed]], "EnginePremises"]


class EngineAsking:
    """Asks the target; see `tensortriage.reduce.oracle_source.Asking`.

    Args:
        premises: Model, samples, engines, limits, and who judges.
        ends: Which ends of the model may be cut off.
        shrink_seconds: Time for making smaller what is left after the nodes; 0 for not at all.
        repeats: How often things are asked.
        say: Told what takes a while, before it begins.
        jobs: Checks at once.
        wanted: How the whole has to fail; None for any way.
        cluster: Where checks run, if not on this machine; ``jobs`` then counts for nothing.
    """

    word = "engines"

    def __init__(
        self,
        premises: EnginePremises,
        *,
        ends: Ends,
        shrink_seconds: float,
        repeats: Repeats,
        say: Callable[[str], None],
        jobs: int = 1,
        wanted: FailureKind | None = None,
        cluster: ClusterPlace | None = None,
    ) -> None:
        self._premises = premises
        self._cluster = cluster
        self._source = premises.source
        self._jobs = jobs
        self._ends = ends
        self._say = say
        self._shrink_seconds = shrink_seconds
        self._attempts = 1
        self.cache = self._source.case.checks
        self.repeats = repeats
        question, model = self._source.question, self._source.model
        self._samples = tuple(GoldenSample(feed, self._source.golden(feed)) for feed in question.feeds)
        declared = value_specs(model)
        symbols = frozenset(size for spec in model.inputs for size in spec.shape or () if isinstance(size, str))
        self._specs = {**declared, **recorded(self._samples, declared, symbols)}
        frozen = agreed(self._samples, frozenset(model.graph.shape_like))
        self.pieces = Pieces(model, specs=self._specs, ends=ends, frozen=frozen)
        self.identity = digest(
            [self._source.key(question.target, model, feed) for feed in question.feeds],
            self._source.key(question.reference, model, None),
            repr(premises.tolerance),
            dataclasses.asdict(question.limits),
            ends.value,
            wanted,
        )
        self._judge = premises.judge()
        self.oracle = EngineOracle(
            pieces=self.pieces,
            samples=self._samples,
            specs=self._specs,
            reference=question.reference,
            target=question.target,
            judge=self._judge,
            workspace=self._source.workspace,
            limits=question.limits,
            notes=self.cache,
            identity=self.identity,
            wanted=wanted,
        )

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor[str] | None]:
        """Give threads for several checks at once; engines that may crash have processes of their own."""
        if self._cluster is not None:
            checks = self._cluster.checks(self.oracle, self._source.question.target, self._send)
            with contextlib.closing(checks):
                yield checks
            return
        if self._jobs == 1:
            yield None
            return
        threads = Threads(self.oracle, jobs=self._jobs)
        try:
            yield threads
        finally:
            threads.close()

    def _send(self, cluster: Cluster) -> Shared | None:
        """Send what checks need, once it is known how the whole fails."""
        if self.oracle.expected is None:
            return None
        return cluster.share(put_together, parts_of(self.oracle, self._judge, self.oracle.expected))

    def suspicion(self) -> Mapping[str, float]:
        """Return local error over allowance, for the sample on which the whole fails worst."""
        failure = self.failure()
        if failure is None or not failure.kind.numeric:
            return {}
        feeds = {feed.name: feed for feed in self._source.question.feeds}
        return self._premises.suspicions(feeds[failure.sample])

    def settle(self, premise: SearchResult[str]) -> str:
        """Return the identity, which the premise does not change."""
        return self.identity

    def failure(self) -> Failure | None:
        """Return how the whole fails."""
        return self.oracle.expected

    def finish(self, nodes: tuple[str, ...], result: Path | None, rate: Rate, effort: Effort) -> ReductionFinish:
        """Shrink what is left, write the result and its repro pack, and run that in a fresh process."""
        self._attempts = attempts_for(rate, self.repeats)
        question = self._source.question
        repro = self._repro(nodes)
        if result is not None:
            repro.model.save(result)  # Ctrl-C may come any time
        shrunk: tuple[Shrunk, ...] = ()
        if effort is Effort.WRITE:
            return ReductionFinish()
        local = self._local(repro)
        if local is None:
            return ReductionFinish(verified=False)
        if self._shrink_seconds > 0.0:
            trials = EngineTrials(
                reference=question.reference,
                target=question.target,
                workspace=self._source.workspace,
                limits=question.limits,
                error_of=error_of,
                local=local,
                seconds=self._shrink_seconds,
                attempts=self._attempts,
            )
            repro, shrunk = shrink(repro, trials, say=self._say)
            local = self._local(repro, local) or local
        return self._written(repro, local, shrunk, result)

    def taken(self, condition: str) -> bool | None:
        """Return what a condition was on the sample that fails worst."""
        return bool(self._recorded(condition).reshape(-1)[0])

    def inside(self, opening: Opening) -> Self:
        """Return the same way of asking about an opened piece, fed with golden values of the sample that fails worst.

        Raises:
            TriageError: When the reference cannot run what is inside.
        """
        question = self._source.question
        feeds = tuple(self._feeds(opening, next(feed.origin for feed in question.feeds)))
        failure = self.failure()
        return type(self)(
            self._premises.inside(opening.model, feeds),
            ends=self._ends,
            shrink_seconds=self._shrink_seconds,
            repeats=self.repeats,
            say=self._say,
            jobs=self._jobs,
            wanted=failure.kind if failure else None,
            cluster=self._cluster,
        )

    def _feeds(self, opening: Opening, origin: Origin) -> Iterator[Feed]:
        if opening.lifted is None:
            yield Feed("inside", {spec.name: self._recorded(spec.name) for spec in opening.model.inputs}, origin)
            return
        values = {name: self._recorded(name) for name in opening.needs}
        with self._source.new_runner(self._source.question.reference, opening.model) as runner:
            for turn, tensors in enumerate(turns(opening, values, runner.run)):
                yield Feed(f"turn {turn}", tensors, origin)

    def _recorded(self, value: str) -> np.ndarray:
        """Return a constant, or what a value was on the sample that fails worst."""
        graph = self.pieces.model.graph
        if value in graph.constants:
            return graph.weight(value)
        failure = self.failure()
        worst = next((s for s in self._samples if failure is not None and s.name == failure.sample), self._samples[0])
        return worst[value]

    def close(self) -> None:
        """Release every session and temporary file."""
        self._source.close()

    def _repro(self, nodes: tuple[str, ...]) -> Repro:
        piece = self.pieces.cut(nodes)
        samples = [
            ReproSample(
                {spec.name: sample[spec.name] for spec in piece.inputs},
                {spec.name: sample[spec.name] for spec in piece.outputs if spec.name in sample},
            )
            for sample in self._samples
        ]
        return Repro(piece, tuple(samples))

    def _local(self, repro: Repro, before: Failure | None = None) -> Failure | None:
        """Return how a case fails by itself; asked several times when the fault comes and goes."""
        question = self._source.question
        for _ in range(self._attempts):
            found = failure_of(
                repro,
                question.target,
                workspace=self._source.workspace,
                limits=question.limits,
                error_of=error_of,
                signal=before.signal if before else 0.0,
            )
            if found is not None:
                return found
        return None

    def _written(
        self, repro: Repro, local: Failure, shrunk: tuple[Shrunk, ...], result: Path | None
    ) -> ReductionFinish:
        if result is None:
            return ReductionFinish(local, shrunk=shrunk)
        repro.model.save(result)
        folder = result.with_name(f"{result.stem}_repro")
        target = absolute(self._source.question.target)
        write_pack(folder, repro, target=target, versions=versions(), local=local)
        self._say("running the result in a fresh process")
        limits = self._source.question.limits
        return ReductionFinish(local, fails_again(folder, target, local, limits, self._attempts), shrunk, folder)


def fails_again(folder: Path, target: str, local: Failure, limits: Limits, attempts: int = 1) -> bool:
    """Say whether a written repro fails as it did, in a fresh process; any of some attempts will do."""
    return not otherwise(folder, target, local, limits, attempts)


def otherwise(folder: Path, target: str, local: Failure, limits: Limits, attempts: int = 1) -> str:
    """Run a written repro in a fresh process, and say what it does but fail as it did; empty where it fails so.

    Args:
        folder: Holds the repro.
        target: Spec of the engine.
        local: How it should fail.
        limits: Of the engine.
        attempts: Most runs; any that fails as it did will do.
    """
    oracle = ReproOracle(folder.resolve(), target, limits, local, error_of)
    told = ""
    with ProcessPool(oracle, workers=1, timeout_seconds=FRESH_SECONDS) as pool:
        for attempt in range(attempts):
            pool.submit(Asked(("repro",), attempt))
            ((_, answer),) = pool.wait()
            if answer.verdict is None:
                told = f"it could not be run: {answer.error}"
            elif answer.verdict.same:
                return ""
            else:
                told = answer.verdict.detail or "it passes"
    return told


def absolute(spec: EngineSpec) -> str:
    """Return a spec whose script is found from anywhere."""
    if "file" not in spec.options:
        return str(spec)
    return str(spec.with_options({**spec.options, "file": str(Path(spec.options["file"]).resolve())}))

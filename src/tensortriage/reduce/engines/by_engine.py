"""Reduces a model with engines as judge: golden values from the reference, pieces on the target, a case for others."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from tensortriage.compare.judgement.output_judge import OutputJudge
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.reduce.engines.engine_oracle import EngineOracle
from tensortriage.reduce.engines.sample import GoldenSample, golden_pieces, repro_of
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.reduce.pieces.node_bodies import Opening, inner_feeds
from tensortriage.reduce.reduction_result import Effort, ReductionFinish, Shrunk
from tensortriage.reduce.repro.repro_case import Repro, alike, failure_of
from tensortriage.reduce.repro.repro_pack import write_pack
from tensortriage.reduce.repro.repro_texts import TextFacts
from tensortriage.reduce.request import Ends
from tensortriage.reduce.simplify.steps import shrink
from tensortriage.reduce.simplify.trials import Trials
from tensortriage.runs.case import versions
from tensortriage.runs.check_cache import digest
from tensortriage.runs.commands.threads import Threads
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.search.execution.executors import Executor
from tensortriage.search.statistics.repeats import Rate, Repeats, attempts_for, attempts_to_verify


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnginePremises:
    """Facts of the model that a reduction on engines starts from; an investigation has all of them.

    Attributes:
        source: The model, its samples and their golden values.
        tolerance: The user's own; None to judge by the noise floor.
        judge: Makes the judge of the whole model's outputs.
        suspicions: Measures, on one sample, the ratio of local error to limit of the nodes that exceed theirs.
        inside: Makes the premises of another model on other samples, with the same engines and without a tolerance.
    """

    source: GoldenValues
    tolerance: Tolerance | None
    judge: Callable[[], OutputJudge]
    suspicions: Callable[[Feed], Mapping[str, float]]
    inside: Callable[[Model, Sequence[Feed]], "EnginePremises"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EngineRequest:
    """The settings for running pieces on engines.

    Attributes:
        ends: Which ends of the model may be cut off.
        shrink_seconds: Time for making the rest smaller after the nodes; 0 for none.
        repeats: Number of runs per candidate.
        say: Receives the name of a slow step before it begins.
        jobs: Checks at once.
        wanted: How the whole has to fail; None for any way.
    """

    ends: Ends
    shrink_seconds: float
    repeats: Repeats
    say: Callable[[str], None]
    jobs: int = 1
    wanted: FailureKind | None = None


class EngineAsking:
    """Asks the target; see `tensortriage.reduce.inside_subgraphs.Asking`.

    Args:
        premises: Model, samples, engines, limits, and the judge.
        request: Settings of the search.
    """

    word = "engines"

    def __init__(self, premises: EnginePremises, request: EngineRequest) -> None:
        self._premises = premises
        self._request = request
        self._source = premises.source
        self._attempts = self._verifying = 1
        self.cache = self._source.lab.search_cache
        self.repeats = request.repeats
        question, model = self._source.question, self._source.question.model
        self._samples = tuple(GoldenSample(feed, self._source.of(feed)) for feed in question.feeds)
        self.pieces = golden_pieces(model, self._samples, request.ends)
        self._identity = digest(
            [self._source.lab.key(question.target, model, feed) for feed in question.feeds],
            self._source.lab.key(question.reference, model, None),
            repr(premises.tolerance),
            dataclasses.asdict(question.limits),
            request.ends.value,
            request.wanted,
        )
        self.oracle = EngineOracle(
            pieces=self.pieces,
            samples=self._samples,
            reference=question.reference,
            target=question.target,
            judge=premises.judge(),
            lab=self._source.lab,
            identity=self._identity,
            wanted=request.wanted,
        )

    @contextlib.contextmanager
    def executor(self) -> Iterator[Executor[str] | None]:
        """Yield threads for several checks at once; engines that may crash have processes of their own."""
        if self._request.jobs == 1:
            yield None
            return
        threads = Threads(self.oracle, jobs=self._request.jobs)
        try:
            yield threads
        finally:
            threads.close()

    def suspicion(self) -> Mapping[str, float]:
        """Return local error over allowance, for the sample on which the whole fails worst."""
        failure = self.failure()
        if failure is None or not failure.kind.numeric:
            return {}
        feeds = {feed.name: feed for feed in self._source.question.feeds}
        return self._premises.suspicions(feeds[failure.sample])

    def identity(self) -> str:
        """Return the digest of all that answers depend on besides the piece."""
        return self._identity

    def failure(self) -> Failure | None:
        """Return how the whole fails."""
        return self.oracle.expected

    def finish(self, nodes: tuple[str, ...], result: Path | None, rate: Rate, effort: Effort) -> ReductionFinish:
        """Shrink the result, write it with its repro pack, and run that in a fresh process."""
        self._attempts, self._verifying = attempts_for(rate, self.repeats), attempts_to_verify(rate, self.repeats)
        question = self._source.question
        repro = repro_of(self.pieces, nodes, self._samples)
        if result is not None:
            repro.model.save(result)  # Ctrl-C may come any time
        shrunk: tuple[Shrunk, ...] = ()
        if effort is Effort.WRITE:
            return ReductionFinish()
        local = self._local(repro)
        if local is None:
            return ReductionFinish(verified=False)
        if self._request.shrink_seconds > 0.0:
            trials = Trials(
                reference=question.reference,
                lab=self._source.lab,
                fails=functools.partial(self._fails_as, local),
                local=local,
                seconds=self._request.shrink_seconds,
                attempts=self._attempts,
            )
            repro, shrunk = shrink(repro, trials, say=self._request.say)
            local = self._local(repro, local) or local
        return self._written(repro, local, shrunk, result)

    def taken(self, condition: str) -> bool | None:
        """Return the value of a condition on the sample that fails worst."""
        return bool(self._recorded(condition).reshape(-1)[0])

    def inside(self, opening: Opening, repeats: Repeats) -> Self:
        """Return the same way of asking about an opened piece, fed with golden values of the sample that fails worst.

        Raises:
            TriageError: When the reference cannot run the inside.
        """
        question = self._source.question
        feeds = tuple(self._feeds(opening, next(feed.origin for feed in question.feeds)))
        failure = self.failure()
        request = dataclasses.replace(self._request, repeats=repeats, wanted=failure.kind if failure else None)
        return type(self)(self._premises.inside(opening.model, feeds), request)

    def _feeds(self, opening: Opening, origin: Origin) -> Iterator[Feed]:
        with self._source.lab.session(self._source.question.reference, opening.model, sequence=True) as run:
            for name, tensors in inner_feeds(opening, self._recorded, run):
                yield Feed(name, tensors, origin)

    def _recorded(self, value: str) -> np.ndarray:
        """Return a constant, or a value on the sample that fails worst."""
        graph = self.pieces.model.graph
        if value in graph.constants:
            return graph.weight(value)
        failure = self.failure()
        worst = next((s for s in self._samples if failure is not None and s.name == failure.sample), self._samples[0])
        return worst[value]

    def close(self) -> None:
        """Release every session and temporary file."""
        self._source.lab.close()

    def _local(self, repro: Repro, before: Failure | None = None) -> Failure | None:
        """Return how a case fails in isolation; run several times when the fault is intermittent."""
        for _ in range(self._verifying):
            if (found := self._once(repro, before)) is not None:
                return found
        return None

    def _once(self, repro: Repro, before: Failure | None) -> Failure | None:
        with self._source.lab.session(self._source.question.target, repro.model, sequence=True) as run:
            return failure_of(repro, run, signal=before.signal if before else 0.0)

    def _fails_as(self, local: Failure, repro: Repro) -> bool:
        return alike(self._once(repro, local), local)

    def _written(
        self, repro: Repro, local: Failure, shrunk: tuple[Shrunk, ...], result: Path | None
    ) -> ReductionFinish:
        if result is None:
            return ReductionFinish(local, shrunk=shrunk)
        repro.model.save(result)
        folder, question = result.with_name(f"{result.stem}_repro"), self._source.question
        self._request.say("writing the repro and running it in a fresh process")
        trial = write_pack(
            folder,
            repro,
            TextFacts(question.target, versions(), local),
            limits=question.limits,
            attempts=self._verifying,
        )
        return ReductionFinish(local, not trial.otherwise, shrunk, folder, otherwise=trial.otherwise)

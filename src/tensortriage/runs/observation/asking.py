"""Questions to an engine: the session of an experiment is opened, runs, and its observation is read off."""

import dataclasses
import functools

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import is_suspect_ratio
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.base import Session
from tensortriage.engines.session_capabilities import (
    AnswersQuestions,
    BoundsRuns,
    FedOtherwise,
    KnowsSomeValues,
    TellsTactics,
)
from tensortriage.runs.observation.answers import AnswerStore
from tensortriage.runs.observation.capture import capture
from tensortriage.runs.observation.experiment import (
    BuiltSession,
    Experiment,
    Measurement,
    ObservedAnswer,
    ObservedBuild,
    ObservedFigures,
    ObservedOutputs,
    ObservedPlan,
    ObservedStreams,
    ObservedValues,
)
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.runs.observation.runner import Runner, run_beside
from tensortriage.runs.observation.sessions import Sessions
from tensortriage.runs.tally import Tally
from tensortriage.values.store import MemoryStore
from tensortriage_worker.feeding import LAYOUTS


class Asking:
    """Asks engines; it stores only tensors that are too many to hold in memory.

    Args:
        sessions: The open sessions.
        tally: Counts builds and runs.
        answers: The store for such tensors; None to hold them in memory.
        batch_bytes: Largest amount of captured tensors held at once; None for any.
    """

    def __init__(
        self, sessions: Sessions, tally: Tally, *, answers: AnswerStore | None, batch_bytes: int | None
    ) -> None:
        self.sessions, self.tally = sessions, tally
        self._answers = answers
        self._captured = functools.partial(capture, sessions=sessions, tally=tally, batch_bytes=batch_bytes)

    def ask(self, experiment: Experiment, key: str | None) -> Measurement:
        """Return the answer of an engine; ``key`` names tensors that are stored as they arrive.

        Raises:
            EngineError: When the engine refuses or fails.
        """
        if isinstance(experiment.observed, ObservedValues):
            return self._values(experiment, experiment.observed, key)
        if isinstance(experiment.observed, ObservedFigures):
            return self._figures(experiment, experiment.observed)
        with self.sessions.open(experiment) as runner:
            match experiment.observed:
                case ObservedOutputs() as outputs:
                    return self._outputs(experiment, outputs, runner)
                case ObservedBuild():
                    return Measurement(built=_built(runner.build()))
                case ObservedPlan():
                    session = runner.build()
                    choices = tuple(session.tactics()) if isinstance(session, TellsTactics) else ()
                    return Measurement(plan=runner.plan(), choices=choices)
                case ObservedStreams() as streams:
                    with self.sessions.open(dataclasses.replace(experiment, sequence=0)) as first:
                        found = run_beside(first, runner, streams.feeds, runs=streams.runs, apart=streams.apart)
                    return Measurement(streams=found)
                case ObservedAnswer() as asked:
                    session, fed = runner.build(), experiment.tensors if experiment.feed else None
                    assert isinstance(session, AnswersQuestions), "the caller knows the engine"
                    self.tally.checks += 1
                    answer, arrays = session.query(asked.question, fed, **asked.arguments)
                    return Measurement(MemoryStore(arrays), told=answer)

    def _outputs(self, experiment: Experiment, wanted: ObservedOutputs, runner: Runner) -> Measurement:
        before, built = self.tally.run_seconds, self.tally.build_seconds
        if experiment.layout:
            outputs = runner.run_laid_out(experiment.tensors, experiment.layout)
        else:
            outputs = runner.run(experiment.tensors, known_only=wanted.known_only)
        return Measurement(
            MemoryStore(outputs if wanted.lent else {name: np.array(array) for name, array in outputs.items()}),
            seconds=self.tally.run_seconds - before,
            build_seconds=self.tally.build_seconds - built,
            builds_made=runner.builds_made(),
        )

    def _values(self, experiment: Experiment, wanted: ObservedValues, key: str | None) -> Measurement:
        arrays, before, runs = self._captured(experiment), self.tally.run_seconds, self.tally.checks
        if wanted.streamed:
            return Measurement(stream=arrays)
        if self._answers is None or key is None:
            return Measurement(MemoryStore({name: np.array(array) for name, array in arrays}))
        return self._answers.streamed(
            key, arrays, lambda: (self.tally.run_seconds - before) / max(self.tally.checks - runs, 1)
        )

    def _figures(self, experiment: Experiment, wanted: ObservedFigures) -> Measurement:
        hidden: list[Unseen] = []
        arrays = self._captured(experiment, unseen=hidden.append if wanted.partly else None)
        kept: dict[str, np.ndarray] = {}

        def keep(name: str, array: np.ndarray, figure: Metrics) -> None:
            ratio = ratio_of(error_of(figure), (wanted.floors or {}).get(name)) or 0.0
            if is_suspect_ratio(ratio) or (wanted.kept_too and ratio > 0.0):
                kept[name] = np.array(array)

        figures = compare_all(arrays, wanted.against, keep if wanted.floors is not None else None, wanted.tolerances)
        return Measurement(MemoryStore(kept), figures, functools.reduce(Unseen.joined, hidden, Unseen()))


def _built(session: Session) -> BuiltSession:
    outputs, knows_some = tuple(session.outputs), isinstance(session, KnowsSomeValues)
    if isinstance(session, FedOtherwise):
        return BuiltSession(outputs, session.layouts, session.own_options, knows_some)
    return BuiltSession(outputs, () if isinstance(session, BoundsRuns) else LAYOUTS, knows_some=knows_some)

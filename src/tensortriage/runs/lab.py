"""The one way to ask an engine: an experiment goes in, its answer comes out, from the case where it is known.

Whatever measures, searches or judges goes through a `Lab`. It knows nothing of verdicts: only which engine was asked
what, on which model and feed, what it cost, and where the answers lie. Answers, refusals included, are kept by content
before the next question is asked, so that a command that was killed goes on where it stopped, and one that is finished
asks nothing when it is given again.
"""

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.judgement.within import is_suspect_ratio
from tensortriage.compare.measured import compare_all
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.base import Limits, Plan, Session
from tensortriage.engines.capabilities import AnswersQuestions, TellsTactics
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.budget import Budget
from tensortriage.runs.case import Case
from tensortriage.runs.observation.answers import LASTING, AnswerStore
from tensortriage.runs.observation.capture import capture
from tensortriage.runs.observation.derived import ContentKeys, Derived
from tensortriage.runs.observation.experiment import (
    Experiment,
    Measurement,
    ObservedAnswer,
    ObservedFigures,
    ObservedOutputs,
    ObservedPlan,
    ObservedValues,
)
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.runs.observation.sessions import Sessions
from tensortriage.runs.observation.streams import Streams
from tensortriage.runs.runner import Runner, Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

T = TypeVar("T")
Ask = Callable[..., Mapping[str, np.ndarray]]
"""What a session gives: `Lab.outputs` of its model, which takes the feed and the rest."""

Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""Runs a model on some tensors."""

FLOAT64 = EngineSpec("float64")
"""The model in float64 throughout, whatever types it declares."""


class Lab:
    """Engines, and what they have answered in one case; a context manager.

    Args:
        case: Where answers are kept; None to keep none.
        limits: Time and memory limits of isolated engines.
        budget: Wall time that may be spent.
        batch_bytes: Largest amount of captured tensors held at once; None for any.
        progress: Told what takes a while, before it begins.
        in_place: As of `Runner`.
    """

    def __init__(
        self,
        case: Case | None = None,
        *,
        limits: Limits | None = None,
        budget: Budget | None = None,
        batch_bytes: int | None = 1 << 30,
        progress: Callable[[str], None] | None = None,
        in_place: bool = False,
    ) -> None:
        self._case = case
        self.workspace = Workspace(case.temporary, kept=case.engines) if case else Workspace()
        self.tally = Tally()
        self.budget = budget or Budget()
        self.limits = limits or Limits()
        self._batch_bytes = batch_bytes
        self.progress = progress or (lambda _: None)
        self._in_place = in_place
        self._answers = AnswerStore(case) if case else None
        self._open_here = contextlib.ExitStack()
        self._sessions = Sessions(self._new_runner, by_content=case is not None)
        self._keys = ContentKeys(case)
        self._streams = Streams(self._new_runner)

    @property
    def case(self) -> Case:
        """Where answers are kept; only who gave one asks for it."""
        assert self._case is not None, "a lab without a case keeps nothing"
        return self._case

    @functools.cached_property
    def remembering(self) -> "Lab":
        """This lab, or a companion with a temporary case: judging needs a cache."""
        if self._case is not None:
            return self
        case = self._open_here.enter_context(Case(self.workspace.folder / "case"))
        return self._open_here.enter_context(Lab(case, limits=self.limits, progress=self.progress))

    # -- the one way to ask --------------------------------------------------------------------------------------------

    def answer(self, experiment: Experiment) -> Measurement:
        """Return the answer of an experiment: the one that is known, or else the engine's, which is kept.

        Raises:
            EngineError: When the engine refuses or fails; the same failure is raised when it is asked again.
            EngineMissing: When it cannot be used here.
            BudgetSpent: When there is no time left to ask.
        """
        answers = self._answers if experiment.repetition is not None else None
        if answers is None:
            return self._ask(experiment, None)
        key = self.key_of(experiment)
        if (known := answers.known(key, self.limits)) is not None:
            return known
        limits = self.budget.within(self.limits)
        try:
            found = self._ask(experiment, key)
        except LASTING as error:
            if limits == self.limits:
                answers.failed(key, str(experiment.engine), error, self.limits)
            raise
        stored = isinstance(experiment.observed, ObservedOutputs | ObservedAnswer) and experiment.observed.stored
        return answers.keep(key, str(experiment.engine), found, stored=stored)

    def _ask(self, experiment: Experiment, key: str | None) -> Measurement:
        self.budget.check()
        if experiment.what:
            self.progress(experiment.what)
        match experiment.observed:
            case ObservedOutputs():
                return self._run(experiment)
            case ObservedPlan():
                with self._sessions.open(experiment) as runner:
                    session = runner.build()
                    choices = tuple(session.tactics()) if isinstance(session, TellsTactics) else ()
                    return Measurement(plan=runner.plan(), choices=choices)
            case ObservedAnswer() as wanted:
                with self._sessions.open(experiment) as runner:
                    session, fed = runner.build(), experiment.tensors if experiment.feed else None
                    assert isinstance(session, AnswersQuestions), "who asks knows the engine"
                    self.tally.checks += 1
                    told, arrays = session.query(wanted.question, fed, **wanted.arguments)
                    return Measurement(MemoryStore(arrays), told=told)
            case ObservedValues() as wanted:
                return self._captured(experiment, wanted, key)
            case ObservedFigures() as wanted:
                return self._compared(experiment, wanted)

    def _run(self, experiment: Experiment) -> Measurement:
        with self._sessions.open(experiment) as runner:
            before, built = self.tally.run_seconds, self.tally.build_seconds
            outputs = {name: np.array(array) for name, array in runner.run(experiment.tensors).items()}  # its buffers
            return Measurement(
                MemoryStore(outputs),
                seconds=self.tally.run_seconds - before,
                build_seconds=self.tally.build_seconds - built,
                builds_made=runner.builds_made(),
            )

    def _captured(self, experiment: Experiment, wanted: ObservedValues, key: str | None) -> Measurement:
        arrays, before, runs = self._capture(experiment, wanted), self.tally.run_seconds, self.tally.checks
        if self._answers is None or key is None:
            return Measurement(MemoryStore({name: np.array(array) for name, array in arrays}))
        return self._answers.streamed(
            key, arrays, lambda: (self.tally.run_seconds - before) / max(self.tally.checks - runs, 1)
        )

    def _compared(self, experiment: Experiment, wanted: ObservedFigures) -> Measurement:
        hidden: list[Unseen] = []
        arrays = self._capture(experiment, wanted, unseen=hidden.append if wanted.partly else None)
        kept: dict[str, np.ndarray] = {}

        def keep(name: str, array: np.ndarray, figure: Metrics) -> None:
            ratio = ratio_of(error_of(figure), (wanted.floors or {}).get(name)) or 0.0
            if is_suspect_ratio(ratio) or (wanted.kept_too and ratio > 0.0):
                kept[name] = np.array(array)

        figures = compare_all(arrays, wanted.against, keep if wanted.floors is not None else None, wanted.tolerances)
        return Measurement(MemoryStore(kept), figures, functools.reduce(Unseen.joined, hidden, Unseen()))

    def _capture(
        self,
        experiment: Experiment,
        wanted: ObservedValues | ObservedFigures,
        unseen: Callable[[Unseen], None] | None = None,
    ) -> Iterator[tuple[str, np.ndarray]]:
        assert experiment.feed is not None
        specs = wanted.specs
        if specs is None:
            fed = experiment.tensors.items()
            specs = value_specs(experiment.model, {name: ValueSpec.of(name, array) for name, array in fed})
        return capture(
            experiment.engine, experiment.model, experiment.feed, wanted.names,
            workspace=self.workspace, specs=specs, limits=self.budget.within(self.limits), tally=self.tally,
            batch_bytes=self._batch_bytes, unseen=unseen, opened=lambda s: self._sessions.open(experiment.of(s)),
        )  # fmt: skip

    # -- what is asked most, in short ----------------------------------------------------------------------------------

    def outputs(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        *,
        injected: Mapping[str, np.ndarray] = MappingProxyType({}),
        build: int = 0,
        repetition: int | None = 0,
        what: str = "",
    ) -> Mapping[str, np.ndarray]:
        """Return the outputs of a model by name; see `Experiment` for the arguments and `answer` for errors."""
        experiment = Experiment(
            engine=engine, model=model, feed=feed, injected=injected, build=build, repetition=repetition, what=what
        )
        tensors = self.answer(experiment).tensors
        return {name: tensors[name] for name in tensors.names()}

    def values(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        specs: Mapping[str, ValueSpec] | None = None,
    ) -> TensorStore:
        """Return tensors of inner values and outputs of a model; none are asked for when no names are given."""
        if not names:
            return MemoryStore({})
        wanted, what = ObservedValues(tuple(names), specs), f"recording {len(names)} tensors on {engine}"
        return self.answer(Experiment(engine=engine, model=model, feed=feed, observed=wanted, what=what)).tensors

    def figures(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        against: TensorStore,
        what: str,
        build: int = 0,
        tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
        partly: bool = False,
        floors: Mapping[str, float] | None = None,
        kept_too: bool = False,
    ) -> Measurement:
        """Return how far values are from stored tensors; of those that are not among them nothing is said.

        See `ObservedFigures` for the arguments; ``what`` is being run, e.g. ``every layer on openvino``.
        """
        known = tuple(name for name in names if name in against)
        wanted = ObservedFigures(known, against, tolerances, partly, floors, kept_too)
        return self.answer(
            Experiment(engine=engine, model=model, feed=feed, observed=wanted, build=build, what=f"running {what}")
        )

    def plan(self, engine: EngineSpec, model: Model, *, build: int = 0) -> Plan | None:
        """Return what an engine really runs for a model; None when it does not tell."""
        return self.answer(Experiment(engine=engine, model=model, feed=None, observed=ObservedPlan(), build=build)).plan

    def told(
        self, engine: EngineSpec, model: Model, feed: Feed, question: str, **arguments: object
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Return what an engine answers to a question of its own, and arrays by name; see `ObservedAnswer`."""
        asked = ObservedAnswer(question, arguments)
        answer = self.answer(Experiment(engine=engine, model=model, feed=feed, observed=asked))
        return answer.told, {name: answer.tensors[name] for name in answer.tensors.names()}

    @contextlib.contextmanager
    def session(self, engine: EngineSpec, model: Model, *, build: int = 0) -> Iterator[Ask]:
        """Let experiments share one build, made when one needs it and let go at the end; gives its `outputs`."""
        with self._sessions.held(engine, model, build):
            yield functools.partial(self.outputs, engine, model, build=build)

    @contextlib.contextmanager
    def sequence(
        self, engine: EngineSpec, model: Model, *, built: bool = False, some: bool = False
    ) -> Iterator[Runner]:
        """Give what runs a model on one feed after the other in a session of its own; what runs leave there may matter.

        So none is answered from the case, and none is kept: who searches remembers what it concludes of a candidate.
        Several threads may do so at once. It is ``built`` now or by the first run, which gives arrays that are its own.
        """
        with self._new_runner(engine, model, some=some) as runner:
            if built:
                runner.build()
            yield runner

    def captured(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        specs: Mapping[str, ValueSpec] | None = None,
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield what `values` returns batch by batch, keeping none; for who looks at each once."""
        return self._capture(Experiment(engine=engine, model=model, feed=feed), ObservedValues(tuple(names), specs))

    def streamed(
        self, engine: EngineSpec, model: Model, feed: Feed, names: Sequence[str]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Return ``(value name, array)`` as an engine computes them, or all at the end where it cannot; none is kept.

        For evaluations that are compared with one another as they go; who asks keeps what comes of it (`remember`).
        """
        return self._streams.values(engine, model, feed, names)

    @property
    def earlier(self) -> int:
        """How many answers an earlier command had left in the case."""
        return self._answers.earlier if self._answers else 0

    # -- memory --------------------------------------------------------------------------------------------------------

    def key(self, engine: EngineSpec, model: Model, feed: Feed | None, *words: object) -> str:
        """Return the content key of a question to an engine."""
        return self._keys.digest(engine, model, feed, *words)

    def key_of(self, experiment: Experiment) -> str:
        """Return the content key of an experiment."""
        return self.key(experiment.engine, experiment.model, experiment.feed, *experiment.words)

    def derived(self, kind: type[T], question: str, *inputs: object) -> Derived[T]:
        """Return where the case keeps what is worked out of answers.

        Args:
            kind: Its type.
            question: What it answers.
            inputs: What it is worked out of, each known by its content: engines, models, feeds, and types of JSON.
        """
        return Derived(kind, self._keys.digest(question, *inputs), question, self._case.checks if self._case else None)

    def remember(
        self, kind: type[T], engine: EngineSpec, model: Model, feed: Feed | None, question: str, ask: Callable[[], T],
        *words: object,
    ) -> T:  # fmt: skip
        """Return what came of several runs that are not kept one by one, such as equal ones; see `derived`."""
        return self.derived(kind, question, engine, model, feed, *words).of(ask)

    # -- sessions ------------------------------------------------------------------------------------------------------

    def opened(self, engine: EngineSpec, model: Model) -> Session:
        """Return an open session, built now: where the moment counts, or of an engine with a language of its own."""
        return self._sessions.runner(engine, model).build()

    def runner(self, engine: EngineSpec, model: Model) -> Runner:
        """Return what runs the open session of a model, for who feeds it otherwise; nothing of that is kept."""
        self.budget.check()
        return self._sessions.runner(engine, model)

    def apart(self) -> "Lab":
        """Return a lab for a thread that streams evaluations: same case, own tally, no progress output."""
        other = copy.copy(self)
        other.tally, other.progress, other._streams = Tally(), lambda _: None, Streams(other._new_runner)
        return other

    def stop(self) -> None:
        """Let what another thread streams here end at its next value, by an EngineError or `BudgetSpent`."""
        self.budget = Budget(0.0)
        self._streams.stop()

    def drop(self, engine: EngineSpec, model: Model) -> None:
        """Let go of a session that is of no more use."""
        self._sessions.drop(self._sessions.place(engine, model))

    def close(self) -> None:
        """Release every session and temporary file."""
        self._sessions.close()
        self._open_here.close()
        self.workspace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_runner(self, engine: EngineSpec, model: Model, build: int = 0, *, some: bool = False) -> Runner:
        self.budget.check()
        return Runner(
            engine, model, workspace=self.workspace, limits=self.budget.within(self.limits), tally=self.tally,
            in_place=self._in_place, fresh=build > 0, some=some,
        )  # fmt: skip

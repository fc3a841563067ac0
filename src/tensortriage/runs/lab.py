"""The one way to ask an engine: an experiment goes in, its answer comes out, from the case if it is stored there.

All code that measures, searches or judges goes through a `Lab`. It knows nothing of verdicts: only questions to
engines, models, feeds, costs, and the place of the answers. Answers, refusals included, are stored by content before
the next question, so that a killed command resumes where it stopped, and a finished one asks nothing when it is run
again.
"""

import contextlib
import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from tensortriage.engines.base import Limits, Plan
from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.budget import Budget
from tensortriage.runs.case import Case
from tensortriage.runs.check_cache import CheckCache
from tensortriage.runs.observation.answers import LASTING, AnswerStore
from tensortriage.runs.observation.asking import Asking
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
from tensortriage.runs.observation.runner import Runner
from tensortriage.runs.observation.sessions import Sessions, in_sequence
from tensortriage.runs.tally import Tally
from tensortriage.runs.workspace import Workspace
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

T = TypeVar("T")
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""Runs a model on given tensors."""

FLOAT64 = EngineSpec("float64")
"""The model in float64 throughout, whatever types it declares."""


@frozen_dataclass
class OpenSession:
    """Asks an engine in one session; made by `Lab.session`.

    Attributes:
        answer: `Lab.answer`.
        experiment: Engine, model and session of every question.
    """

    answer: Callable[[Experiment], Measurement]
    experiment: Experiment

    def __call__(self, feed: Feed | Mapping[str, np.ndarray], **fields: Any) -> dict[str, np.ndarray]:
        """Return the outputs for a feed, by name; as `Lab.outputs`."""
        return self.of(feed if isinstance(feed, Feed) else Feed("", feed, Origin.RANDOM), **fields).arrays

    def of(self, feed: Feed | None = None, **fields: Any) -> Measurement:
        """Return the answer of an experiment with other fields; as `Lab.answer`."""
        return self.answer(dataclasses.replace(self.experiment, feed=feed, **fields))


class Lab:
    """Engines, and their answers in one case; a context manager.

    Args:
        case: Store of answers; None to store none.
        limits: Time and memory limits of isolated engines.
        budget: Wall time that may be spent.
        batch_bytes: Largest amount of captured tensors held at once; None for any.
        progress: Receives a line before each longer piece of work.
        in_place: As of `Workspace`.
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
        parent, kept = (case.temporary, case.engines) if case else (None, None)
        self.workspace = Workspace(parent, kept=kept, in_place=in_place)
        self.tally = Tally()
        self.budget = budget or Budget()
        self.limits = limits or Limits()
        self._batch_bytes = batch_bytes
        self.progress = progress or (lambda _: None)
        self._answers = AnswerStore(case) if case else None
        self._open_here = contextlib.ExitStack()
        self._keys = ContentKeys(case)
        self._asking = self._new_asking()

    @property
    def case(self) -> Case:
        """The store of answers; only for a lab that was given one."""
        assert self._case is not None, "a lab without a case stores nothing"
        return self._case

    @functools.cached_property
    def remembering(self) -> "Lab":
        """This lab, or a companion with a temporary case: judging needs a cache."""
        if self._case is not None:
            return self
        case = self._open_here.enter_context(Case(self.workspace.folder / "case", own=True))
        return self._open_here.enter_context(Lab(case, limits=self.limits, progress=self.progress))

    # -- the one way to ask --------------------------------------------------------------------------------------------

    def answer(self, experiment: Experiment) -> Measurement:
        """Return the answer of an experiment: the stored one, or else the engine's, which is then stored.

        Raises:
            EngineError: When the engine refuses or fails; the same failure is raised for the same experiment.
            EngineMissing: When it cannot be used here.
            BudgetSpent: When there is no time left to ask.
        """
        answers = self._answers if experiment.keepable else None
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
        return self._asking.ask(experiment, key)

    # -- common experiments, in short ----------------------------------------------------------------------------------

    def outputs(self, engine: EngineSpec, model: Model, feed: Feed, **fields: Any) -> dict[str, np.ndarray]:
        """Return the outputs of a model by name; ``fields`` are more of `Experiment`. Errors as `answer`."""
        return self.answer(Experiment(engine=engine, model=model, feed=feed, **fields)).arrays

    def values(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        specs: Mapping[str, ValueSpec] | None = None,
    ) -> TensorStore:
        """Return tensors of inner values and outputs of a model; without names the engine does not run."""
        if not names:
            return MemoryStore({})
        wanted, what = ObservedValues(tuple(names), specs), f"recording {len(names)} tensors on {engine}"
        return self.answer(Experiment(engine=engine, model=model, feed=feed, observed=wanted, what=what)).tensors

    def stream(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        specs: Mapping[str, ValueSpec] | None = None,
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the tensors of `values` one by one, storing none: each can be read once."""
        wanted = ObservedValues(tuple(names), specs, streamed=True)
        return self.answer(Experiment(engine=engine, model=model, feed=feed, observed=wanted)).stream

    def figures(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        wanted: ObservedFigures,
        *,
        what: str,
        build: int = 0,
    ) -> Measurement:
        """Return how far values are from stored tensors; values without a stored tensor are left out.

        ``what`` completes the progress line "running ...", e.g. ``every layer on openvino``.
        """
        wanted = dataclasses.replace(wanted, names=tuple(name for name in wanted.names if name in wanted.against))
        return self.answer(
            Experiment(engine=engine, model=model, feed=feed, observed=wanted, build=build, what=f"running {what}")
        )

    def plan(self, engine: EngineSpec, model: Model, *, build: int = 0) -> Plan | None:
        """Return the plan that an engine runs for a model; None when it does not report one."""
        return self.answer(Experiment(engine=engine, model=model, feed=None, observed=ObservedPlan(), build=build)).plan

    def query(
        self, engine: EngineSpec, model: Model, feed: Feed, question: str, **arguments: object
    ) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
        """Return the engine's answer to a question of its own protocol, and arrays by name; see `ObservedAnswer`."""
        observed = ObservedAnswer(question, arguments)
        answer = self.answer(Experiment(engine=engine, model=model, feed=feed, observed=observed))
        return answer.told, answer.arrays

    @contextlib.contextmanager
    def session(
        self, engine: EngineSpec, model: Model, *, build: int = 0, sequence: bool = False
    ) -> Iterator[OpenSession]:
        """Let experiments share one build, made when one needs it and released at the end; yields its session.

        Args:
            engine: The engine of every experiment.
            model: The model to build.
            build: Number of the build.
            sequence: Whether nothing else runs in that session, since state left by earlier runs may matter: a
                decoder's states, a race, a candidate of a search. Then nothing is answered from the case or stored; the
                caller stores its conclusion (`derived`). Several threads may do so at once.
        """
        experiment = Experiment(engine=engine, model=model, feed=None, build=build)
        experiment = in_sequence(experiment) if sequence else experiment
        with self._asking.sessions.held(experiment):
            yield OpenSession(self.answer, experiment)

    @property
    def earlier(self) -> int:
        """The number of answers that an earlier command left in the case."""
        return self._answers.earlier if self._answers else 0

    # -- memory --------------------------------------------------------------------------------------------------------

    def key(self, engine: EngineSpec, model: Model, feed: Feed | None, *words: object) -> str:
        """Return the content key of a question to an engine."""
        return self._keys.digest(engine, model, feed, *words)

    def key_of(self, experiment: Experiment) -> str:
        """Return the content key of an experiment."""
        return self.key(experiment.engine, experiment.model, experiment.feed, *experiment.words)

    def derived(self, kind: type[T], question: str, *inputs: object) -> Derived[T]:
        """Return the place in the case for a result derived from answers.

        Args:
            kind: Type of the result.
            question: The question that it answers.
            inputs: Its sources, each identified by its content: engines, models, feeds, and types of JSON.
        """
        return Derived(kind, self._keys.digest(question, *inputs), question, self._case.checks if self._case else None)

    @property
    def search_cache(self) -> CheckCache:
        """Where a search keeps its answers, under keys of its own."""
        return self.case.checks

    # -- sessions ------------------------------------------------------------------------------------------------------

    def apart(self) -> "Lab":
        """Return a lab for a thread that streams evaluations: same case, own sessions and tally, no progress output."""
        other = copy.copy(self)
        other.tally, other.progress = Tally(), lambda _: None
        other._asking = other._new_asking()
        return other

    def stop(self) -> None:
        """End the streams of other threads at their next value, by an EngineError or `BudgetSpent`."""
        self.budget = Budget(0.0)
        self._asking.sessions.close()

    def drop(self, engine: EngineSpec, model: Model) -> None:
        """Release a session that is no longer needed."""
        self._asking.sessions.drop(Experiment(engine=engine, model=model, feed=None))

    def close(self) -> None:
        """Release every session and temporary file."""
        self._asking.sessions.close()
        self._open_here.close()
        self.workspace.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_asking(self) -> Asking:
        sessions = Sessions(self._new_runner, by_content=self._case is not None)
        return Asking(sessions, self.tally, answers=self._answers, batch_bytes=self._batch_bytes)

    def _new_runner(self, engine: EngineSpec, model: Model, build: int) -> Runner:
        self.budget.check()
        return Runner(
            engine, model, workspace=self.workspace, limits=self.budget.within(self.limits), tally=self.tally,
            fresh=build > 0,
        )  # fmt: skip

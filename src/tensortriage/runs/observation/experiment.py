"""One question to an engine, as data: what is built, what it is fed with, and what is observed of it.

Whatever measures, searches or judges describes what it wants to know as an `Experiment` and has the lab answer it
(`tensortriage.runs.lab.Lab.answer`). An experiment is known by its content, never by who asks: the same one asked
again, by another rung or in a resumed case, is answered from the case. An edit of a model (marked outputs, a piece cut
out, ops each fed apart) is part of the model; what is overridden in a single run is not, so that runs share one build.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.measured import Measured
from tensortriage.engines.base import Choice, Plan
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, feed_digest
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX, USE_PREFIX
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

NOTHING: TensorStore = MemoryStore({})


class _Observation:
    """Something to look at."""

    __slots__ = ()

    @property
    def words(self) -> tuple[object, ...]:
        """What tells this observation from others, the content that it is taken against included."""
        return (type(self).__name__,)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedOutputs(_Observation):
    """Observe the model's own outputs, nothing marked.

    Attributes:
        stored: Whether they are kept however large they are, so that none has to be held.
        lent: Whether they are handed over as the engine holds them, neither copied nor kept; they are good until the
            session runs again.
        known_only: Whether outputs are left out that the session does not know
            (`tensortriage.engines.capabilities.KnowsSomeValues`), instead of the run failing.
    """

    stored: bool = False
    lent: bool = False
    known_only: bool = False

    @property
    def words(self) -> tuple[object, ...]:
        """What tells this observation from others."""
        return ("outputs", self.known_only)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedValues(_Observation):
    """Observe tensors of some values, marked as outputs or shown by the engine itself.

    Attributes:
        names: The values, in topological order.
        specs: Their dtypes and shapes, as far as the caller knows better than the model tells; sizes the batches, and
            is no part of the question.
        streamed: Whether they are read one at a time as they come (`Measurement.stream`), and neither held nor kept: in
            the order in which an engine computes them that `tensortriage.engines.capabilities.StreamsResults`, else
            batch by batch.
    """

    names: tuple[str, ...]
    specs: Mapping[str, ValueSpec] | None = None
    streamed: bool = False

    @property
    def words(self) -> tuple[object, ...]:
        """What tells this observation from others."""
        return ("values", list(self.names))


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedFigures(_Observation):
    """Observe how far some values are from stored tensors; the tensors are compared as they come, and not kept.

    Attributes:
        names: The values, in topological order.
        against: What they are compared with.
        tolerances: The user's tolerance by the name of a value that it judges.
        partly: Whether values that the engine refuses to show are left out, instead of nothing being measured.
        floors: The tensors of those values are kept that are farther off than a healthy engine's, by these relative
            floors; None to keep none.
        kept_too: Whether those are kept as well that differ at all; for values that are small together.
    """

    names: tuple[str, ...]
    against: TensorStore
    tolerances: Mapping[str, Tolerance] = dataclasses.field(default_factory=dict)
    partly: bool = False
    floors: Mapping[str, float] | None = None
    kept_too: bool = False

    @property
    def specs(self) -> Mapping[str, ValueSpec]:
        """Dtypes and shapes of the values: those of the stored tensors."""
        return {name: self.against.spec(name) for name in self.names}

    @property
    def words(self) -> tuple[object, ...]:
        """What tells this observation from others."""
        against = [[name, self.against.checksum(name)] for name in self.names]
        judged = [[name, repr(self.tolerances[name])] for name in self.names if name in self.tolerances]
        floors = None if self.floors is None else [self.floors.get(name) for name in self.names]
        return ("figures", against, judged, self.partly, floors, floors is not None and self.kept_too)


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedPlan(_Observation):
    """Observe what the engine really runs, and what it chose while building."""


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedBuild(_Observation):
    """Observe that the model builds, and what its session says of itself; nothing is run."""


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedStreams(_Observation):
    """Observe two feeds that run at once: the first in the session that is open for the model, the other in this one.

    Attributes:
        feeds: The two.
        runs: Runs of each.
        apart: Whether an engine in a process of its own runs the second in another process as well.
    """

    feeds: tuple[Feed, Feed]
    runs: int
    apart: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedAnswer(_Observation):
    """Observe what a session says that `tensortriage.engines.capabilities.AnswersQuestions` of its own.

    Attributes:
        question: What it is asked, in its own words.
        arguments: With what, in types of JSON.
    """

    question: str
    arguments: Mapping[str, object] = dataclasses.field(default_factory=dict)
    stored: ClassVar[bool] = True

    @property
    def words(self) -> tuple[object, ...]:
        """What tells this observation from others."""
        return ("answer", self.question, self.arguments)


Observation = (
    ObservedOutputs | ObservedValues | ObservedFigures | ObservedPlan | ObservedBuild | ObservedStreams | ObservedAnswer
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """One question to an engine.

    Attributes:
        engine: Who is asked.
        model: What is built, edits included.
        feed: Its inputs; None for what shows without a run.
        observed: What is looked at.
        injected: Value name to what replaces its result in this run, of a model that
            `tensortriage.model.transforms.mark_outputs.inject` made; its other switches are off.
        build: Number of the build; any but 0 is made anew and nothing that was kept on disk serves it.
        repetition: Number of the run among equal ones; None for a run whose point is to be made again, so that it is
            never answered from the case.
        sequence: Number of the sequence that it belongs to; 0 for none. The experiments of a sequence are answered in
            their order, in a session that nothing else runs in (`tensortriage.runs.lab.Lab.session`).
        layout: How the inputs lie in memory, of `BuiltSession.layouts`; empty for as they are.
        what: What is told while the engine is asked; empty for nothing.
    """

    engine: EngineSpec
    model: Model
    feed: Feed | None
    observed: Observation = dataclasses.field(default_factory=ObservedOutputs)
    injected: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    build: int = 0
    repetition: int | None = 0
    sequence: int = 0
    layout: str = ""
    what: str = ""

    @property
    def keepable(self) -> bool:
        """Whether its answer may be kept: not where an earlier run of a session may change it, or it is read once."""
        match self.observed:
            case ObservedOutputs(lent=True) | ObservedValues(streamed=True) | ObservedBuild() | ObservedStreams():
                return False
        return self.repetition is not None and not self.sequence

    @property
    def words(self) -> tuple[object, ...]:
        """The part of the key that is not engine, model or feed."""
        injected = feed_digest(self.injected) if self.injected else ""
        return (*self.observed.words, injected, self.build, self.repetition, self.layout)

    @property
    def tensors(self) -> Mapping[str, np.ndarray]:
        """What the model is fed with: the feed, and every switch that it leaves open with its replacement."""
        fed = dict(self.feed.tensors) if self.feed is not None else {}
        for spec in self.model.inputs:
            if spec.name in fed:
                continue
            value = spec.name.removeprefix(USE_PREFIX)
            if spec.name.startswith(USE_PREFIX):
                fed[spec.name] = np.array(value in self.injected)
            elif spec.name.startswith(INJECT_PREFIX):
                fed[spec.name] = self._replacement(spec)
        return fed

    def _replacement(self, spec: ValueSpec) -> np.ndarray:
        """Return what an overridable value is fed with; where its switch is off any array of its type does."""
        value = spec.name.removeprefix(INJECT_PREFIX)
        if value in self.injected:
            return np.asarray(self.injected[value])
        assert spec.dtype is not None
        return np.zeros([d if isinstance(d, int) else 1 for d in spec.shape or ()], spec.dtype.numpy)


@dataclasses.dataclass(frozen=True, slots=True)
class BuiltSession:
    """What a session says of itself.

    Attributes:
        outputs: What it returns, with the shapes and types that the engine found.
        layouts: How inputs may lie in memory for it; none where it runs elsewhere and does not say.
        own_options: Words of options that a script's engine declares itself.
        knows_some: Whether it may not know every value that is marked.
    """

    outputs: tuple[ValueSpec, ...] = ()
    layouts: Sequence[str] = ()
    own_options: Sequence[str] = ()
    knows_some: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Measurement:
    """What came of an experiment.

    Attributes:
        tensors: What was observed, or kept of what was measured.
        figures: How far it was from what it was held against.
        unseen: Values that the engine did not show.
        plan: What the engine runs; None when it does not tell, or was not asked.
        choices: What it chose while building.
        told: What it answered to a question of its own.
        built: What its session says of itself.
        streams: Feeds that ran at once, each with those of its results that differ.
        stream: Names and tensors as they come, to be read once.
        seconds: Wall time of one run.
        build_seconds: Wall time of the build that was made for it; 0 where a session was open.
        builds_made: How often the session has built for shapes that it was fed, by then; 0 for those that do not.
    """

    tensors: TensorStore = NOTHING
    figures: Measured = dataclasses.field(default_factory=lambda: Measured({}))
    unseen: Unseen = dataclasses.field(default_factory=Unseen)
    plan: Plan | None = None
    choices: tuple[Choice, ...] = ()
    told: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    built: BuiltSession = dataclasses.field(default_factory=BuiltSession)
    streams: Sequence[tuple[Feed, Sequence[Mapping[str, np.ndarray]]]] = ()
    stream: Iterator[tuple[str, np.ndarray]] = dataclasses.field(default_factory=lambda: iter(()))
    seconds: float = 0.0
    build_seconds: float = 0.0
    builds_made: int = 0

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The tensors by name."""
        return {name: self.tensors[name] for name in self.tensors.names()}

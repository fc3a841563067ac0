"""One question to an engine, as data: the model to build, its inputs, and the observation to make.

Code that measures, searches or judges describes its question as an `Experiment`, which the lab answers
(`tensortriage.runs.lab.Lab.answer`). An experiment is identified by its content, never by the caller: the same question
from another rung, or in a resumed case, is answered from the case. An edit of a model (marked outputs, a piece cut out,
ops each fed separately) is part of the model; an override in a single run is not, so that runs share one build.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.measured import Measured
from tensortriage.engines.base import Choice, Plan
from tensortriage.engines.spec import EngineSpec
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed, feed_digest
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX, USE_PREFIX
from tensortriage.runs.observation.refusals import Unseen
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, TensorStore

NOTHING: TensorStore = MemoryStore({})


class _Observation:
    """The part of an answer that an experiment requests."""

    __slots__ = ()

    @property
    def words(self) -> tuple[object, ...]:
        """The identity of this observation, with the content that it is compared with."""
        return (type(self).__name__,)


@frozen_dataclass
class ObservedOutputs(_Observation):
    """Observe the model's own outputs, nothing marked.

    Attributes:
        stored: Whether outputs of any size go to the case, so that none has to stay in memory.
        lent: Whether the outputs are the engine's own buffers, neither copied nor stored; valid until the session runs
            again.
        known_only: Whether to leave out outputs that the session does not know
            (`tensortriage.engines.capabilities.KnowsSomeValues`), instead of failing.
    """

    stored: bool = False
    lent: bool = False
    known_only: bool = False

    @property
    def words(self) -> tuple[object, ...]:
        """The identity of this observation among others."""
        return ("outputs", self.known_only)


@frozen_dataclass
class ObservedValues(_Observation):
    """Observe tensors of given values, marked as outputs or shown by the engine itself.

    Attributes:
        names: The values, in topological order.
        specs: Dtypes and shapes that the caller knows better than the model declares them; they size the batches, and
            are no part of the question.
        streamed: Whether the caller reads the values one at a time (`Measurement.stream`), so that they are neither
            held nor stored: in the order of computation on an engine with
            `tensortriage.engines.capabilities.StreamsResults`, else batch by batch.
    """

    names: tuple[str, ...]
    specs: Mapping[str, ValueSpec] | None = None
    streamed: bool = False

    @property
    def words(self) -> tuple[object, ...]:
        """The identity of this observation among others."""
        return ("values", list(self.names))


@frozen_dataclass
class ObservedFigures(_Observation):
    """Observe how far values are from stored tensors; each is compared at once, and not stored.

    Attributes:
        names: The values, in topological order.
        against: The stored tensors.
        tolerances: The user's tolerances by value name.
        partly: Whether to leave out values that the engine refuses to show, instead of failing.
        floors: Relative floors; tensors with a larger error than a healthy engine's by them are stored. None to store
            none.
        kept_too: Whether to store every tensor that differs at all; for values that are small together.
    """

    names: Sequence[str]
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
        """The identity of this observation among others."""
        against = [[name, self.against.checksum(name)] for name in self.names]
        judged = [[name, repr(self.tolerances[name])] for name in self.names if name in self.tolerances]
        floors = None if self.floors is None else [self.floors.get(name) for name in self.names]
        return ("figures", against, judged, self.partly, floors, floors is not None and self.kept_too)


@frozen_dataclass
class ObservedPlan(_Observation):
    """Observe the plan that the engine runs, and its choices while building."""


@frozen_dataclass
class ObservedBuild(_Observation):
    """Observe whether the model builds, and its session's description of itself; nothing is run."""


@frozen_dataclass
class ObservedStreams(_Observation):
    """Observe two feeds that run at once: the first in the session that is open for the model, the other in this one.

    Attributes:
        runs: Number of runs of each.
        apart: Whether an engine in a process of its own runs the second in another process as well.
    """

    feeds: tuple[Feed, Feed]
    runs: int
    apart: bool


@frozen_dataclass
class ObservedAnswer(_Observation):
    """Observe the answer of a session with `tensortriage.engines.capabilities.AnswersQuestions`.

    Attributes:
        question: The question, a word of the engine's own protocol.
        arguments: Its arguments, in types of JSON.
    """

    question: str
    arguments: Mapping[str, object] = dataclasses.field(default_factory=dict)
    stored: ClassVar[bool] = True

    @property
    def words(self) -> tuple[object, ...]:
        """The identity of this observation among others."""
        return ("answer", self.question, self.arguments)


Observation = (
    ObservedOutputs | ObservedValues | ObservedFigures | ObservedPlan | ObservedBuild | ObservedStreams | ObservedAnswer
)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """One question to an engine.

    Attributes:
        model: The model to build, edits included.
        feed: The inputs; None for an observation without a run.
        injected: Replacements of results in this run, by value name, for a model from
            `tensortriage.model.transforms.mark_outputs.inject`; its other switches are off.
        build: Number of the build; any but 0 is built again, without the cache on disk.
        repetition: Number of the run among equal ones; None for a run that must really happen again, so that it is
            never answered from the case.
        sequence: Number of the sequence that it belongs to; 0 for none. The experiments of a sequence are answered in
            their order, in a session that nothing else runs in (`tensortriage.runs.lab.Lab.session`).
        layout: Memory layout of the inputs, of `BuiltSession.layouts`; empty for their own.
        what: Progress line; empty for none.
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
        """The model's inputs: the feed, and for every open switch its replacement."""
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
        """Return the replacement of an overridable value; any array of its type where its switch is off."""
        value = spec.name.removeprefix(INJECT_PREFIX)
        if value in self.injected:
            return np.asarray(self.injected[value])
        assert spec.dtype is not None
        return np.zeros([d if isinstance(d, int) else 1 for d in spec.shape or ()], spec.dtype.numpy)


@frozen_dataclass
class BuiltSession:
    """A session's description of itself.

    Attributes:
        outputs: Its outputs, with the shapes and types that the engine found.
        layouts: Memory layouts of inputs that it accepts; none where it runs elsewhere and does not report them.
        own_options: Words of options that a script's engine declares itself.
        knows_some: Whether it may not know every value that is marked.
    """

    outputs: tuple[ValueSpec, ...] = ()
    layouts: Sequence[str] = ()
    own_options: Sequence[str] = ()
    knows_some: bool = False


@frozen_dataclass
class Measurement:
    """The answer to an experiment.

    Attributes:
        tensors: Observed tensors, or those stored of measured ones.
        figures: Differences from the stored tensors.
        unseen: Values that the engine did not show.
        plan: The engine's plan; None when it does not report one, or the plan was not observed.
        choices: The engine's choices while building.
        told: The result of an `ObservedAnswer`.
        built: The session's description of itself.
        streams: Feeds that ran at once, each with those of its results that differ.
        stream: Names and tensors as they come, to be read once.
        seconds: Wall time of one run.
        build_seconds: Wall time of the build that was made for it; 0 where a session was open.
        builds_made: Number of builds that the session has made for shapes of feeds, by then; 0 where it makes none.
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

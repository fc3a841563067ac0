"""One diagnosis: what is asked, the lab to ask engines in, and the record of the steps.

Every answer of an engine is remembered in the case by content, so the ladder may be rerun, extended or resumed at no
cost. Golden tensors are stored; the target's tensors are compared as they arrive and only their figures are kept.
Nothing of an investigation changes but what its lab remembers: another question is another one, see `about`.
"""

import copy
import dataclasses
import shlex
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.compare.measured import Keep, Measured, measured
from tensortriage.diagnose.state.confidence import Confidence
from tensortriage.diagnose.state.inner_values import Layered, centre_spec
from tensortriage.diagnose.state.record import Listener, Record, Silent
from tensortriage.diagnose.state.verdict import Cost, Culprit, Step, Verdict, VerdictKind
from tensortriage.engines.base import Limits
from tensortriage.engines.spec import EngineSpec
from tensortriage.errors import EngineError, EngineHung
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.generated.size_sweep import Shaped
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.runs.budget import Budget
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.runs.runner import precision_of
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore
from tensortriage.values.typed_store import typed_as

Source = tuple[str, str, str]
"""What golden values are of: the reference's spec, the model's fingerprint, and the name of the feed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: the user's question, or one that came of it.

    Attributes:
        model: The model taken as right.
        feeds: The samples, at least one.
        reference: The engine taken as right.
        target: The engine under suspicion.
        target_model: What the target runs, when that is another ONNX file.
        tolerance: The user's own tolerance for the model's outputs; None to judge by the noise floor.
        limits: Time and memory limits of isolated engines.
        input_paths: Where the feeds came from, for the commands that a verdict suggests.
        batch_bytes: Largest amount of captured tensors held at once.
        budget_seconds: Wall time the whole may take; None for any.
        sweep: Feeds of other shapes.
        random_too: Whether to look at random data as well when real data pass.
        builds: How often the target is built again; None for what its engine makes sensible.
        kept: Nodes that compute in fp32 on the target, whatever its format.
        against: Another target that the target is held against; None for none.
        trusts_float64: Whether the envelope may be centred on float64; not where other engines contradict that.
        network: Spec of the PyTorch network that the model was exported from; None when that is not at hand.
    """

    model: Model
    feeds: Sequence[Feed]
    reference: EngineSpec
    target: EngineSpec
    target_model: Model | None = None
    tolerance: Tolerance | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    input_paths: Sequence[str] = ()
    batch_bytes: int | None = 1 << 30
    budget_seconds: float | None = None
    sweep: Sequence[Shaped] = ()
    random_too: bool = True
    builds: int | None = None
    kept: tuple[str, ...] = ()
    network: EngineSpec | None = None
    against: EngineSpec | None = None
    trusts_float64: bool = True

    @cached_property
    def precision(self) -> Precision:
        """The number format the target computes in."""
        return precision_of(self.target)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Every value of the model that can be marked, in topological order."""
        return markable(self.model)

    def on_model(self, model: Model) -> "Question":
        """Return the same question about another model alone."""
        feeds = tuple(check_feed(feed, model.inputs, casting=Casting.ROUND) for feed in self.feeds)
        return dataclasses.replace(self, model=model, feeds=feeds, target_model=None)

    def on_target(self, target: EngineSpec, *, kept: tuple[str, ...]) -> "Question":
        """Return the same question about another target, some nodes of which compute in fp32; not on random data."""
        return dataclasses.replace(self, target=target, target_model=None, kept=kept, random_too=False)


class Investigation(Lab):
    """One diagnosis in progress.

    Args:
        question: What is asked.
        case: Where everything is kept.
        listener: Who hears of steps and progress.
        golden: Golden values that are known already, by the name of their feed.
    """

    def __init__(
        self,
        question: Question,
        case: Case,
        *,
        listener: Listener | None = None,
        golden: Mapping[str, TensorStore] = MappingProxyType({}),
    ) -> None:
        listener = listener or Silent()
        super().__init__(
            case,
            limits=question.limits,
            budget=Budget(question.budget_seconds),
            batch_bytes=question.batch_bytes,
            progress=listener.progress,
        )
        self._question = question
        self._record = Record(listener)
        self._golden = {self._source(name): store for name, store in golden.items()}
        self._golden_outputs: dict[Source, TensorStore] = {}

    def about(self, question: Question) -> "Investigation":
        """Return an investigation of another question, in the same lab and on the same record."""
        other = copy.copy(self)
        other._question = question
        return other

    @property
    def question(self) -> Question:
        """What is asked."""
        return self._question

    @property
    def precision(self) -> Precision:
        """The number format the target computes in."""
        return self.question.precision

    @property
    def model(self) -> Model:
        """The model whose tensors are compared."""
        return self.question.model

    @property
    def values(self) -> tuple[str, ...]:
        """Every value of `model` that can be marked, in topological order."""
        return self.question.values

    @property
    def tolerances(self) -> Mapping[str, Tolerance]:
        """The user's tolerance by the name of each output of the model; empty when the noise floor judges."""
        tolerance = self.question.tolerance
        return {} if tolerance is None else {spec.name: tolerance for spec in self.model.outputs}

    @property
    def inputs_word(self) -> str:
        """``real`` when any feed is real, else ``random``."""
        return "real" if any(feed.origin is Origin.REAL for feed in self.question.feeds) else "random"

    def specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as recorded in the golden run."""
        return self._typed_by(self.golden(feed), feed)

    def foreseen_specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as far as inputs, outputs and operators tell."""
        return self._typed_by(self.golden_outputs(feed), feed)

    def _typed_by(self, golden: TensorStore, feed: Feed) -> Mapping[str, ValueSpec]:
        recorded = {name: golden.spec(name) for name in golden.names()}
        recorded |= {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
        return value_specs(self.model, recorded)

    # -- asking engines ------------------------------------------------------------------------------------------

    def golden(self, feed: Feed) -> TensorStore:
        """Return the golden values of one feed: every markable value of `model` as the reference computed it.

        Where the reference answers the model's outputs only, inner values come from the model's centre.
        """
        source = self._source(feed.name)
        if source not in self._golden:
            self._golden[source] = self._everything(feed)
        return self._golden[source]

    def _everything(self, feed: Feed) -> TensorStore:
        """Return golden outputs and inner values, from wherever they are to be had."""
        outputs = [spec.name for spec in self.model.outputs]
        inner = [name for name in self.values if name not in outputs]
        key = self.key(self.question.reference, self.model, None, "answers the outputs only")
        reason = self.case.checks.get(key, str)
        if reason is None:
            try:
                rest = [name for name in outputs if name not in self.values]
                return self._recorded_by_reference(feed, [*self.values, *rest])
            except EngineError as error:
                if isinstance(error, EngineHung) or not inner:
                    raise
                reason = error.message
        outer = self.golden_outputs(feed)  # raises when the reference fails altogether
        self.case.checks.put(key, f"{self.question.reference} answers the outputs only", reason, seconds=0.0)
        question = "does the reference show its inner values?"
        if all(step.question != question for step in self._record.steps):
            answer = f"no: it answers the model's outputs only; inner values come from {centre_spec()}"
            self.answered(question, answer, reason=reason)
        return Layered(outer, self.recorded(centre_spec(), self.model, feed, inner)[0])

    def golden_outputs(self, feed: Feed) -> TensorStore:
        """Return the golden values of the model's outputs on one feed; all a feed needs that is not looked into."""
        source = self._source(feed.name)
        if source in self._golden:
            return self._golden[source]
        if source not in self._golden_outputs:
            outputs = [spec.name for spec in self.model.outputs]
            self._golden_outputs[source] = self._recorded_by_reference(feed, outputs)
        return self._golden_outputs[source]

    def _source(self, feed: str) -> Source:
        return str(self.question.reference), self.model.fingerprint, feed

    def _recorded_by_reference(self, feed: Feed, values: Sequence[str]) -> TensorStore:
        store, seconds = self.recorded(self.question.reference, self.model, feed, values)
        self.tally.reference_run_seconds = max(self.tally.reference_run_seconds, seconds)
        if all(store.spec(name).dtype is not DType.DOUBLE for name in store.names()):
            return store
        return typed_as(store, value_specs(self.model))  # a reference may compute in float64

    def measured(
        self,
        spec: EngineSpec,
        model: Model,
        feed: Feed,
        values: Sequence[str],
        *,
        golden: TensorStore,
        what: str,
        keep: Keep | None = None,
        build: int = 0,
        tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
    ) -> Measured:
        """Run a model with the wanted values marked and return their figures against golden values; see `measured`.

        Values that the target refuses to show are left out; other engines must show all. Another number of a build is
        another build, not the answer remembered.
        """
        partly = spec == self.question.target
        return measured(
            self,
            spec,
            model,
            feed,
            values,
            base=golden,
            what=what,
            base_name=f"build {build}" if build else "",
            keep=keep,
            progress=self.progress,
            partly=partly,
            tolerances=tolerances,
        )

    # -- the record ----------------------------------------------------------------------------------------------

    def answered(self, question: str, answer: str, **evidence: object) -> Step:
        """Record a step and tell the listener; all that was done since the one before belongs to it."""
        before, cost = self._record.steps, self.cost
        step = Step(
            question,
            answer,
            evidence,
            seconds=round(cost.seconds - sum(step.seconds for step in before), 3),
            checks=cost.checks - sum(step.checks for step in before),
        )
        self._record.add(step)
        return step

    def unasked(self, *questions: str) -> None:
        """Record what the budget did not suffice for."""
        self.answered("which questions were left out for lack of time?", " ".join(questions))

    def verdict(
        self,
        kind: VerdictKind,
        confidence: Confidence | float,
        summary: str,
        *,
        culprits: Sequence[Culprit] = (),
        next: Sequence[str] = (),
    ) -> Verdict:
        """Return a verdict with the path and the cost so far."""
        sure = confidence.on(self.inputs_word) if isinstance(confidence, Confidence) else confidence
        return Verdict(
            kind.value,
            round(min(max(sure, 0.0), 1.0), 3),
            summary,
            tuple(culprits),
            self.inputs_word,
            self._record.steps,
            tuple(next),
            self.cost,
        )

    def command(self, command: str, *options: str) -> str:
        """Return a command line to run next, on this model and its inputs, quoted for a shell."""
        inputs = list(self.question.input_paths)
        if command == "inspect data":
            return shlex.join(["triage", "inspect", "data", *(inputs or ["INPUTS"])])
        return self.command_without_inputs(command, *options, *(["--inputs", *inputs] if inputs else []))

    def command_without_inputs(self, command: str, *options: str) -> str:
        """Return a command line on this model as `command` does, on made-up data."""
        return shlex.join(["triage", *command.split(), str(self.question.model.path or "MODEL"), *options])

    def refreshed(self, verdict: Verdict) -> Verdict:
        """Return a verdict with the steps that were made since it was reached."""
        return dataclasses.replace(verdict, steps=self._record.steps, cost=self.cost)

    @property
    def cost(self) -> Cost:
        """What has been spent so far."""
        seconds = round(time.perf_counter() - self.budget.started, 3)
        return Cost(seconds, self.tally.builds, self.tally.checks, self.tally.builds_by_engine)

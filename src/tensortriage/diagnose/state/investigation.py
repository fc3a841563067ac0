"""One diagnosis: what is asked, the lab in which engines answer, and the record of the steps.

Every answer of an engine is remembered in the case by content, so the ladder may be rerun, extended or resumed at no
cost. Golden tensors are stored; the target's tensors are compared as they arrive and only their figures are kept.
Nothing of an investigation changes but what its lab remembers: another question is another one, see `about`.
"""

import copy
import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tensortriage.compare.judgement.tolerance import Tolerance
from tensortriage.diagnose.state.confidence import Confidence
from tensortriage.diagnose.state.inner_values import Layered, centre_spec
from tensortriage.diagnose.state.question import Question
from tensortriage.diagnose.state.record import Listener, Record, Silent
from tensortriage.diagnose.state.verdict import Cost, Culprit, Step, Verdict, VerdictKind
from tensortriage.engines.registry import resolve
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.setting import Floors, Setting
from tensortriage.errors import EngineError, EngineHung
from tensortriage.inputs.feed import Feed, origin_of
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.budget import Budget
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import Experiment, Measurement, ObservedValues
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore
from tensortriage.values.typed_store import typed_as

Source = tuple[str, str, str]
"""What golden values are of: the reference's spec, the model's fingerprint, and the name of the feed."""


class Investigation:
    """One diagnosis in progress.

    Args:
        question: What is asked.
        case: Where everything is kept.
        listener: Who hears of steps and progress.
        lab: Where engines are asked, of which others ask as well; None for a lab of its own, in the case.
    """

    def __init__(
        self,
        question: Question,
        case: Case | None = None,
        *,
        listener: Listener | None = None,
        lab: Lab | None = None,
    ) -> None:
        listener = listener or Silent()
        self.lab = lab or Lab(
            case,
            limits=question.limits,
            budget=Budget(question.budget_seconds, question.began),
            batch_bytes=question.batch_bytes,
            progress=listener.progress,
        )
        self._question = question
        self._record = Record(listener)
        self.floors_ahead: Callable[[TensorStore], Floors | None] | None = None
        """Gives the floors of the first feed, which are measured meanwhile, for the reference's outputs on it."""
        self._golden: dict[Source, TensorStore] = {}
        self._golden_outputs: dict[Source, TensorStore] = {}

    def about(self, question: Question) -> "Investigation":
        """Return an investigation of another question, in the same lab and on the same record."""
        other = copy.copy(self)
        other._question, other.floors_ahead = question, None
        return other

    def in_lab(self, lab: Lab) -> "Investigation":
        """Return an investigation of the same question in another lab."""
        other = copy.copy(self)
        other.lab = lab
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
    def hardware(self) -> Hardware:
        """The class of hardware that the target computes on."""
        return resolve(self.question.target).hardware

    @property
    def model(self) -> Model:
        """The model whose tensors are compared."""
        return self.question.model

    @property
    def values(self) -> tuple[str, ...]:
        """Every value of `model` that can be marked, in topological order."""
        return self.question.values

    def progress(self, what: str) -> None:
        """Tell what takes a while, before it begins."""
        self.lab.progress(what)

    @property
    def tolerances(self) -> Mapping[str, Tolerance]:
        """The user's tolerance by the name of each output of the model; empty when the noise floor judges."""
        tolerance = self.question.tolerance
        return {} if tolerance is None else {spec.name: tolerance for spec in self.model.outputs}

    @property
    def inputs_word(self) -> str:
        """``real`` when any feed is real, else ``random``."""
        return origin_of(self.question.feeds)

    def specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as recorded in the golden run."""
        return self.typed_by(self.golden(feed), feed)

    def foreseen_specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as far as inputs, outputs and operators tell."""
        return self.typed_by(self.golden_outputs(feed), feed)

    def typed_by(self, golden: TensorStore, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as far as some golden values and operators tell."""
        recorded = {name: golden.spec(name) for name in golden.names()}
        recorded |= {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
        return value_specs(self.model, recorded)

    def setting(self, feed: Feed, model: Model | None = None) -> Setting:
        """Return what is judged on a feed.

        Args:
            feed: The feed.
            model: A model made of the investigation's, such as its ops alone, whose feed it is; None for that itself.
        """
        question, own = self.question, model is None
        fed = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
        return Setting(
            lab=self.lab,
            model=model or self.model,
            feed=feed,
            target=question.target,
            reference=question.reference,
            golden=lambda: self.golden(feed),
            golden_outputs=lambda: self.golden_outputs(feed),
            specs=lambda: self.specs(feed) if own else value_specs(model or self.model, fed),
            kept=question.kept,
            trusts_float64=question.trusts_float64,
        )

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
        kept = self.lab.derived(str, "why are outputs all it answers?", self.question.reference, self.model)
        reason = kept.known()
        if reason is None:
            try:
                rest = [name for name in outputs if name not in self.values]
                return self._recorded_by_reference(feed, [*self.values, *rest])
            except EngineError as error:
                if isinstance(error, EngineHung) or not inner:
                    raise
                reason = error.message
        outer = self.golden_outputs(feed)  # raises when the reference fails altogether
        kept.keep(reason)
        question = "does the reference show its inner values?"
        if all(step.question != question for step in self._record.steps):
            answer = f"no: it answers the model's outputs only; inner values come from {centre_spec()}"
            self.answered(question, answer, reason=reason)
        return Layered(outer, self.lab.values(centre_spec(), self.model, feed, inner))

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
        reference = self.question.reference
        asked = Experiment(
            engine=reference,
            model=self.model,
            feed=feed,
            observed=ObservedValues(tuple(values)),
            what=f"recording {len(values)} tensors on {reference}",
        )
        answer = self.lab.answer(asked)
        store, tally = answer.tensors, self.lab.tally
        tally.reference_run_seconds = max(tally.reference_run_seconds, answer.seconds)
        if all(store.spec(name).dtype is not DType.DOUBLE for name in store.names()):
            return store
        return typed_as(store, value_specs(self.model))  # a reference may compute in float64

    def figures(
        self,
        engine: EngineSpec,
        model: Model,
        feed: Feed,
        names: Sequence[str],
        *,
        golden: TensorStore,
        what: str,
        build: int = 0,
        tolerances: Mapping[str, Tolerance] = MappingProxyType({}),
        floors: Mapping[str, float] | None = None,
        kept_too: bool = False,
    ) -> Measurement:
        """Return how far values of a model are from golden ones; see `tensortriage.runs.lab.Lab.figures`.

        Values that the target refuses to show are left out; other engines must show all.
        """
        return self.lab.figures(
            engine,
            model,
            feed,
            names,
            against=golden,
            what=what,
            build=build,
            tolerances=tolerances,
            partly=engine == self.question.target,
            floors=floors,
            kept_too=kept_too,
        )

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray]:
        """Return the outputs of the target on a feed, its model untouched."""
        target = self.question.target
        return self.lab.outputs(target, self.model, feed, what=f"running {target} on {feed.name}")

    def affords(self, builds: float) -> bool:
        """Say whether what is left of the budget suffices for so many builds as long as the target's longest so far."""
        return self.lab.budget.left >= builds * self.lab.tally.longest_build(self.question.target.name)

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
        allowed_by: tuple[str, ...] = (),
        lost: bool = False,
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
            allowed_by=allowed_by,
            lost=lost,
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

    def close(self) -> None:
        """Release every session and temporary file."""
        self.lab.close()

    def refreshed(self, verdict: Verdict) -> Verdict:
        """Return a verdict with the steps that were made since it was reached."""
        return dataclasses.replace(verdict, steps=self._record.steps, cost=self.cost)

    @property
    def cost(self) -> Cost:
        """What has been spent so far."""
        tally, started = self.lab.tally, self.lab.budget.started
        seconds = round(time.perf_counter() - started, 3)
        return Cost(seconds, tally.builds, tally.checks, tally.builds_by_engine, self.lab.earlier)

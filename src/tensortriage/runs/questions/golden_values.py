"""The reference's values of a model: the basis of every comparison with the target, and of every search of a model.

A feed that is not looked into needs the outputs only. Values are stored in the case by the lab; those that were read
once are at hand for every question about the same reference, model and feed.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tensortriage.errors import EngineError, EngineHung
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import Experiment, ObservedValues
from tensortriage.runs.questions.inner_values import Layered, centre_spec
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore
from tensortriage.values.typed_store import typed_as

Source = tuple[str, str, str, bool]
"""Key of values: the reference's spec, the model's fingerprint, the name of the feed, and whether all are there.
"""


@frozen_dataclass
class GoldenValues:
    """The values that the reference of a question computes, by feed.

    Attributes:
        question: Which model, feeds and engines.
        lab: The lab that asks engines.
        shows_outputs_only: Called with the reason when the reference turns out to show no inner values.
        known: Values read so far.
    """

    question: Question
    lab: Lab
    shows_outputs_only: Callable[[str], object] = lambda _: None
    known: dict[Source, TensorStore] = dataclasses.field(default_factory=dict)

    def of(self, feed: Feed) -> TensorStore:
        """Return every markable value of the model on one feed, as the reference computed it.

        Where the reference answers the model's outputs only, inner values come from the model's centre.
        """
        source = self._source(feed, whole=True)
        if source not in self.known:
            self.known[source] = self._everything(feed)
        return self.known[source]

    def outputs(self, feed: Feed) -> TensorStore:
        """Return the values of the model's outputs on one feed, and maybe others."""
        whole, source = self._source(feed, whole=True), self._source(feed, whole=False)
        if whole in self.known:
            return self.known[whole]
        if source not in self.known:
            self.known[source] = self._recorded(feed, [spec.name for spec in self.question.model.outputs])
        return self.known[source]

    def are_outputs_alone(self, feed: Feed) -> bool:
        """Return whether the reference shows its outputs only, so that the operands of its ops are unknown."""
        return isinstance(self.of(feed), Layered)

    def specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as recorded in the golden run."""
        return self._typed_by(self.of(feed), feed)

    def foreseen_specs(self, feed: Feed) -> Mapping[str, ValueSpec]:
        """Return dtype and shape of every value on one feed, as far as inputs, outputs and operators show it."""
        return self._typed_by(self.outputs(feed), feed)

    def _typed_by(self, golden: TensorStore, feed: Feed) -> Mapping[str, ValueSpec]:
        recorded = {name: golden.spec(name) for name in golden.names()}
        recorded |= {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
        return value_specs(self.question.model, recorded)

    def _source(self, feed: Feed, *, whole: bool) -> Source:
        return str(self.question.reference), self.question.model.fingerprint, feed.name, whole

    def _everything(self, feed: Feed) -> TensorStore:
        """Return golden outputs and inner values, from wherever they are available."""
        question = self.question
        outputs = [spec.name for spec in question.model.outputs]
        inner = [name for name in question.values if name not in outputs]
        kept = self.lab.derived(str, "why are outputs all it answers?", question.reference, question.model)
        reason = kept.known()
        if reason is None:
            try:
                rest = [name for name in outputs if name not in question.values]
                return self._recorded(feed, [*question.values, *rest])
            except EngineError as error:
                if isinstance(error, EngineHung) or not inner:
                    raise
                reason = error.message
        outer = self.outputs(feed)  # raises when the reference fails altogether
        self.shows_outputs_only(kept.keep(reason))
        return Layered(outer, self.lab.values(centre_spec(), question.model, feed, inner))

    def _recorded(self, feed: Feed, values: Sequence[str]) -> TensorStore:
        reference, model = self.question.reference, self.question.model
        experiment = Experiment(
            engine=reference,
            model=model,
            feed=feed,
            observed=ObservedValues(tuple(values)),
            what=f"recording {len(values)} tensors on {reference}",
        )
        answer = self.lab.answer(experiment)
        store, tally = answer.tensors, self.lab.tally
        tally.reference_run_seconds = max(tally.reference_run_seconds, answer.seconds)
        if all(store.spec(name).dtype is not DType.DOUBLE for name in store.names()):
            return store
        return typed_as(store, value_specs(model))  # a reference may compute in float64

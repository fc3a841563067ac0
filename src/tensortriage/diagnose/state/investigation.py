"""One diagnosis as rungs are handed it: the question, the lab, the reference's values and the record of steps.

It is a frozen value: another question is another investigation, `Investigation.about`, in the same lab and on the same
record. A rung takes the part that it needs.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.diagnose.state.record import Listener, Record, Silent
from tensortriage.envelope.setting import Floors, Setting
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.budget import Budget
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.golden_values import GoldenValues
from tensortriage.runs.questions.question import Question
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@frozen_dataclass
class Investigation:
    """One diagnosis.

    Attributes:
        golden: The reference's values for the question, in the lab that asks engines.
        record: The steps so far.
        floors_ahead: Gives the floors of the first feed, which are measured meanwhile, for the reference's outputs on
            it; None where none are.
    """

    golden: GoldenValues
    record: Record
    floors_ahead: Callable[[TensorStore], Floors | None] | None = None

    @classmethod
    def begin(
        cls,
        question: Question,
        case: Case | None = None,
        *,
        listener: Listener | None = None,
        lab: Lab | None = None,
    ) -> "Investigation":
        """Return an investigation with an empty record.

        Args:
            question: The question.
            case: The store of all results.
            listener: Receives steps and progress.
            lab: The lab that asks engines, shared with others; None for a lab of its own, in the case.
        """
        listener = listener or Silent()
        lab = lab or Lab(
            case,
            limits=question.limits,
            budget=Budget(question.budget_seconds, question.began),
            batch_bytes=question.batch_bytes,
            progress=listener.progress,
        )
        record = Record(lab, listener)
        return cls(GoldenValues(question, lab, record.outputs_only), record)

    def about(self, question: Question) -> "Investigation":
        """Return an investigation of another question, in the same lab and on the same record."""
        return Investigation(dataclasses.replace(self.golden, question=question), self.record)

    @property
    def question(self) -> Question:
        """The question."""
        return self.golden.question

    @property
    def lab(self) -> Lab:
        """The lab that runs engines."""
        return self.golden.lab

    @property
    def model(self) -> Model:
        """The model whose tensors are compared."""
        return self.question.model

    @property
    def precision(self) -> Precision:
        """The number format the target computes in."""
        return self.question.precision

    def setting(self, feed: Feed, model: Model | None = None) -> Setting:
        """Return the setting to judge on a feed.

        Args:
            feed: The feed.
            model: A model made of the investigation's, such as its ops alone, to be fed with the feed; None for that
                itself.
        """
        question, golden = self.question, self.golden
        fed = {name: ValueSpec.of(name, array) for name, array in feed.tensors.items()}
        return Setting(
            lab=self.lab,
            model=model or question.model,
            feed=feed,
            target=question.target,
            reference=question.reference,
            golden=lambda: golden.of(feed),
            golden_outputs=lambda: golden.outputs(feed),
            specs=lambda: golden.specs(feed) if model is None else value_specs(model, fed),
            kept=question.kept,
            trusts_float64=question.trusts_float64,
        )

    def deployed(self, feed: Feed) -> Mapping[str, np.ndarray]:
        """Return the outputs of the target on a feed, its model untouched."""
        target = self.question.target
        return self.lab.outputs(target, self.model, feed, what=f"running {target} on {feed.name}")

"""Does the reference compute what the model defines? Saved results and scripts are judged before they judge.

Golden values of another model, or of another version of it, would pass for the truth otherwise, and every engine that
runs this one would be wrong, or worse: right within the distance of the two.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tensortriage.compare.judgement.tolerance import EveryTolerance, Tolerance
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import markable
from tensortriage.report.run_result import Disagreement
from tensortriage.runs.lab import Lab
from tensortriage.values.store import MemoryStore
from tensortriage.values.text import error_size

if TYPE_CHECKING:
    from tensortriage.envelope.unrounded_match import FileStanding


class ReferenceJudge:
    """Judges values that a reference gives for a model.

    Args:
        model: The model.
        tolerances: The user's own; none to judge by the envelope.
        lab: The lab that evaluates the model.

    Attributes:
        found: Values that are not the model's.
        unjudged: Why something could not be judged; empty when everything was.
        of_network: Names of feeds on which it is not the model's, but the network's that the model rounds.
    """

    def __init__(self, model: Model, *, tolerances: Sequence[Tolerance], lab: Lab) -> None:
        self._model = model
        self._tolerances = tolerances
        self._lab = lab
        self.found: list[Disagreement] = []
        self.unjudged = ""
        self.of_network: set[str] = set()

    def judge(self, feed: Feed, values: Mapping[str, np.ndarray], rewritten: "FileStanding") -> None:
        """Judge the reference's values of one feed; names that the model does not have are left alone.

        Args:
            feed: The feed.
            values: The values.
            rewritten: Judges whether they belong to the network that the model rounds.
        """
        made = dict.fromkeys([*markable(self._model), *(spec.name for spec in self._model.outputs)])
        names = [name for name in made if name in values]
        if not names:
            self.unjudged = "none of its tensors has the name of a tensor of the model"
            return
        judge = self._by_tolerance if self._tolerances else self._by_envelope
        before = len(self.found)
        try:
            judge(self._lab.remembering, feed, names, values)
            if len(self.found) > before and not self._tolerances and rewritten.limits(feed, values):
                del self.found[before:]
                self.of_network.add(feed.name)
        except (EngineError, UsageError) as problem:
            self.unjudged = problem.message

    def _by_envelope(self, lab: Lab, feed: Feed, names: Sequence[str], values: Mapping[str, np.ndarray]) -> None:
        from tensortriage.envelope.reference import disputes  # with all rows of the judge

        store = MemoryStore({name: values[name] for name in names})
        for dispute in disputes(lab, self._model, feed, names, store):
            limit = f"at most {error_size(dispute.limit)}" if dispute.limit else "another shape"
            self._disagree(feed, dispute.value, dispute.error, limit)

    def _by_tolerance(self, lab: Lab, feed: Feed, names: Sequence[str], values: Mapping[str, np.ndarray]) -> None:
        from tensortriage.envelope.explanations import CORRECTLY_ROUNDED

        tolerance = EveryTolerance(self._tolerances)
        wrong: dict[str, tuple[float, str]] = {}
        for name, exact in lab.stream(CORRECTLY_ROUNDED, self._model, feed, names, specs={}):
            given = values[name]
            if given.shape != exact.shape:
                wrong[name] = float("inf"), "another shape"
                continue
            figure = measure(exact, given)
            judgement = tolerance.judge(name, figure, exact, given)
            if not judgement.within:
                wrong[name] = figure.relative_rms_error, judgement.limit
        for name in names:
            if name in wrong:
                self._disagree(feed, name, *wrong[name])

    def _disagree(self, feed: Feed, value: str, error: float, limit: str) -> None:
        node = self._model.graph.producer(value)
        self.found.append(
            Disagreement(feed.name, value, node.name if node else "", node.op_type if node else "", error, limit)
        )

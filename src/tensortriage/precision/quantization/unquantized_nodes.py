"""Nodes that need more than 8 bits: the fewest that must read unquantized operands for outputs that are good enough.

The search is that of `tensortriage.precision.selection.node_choice`; its readings come from one session of a model with
a switch per quantized node, so a candidate costs a run.
"""

from collections.abc import Collection, Sequence
from typing import Self

from tensortriage.engines.spec import PLAIN
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq_pairs import switch_quantizers
from tensortriage.precision.goal import GoalReading, GoalSample, PrecisionGoal
from tensortriage.precision.selection.influence import Influences, influences
from tensortriage.precision.selection.node_choice import KeptNodes, choose
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace


class QuantizedNodes:
    """Answers for any set of nodes left unquantized what the outputs are like; a context manager.

    Args:
        model: A quantized model with float weights behind pairs of their own.
        samples: What to run on, with the outputs of the float model.
        goal: What is asked of the outputs.
        workspace: For the model file.
    """

    def __init__(
        self, model: Model, samples: Sequence[GoalSample], goal: PrecisionGoal, *, workspace: Workspace
    ) -> None:
        self._switched = switch_quantizers(model)
        self._samples = tuple(samples)
        self._known: dict[frozenset[str], GoalReading] = {}
        self._runner = Runner(PLAIN, self._switched.model, workspace=workspace)
        self.items = tuple(self._switched.nodes)
        self.goal = goal

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading when some nodes read unquantized operands."""
        wanted = frozenset(kept)
        if wanted not in self._known:
            switches = self._switched.feed(wanted)
            results = [self._runner.run({**sample.feed.tensors, **switches}) for sample in self._samples]
            self._known[wanted] = self.goal.judge(self._samples, results)
        return self._known[wanted]

    def only(self, low: Collection[str]) -> GoalReading:
        """Return the reading when nothing but some nodes reads quantized operands."""
        return self.read(frozenset(self.items).difference(low))

    def influences(self) -> Influences:
        """Return what quantizing each node alone does."""
        return influences(self.items, self.only, relative=not self.goal.limits)

    def fewest(self) -> KeptNodes | None:
        """Return the fewest nodes to leave unquantized; None when not even leaving all of them is enough."""
        if self.read(()).within:
            return KeptNodes((), self.read(()))
        return choose(self.influences(), self.read, limited=self.goal.limits)

    @property
    def runs(self) -> int:
        """Readings taken so far."""
        return len(self._known)

    def close(self) -> None:
        """Release the session."""
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

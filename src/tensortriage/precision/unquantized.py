"""Which nodes do not stand 8 bits: the fewest that have to read unquantized operands for the outputs to be good enough.

The search is that of `tensortriage.precision.choosing`; its readings come from one session of a model with a switch per
quantized node, so a candidate costs a run.
"""

from collections.abc import Collection, Sequence
from typing import Self

from tensortriage.engines.spec import EngineSpec
from tensortriage.model.model import Model
from tensortriage.model.quantizer_pairs import switch_quantizers
from tensortriage.precision.choosing import Choice, choose
from tensortriage.precision.goal import Goal, Reading, Sample
from tensortriage.precision.influence import Influences, influences
from tensortriage.runs.runner import Runner
from tensortriage.runs.workspace import Workspace

PLAIN = EngineSpec("onnxruntime", {"optimization": "none"})


class QuantizedNodes:
    """Answers for any set of nodes left unquantized what the outputs are like; a context manager.

    Args:
        model: A quantized model with float weights behind pairs of their own.
        samples: What to run on, with the outputs of the float model.
        goal: What is asked of the outputs.
        workspace: For the model file.
    """

    def __init__(self, model: Model, samples: Sequence[Sample], goal: Goal, *, workspace: Workspace) -> None:
        self._switched = switch_quantizers(model)
        self._samples = tuple(samples)
        self._goal = goal
        self._known: dict[frozenset[str], Reading] = {}
        self._runner = Runner(PLAIN, self._switched.model, workspace=workspace)
        self.nodes = self._switched.nodes

    def read(self, kept: Collection[str]) -> Reading:
        """Return the reading when some nodes read unquantized operands."""
        wanted = frozenset(kept)
        if wanted not in self._known:
            switches = self._switched.feed(wanted)
            results = [self._runner.run({**sample.feed.tensors, **switches}) for sample in self._samples]
            self._known[wanted] = self._goal.judge(self._samples, results)
        return self._known[wanted]

    def influences(self) -> Influences:
        """Return what quantizing each node alone does."""
        return influences(
            self.nodes,
            lambda low: self.read(frozenset(self.nodes).difference(low)),
            relative=not self._goal.limits,
        )

    def fewest(self) -> Choice | None:
        """Return the fewest nodes to leave unquantized; None when not even leaving all of them is enough."""
        if self.read(()).within:
            return Choice((), self.read(()))
        return choose(self.influences(), self.read, limited=self._goal.limits)

    @property
    def runs(self) -> int:
        """Readings taken so far."""
        return len(self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.close()

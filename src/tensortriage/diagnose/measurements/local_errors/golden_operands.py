"""Golden values as operands: read once from the reference's run, then handed to ops that each run apart from the rest.

Whatever runs ops alone (single ops, regions, windows, witnesses of one op) takes its model and its feed from here, so
that all of them feed an op with the same numbers.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.cutting.explode import explode
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import TensorStore


@frozen_dataclass
class OpsApart:
    """Ops of a model, each fed with golden values, in one model of their own.

    Attributes:
        model: The exploded model.
        feed: Its inputs.
        reads: Name of each input to the name of the value that it stands for.
        values: Its outputs with a golden value, in topological order.
    """

    model: Model
    feed: Feed
    reads: Mapping[str, str]
    values: tuple[str, ...]


@frozen_dataclass
class GoldenOperands:
    """Golden operands of a model's ops on one feed.

    Attributes:
        feed: Its inputs.
        values: Every value of the model that can be marked, in topological order.
        golden: Every value of the model as the reference computed it.
        specs: Dtype and shape of every value.
        static: Golden values of the integer operands that engines want static (shapes, axes, indices of slices).
    """

    model: Model
    feed: Feed
    values: tuple[str, ...]
    golden: TensorStore
    specs: Mapping[str, ValueSpec]
    static: Mapping[str, np.ndarray]

    def apart(self, sets: Sequence[Collection[str]], *, ends_only: bool = False) -> OpsApart:
        """Return sets of ops that run apart from each other, fed with golden values.

        Args:
            sets: Names of the nodes that stay wired to each other; see `explode`.
            ends_only: Whether values that a set uses itself are no outputs.

        Raises:
            ModelError: When a set cannot be cut out.
        """
        exploded = explode(self.model, sets, specs=self.specs, shape_values=self.static, ends_only=ends_only)
        operands = {name: self.operand(value) for name, value in exploded.feeds.items()}
        feed = Feed(f"{self.feed.name} exploded", operands, self.feed.origin)
        values = tuple(name for name in self.values if name in exploded.outputs and name in self.golden)
        return OpsApart(exploded.model, feed, exploded.feeds, values)

    def operand(self, value: str) -> np.ndarray:
        """Return the operand for a value: the golden value, or the feed's own tensor."""
        return np.asarray(self.golden[value] if value in self.golden else self.feed.tensors[value])


def golden_operands(inv: Investigation, feed: Feed) -> GoldenOperands:
    """Return the operands of the investigated model's ops on one feed.

    Raises:
        EngineError: When the reference fails.
    """
    golden, specs, model = inv.golden.of(feed), inv.golden.specs(feed), inv.model
    known = [name for name in model.graph.shape_like if name in golden or name in feed.tensors]
    static = {name: np.asarray(golden[name] if name in golden else feed.tensors[name]) for name in known}
    return GoldenOperands(model, feed, inv.question.values, golden, specs, static)

"""The cost of a quantized file's rounding at its outputs, op by op, in float64.

The cost of an op is the move of an output when it alone rounds: of activations, by a file whose other quantizers pass
everything on; of weights, by another rounding of its integers. Ops are measured in groups that follow each other; of
these the costliest is divided until the costliest ops stand alone.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import counts
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import UNBOUNDED
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import reads_integer_weights, rounds_activations
from tensortriage.runs.lab import Lab

MOST_COSTS = 8
"""Ops that are separated; each takes some evaluations of the file."""


@frozen_dataclass
class RoundingCost:
    """The rounding cost of one op.

    Attributes:
        node: The op that rounds activations, or reads rounded weights.
        of_weight: Whether it is the rounding of its weights.
        error: Relative RMS error of the output when it alone rounds.
    """

    node: Node
    of_weight: bool
    error: float


def rounding_costs(lab: Lab, file: Model, feed: Feed, output: str, *, unrounded: EngineSpec) -> list[RoundingCost]:
    """Return the ops of a file whose rounding has a cost at an output, the costliest first.

    Args:
        lab: The lab that evaluates the file.
        file: The quantized file.
        feed: Its inputs.
        output: The output.
        unrounded: The evaluation of the unrounded file.

    Raises:
        EngineError: When the file cannot be evaluated.
    """
    right = lab.outputs(unrounded, file, feed)[output]

    def moved(**options: str) -> float:
        found = lab.outputs(unrounded.with_options({**unrounded.options, **options}), file, feed)[output]
        return error_of(measure(right, found)) if found.shape == right.shape else math.inf

    def alone(nodes: Sequence[Node]) -> float:
        return moved(but=_joined(nodes))

    def drawn(nodes: Sequence[Node]) -> float:
        return moved(draw="1", at=_joined(nodes))

    lab.progress(f"measuring the cost of each quantizer of {file.path.name if file.path else 'the file'} costs")
    activations = [node for node in file.graph.nodes if rounds_activations(node)]
    weights = [node for node in file.graph.nodes if reads_integer_weights(file.graph, node)]
    kinds = ((activations, False, alone), (weights, True, drawn))
    return _costliest([_Group.of(nodes, of_weight, cost) for nodes, of_weight, cost in kinds if nodes])


def error_without(
    inv: Investigation, file: Model, feed: Feed, output: str, costs: Sequence[RoundingCost], golden: np.ndarray
) -> float:
    """Return the distance of a file's output from the network's when given ops do not round activations.

    Raises:
        EngineError: When the file cannot be evaluated.
    """
    passing = {each.node.name for each in costs}
    rest = [node for node in file.graph.nodes if rounds_activations(node) and node.name not in passing]
    spec = UNBOUNDED.with_options({**UNBOUNDED.options, "but": _joined(rest) or "none"})
    found = inv.lab.outputs(spec, file, feed)[output]
    return error_of(measure(np.asarray(golden, np.float64), found)) if found.shape == golden.shape else math.inf


@frozen_dataclass
class _Group:
    """Consecutive ops, and their cost together."""

    nodes: Sequence[Node]
    of_weight: bool
    cost: Callable[[Sequence[Node]], float]
    error: float

    @classmethod
    def of(cls, nodes: Sequence[Node], of_weight: bool, cost: Callable[[Sequence[Node]], float]) -> "_Group":
        return cls(nodes, of_weight, cost, cost(nodes))

    def halves(self) -> list["_Group"]:
        middle = len(self.nodes) // 2
        return [_Group.of(part, self.of_weight, self.cost) for part in (self.nodes[:middle], self.nodes[middle:])]


def _costliest(groups: list[_Group]) -> list[RoundingCost]:
    """Return the costliest op, and those whose cost is significant next to it.

    The costliest group is divided again and again. Errors add in power, so that no op costs more than its group: a
    single op on top is the next costliest.
    """
    found: list[RoundingCost] = []
    while groups and len(found) < MOST_COSTS:
        top = max(groups, key=lambda group: group.error)
        groups.remove(top)
        if top.error <= 0.0 or (found and not counts(top.error, found[0].error)):
            break
        if len(top.nodes) > 1:
            groups += top.halves()
        else:
            found.append(RoundingCost(top.nodes[0], top.of_weight, top.error))
    return sorted(found, key=lambda each: -each.error)


def _joined(nodes: Sequence[Node]) -> str:
    return "+".join(node.name for node in nodes)

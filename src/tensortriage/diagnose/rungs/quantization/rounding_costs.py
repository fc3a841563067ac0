"""What the rounding of a quantized file costs at its outputs, op by op, in float64.

The cost of an op is what it moves an output by when it alone rounds: of activations, by a file whose other quantizers
pass everything on; of weights, by another rounding of its integers. Ops are first asked in groups that follow each
other, and only groups that cost something are divided.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import counts
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.stands_for import UNBOUNDED
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import reads_integer_weights, rounds_activations


@dataclasses.dataclass(frozen=True, slots=True)
class RoundingCost:
    """What one op costs.

    Attributes:
        node: The op that rounds activations, or reads rounded weights.
        of_weight: Whether it is the rounding of its weights.
        error: Relative RMS error of the output when it alone rounds.
    """

    node: Node
    of_weight: bool
    error: float


def rounding_costs(
    inv: Investigation, file: Model, feed: Feed, output: str, *, unrounded: EngineSpec
) -> list[RoundingCost]:
    """Return the ops of a file whose rounding costs an output something, the costliest first.

    Args:
        inv: The investigation, of the network that the file stands for.
        file: The quantized file.
        feed: Its inputs.
        output: The output.
        unrounded: The evaluation of the unrounded file.

    Raises:
        EngineError: When the file cannot be evaluated.
    """
    right = inv.lab.outputs(unrounded, file, feed)[output]

    def moved(**options: str) -> float:
        found = inv.lab.outputs(unrounded.with_options({**unrounded.options, **options}), file, feed)[output]
        return error_of(measure(right, found)) if found.shape == right.shape else math.inf

    def alone(nodes: Sequence[Node]) -> float:
        return moved(but=_joined(nodes))

    def drawn(nodes: Sequence[Node]) -> float:
        return moved(draw="1", at=_joined(nodes))

    inv.progress(f"measuring what each quantizer of {file.path.name if file.path else 'the file'} costs")
    activations = [node for node in file.graph.nodes if rounds_activations(node)]
    weights = [node for node in file.graph.nodes if reads_integer_weights(file.graph, node)]
    found = [RoundingCost(node, False, error) for node, error in _each(activations, alone)]
    found += [RoundingCost(node, True, error) for node, error in _each(weights, drawn)]
    largest = max((each.error for each in found), default=0.0)
    return sorted((each for each in found if counts(each.error, largest)), key=lambda each: -each.error)


def error_without(
    inv: Investigation, file: Model, feed: Feed, output: str, costs: Sequence[RoundingCost], golden: np.ndarray
) -> float:
    """Return how far an output of a file is from the network's when some of its ops do not round activations.

    Raises:
        EngineError: When the file cannot be evaluated.
    """
    passing = {each.node.name for each in costs}
    rest = [node for node in file.graph.nodes if rounds_activations(node) and node.name not in passing]
    spec = UNBOUNDED.with_options({**UNBOUNDED.options, "but": _joined(rest) or "none"})
    found = inv.lab.outputs(spec, file, feed)[output]
    return error_of(measure(np.asarray(golden, np.float64), found)) if found.shape == golden.shape else math.inf


def _each(nodes: Sequence[Node], cost: Callable[[Sequence[Node]], float]) -> list[tuple[Node, float]]:
    """Return the cost of each node of those groups whose cost counts."""
    size = max(1, math.isqrt(len(nodes)))
    groups = [nodes[start : start + size] for start in range(0, len(nodes), size)]
    together = [(group, cost(group)) for group in groups]
    largest = max((error for _, error in together), default=0.0)
    found = []
    for group, error in together:
        if counts(error, largest) and error > 0.0:
            found += [(node, cost([node])) for node in group] if len(group) > 1 else [(group[0], error)]
    return found


def _joined(nodes: Sequence[Node]) -> str:
    return "+".join(node.name for node in nodes)

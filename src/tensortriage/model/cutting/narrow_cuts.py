"""Places to cut a model into consecutive blocks with few values to carry from one to the next.

Between any two nodes of the topological order some values are alive: made before, used after. In a network of repeated
blocks that is one hidden state between two blocks and many tensors inside one, so the gaps with the fewest are the
borders that its author drew. Blocks are as large as their weights may be, and end at the narrowest gap of their second
half.
"""

import itertools
import math
from collections.abc import Iterable, Mapping

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.cut_units import inseparable_units
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.values.spec import ValueSpec


@frozen_dataclass
class ModelBlock:
    """Consecutive nodes, with the values that cross their borders.

    Attributes:
        nodes: Names, in topological order; Constant nodes are left out, they come along with their users.
        inputs: Values that they use and do not make, constants left out, in order of first use.
        outputs: Values that later nodes use or the model returns, in order.
        weight_bytes: Size of the weights that they use.
    """

    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: int


def blocks_of(model: Model, *, weight_bytes: int) -> tuple[ModelBlock, ...]:
    """Cut a model into blocks, in topological order; together they hold every node but the Constant nodes once.

    Takes time linear in the number of nodes and uses of values.

    Args:
        model: The model.
        weight_bytes: Most weights of a block; a single node that uses more is a block of its own. Nodes that exchange
            sequences are never parted.
    """
    graph = model.graph
    nodes = [node for node in graph.nodes if node.op_type != "Constant" or node.domain]
    sizes = {name: _bytes(spec) for name, spec in graph.initializers.items()}
    width = _widths(model, nodes)
    ends: list[int] = []
    begin = 0
    while begin < len(nodes):
        ends.append(_end(nodes, begin, sizes, width, weight_bytes))
        begin = ends[-1]
    return tuple(_block(graph, nodes[begin:end], sizes) for begin, end in itertools.pairwise([0, *ends]))


def _end(nodes: list[Node], begin: int, sizes: Mapping[str, int], width: list[float], weight_bytes: int) -> int:
    """Return where the block that begins at a node ends: the narrowest gap with at least half of the weights before."""
    seen: set[str] = set()
    total, best, halfway = 0, math.inf, False
    end = begin
    for place in range(begin, len(nodes)):
        new = {name for name in nodes[place].uses if name in sizes and name not in seen}
        total += sum(sizes[name] for name in new)
        if total > weight_bytes and end > begin:
            return end
        seen |= new
        if not halfway and total >= weight_bytes / 2:
            halfway, best = True, math.inf
        if width[place] <= best and width[place] < math.inf:
            best, end = width[place], place + 1
    return len(nodes)


def _widths(model: Model, nodes: list[Node]) -> list[float]:
    """Return for the gap behind each node how many values are alive in it; infinitely many where none may be cut."""
    place = {node.name: index for index, node in enumerate(nodes)}
    change = [0] * (len(nodes) + 1)
    for index, node in enumerate(nodes):
        for value in filter(None, node.outputs):
            last = max((place[user.name] for user in model.graph.consumers(value)), default=index)
            change[index] += 1
            change[last] -= 1
    width: list[float] = list(itertools.accumulate(change[: len(nodes)]))
    for unit in inseparable_units(model):
        members = [place[node.name] for node in unit]
        for gap in range(min(members), max(members)):
            width[gap] = math.inf
    return width


def _block(graph: Graph, nodes: list[Node], sizes: Mapping[str, int]) -> ModelBlock:
    own = {node.name for node in nodes}
    made = dict.fromkeys(value for node in nodes for value in node.outputs if value)
    used = dict.fromkeys(value for node in nodes for value in node.uses)
    leaving = (
        value
        for value in made
        if value in graph.output_names or any(user.name not in own for user in graph.consumers(value))
    )
    return ModelBlock(
        nodes=tuple(node.name for node in nodes),
        inputs=tuple(value for value in used if value not in made and value not in graph.constants),
        outputs=tuple(leaving),
        weight_bytes=sum(sizes[value] for value in used if value in sizes),
    )


def largest_weight(model: Model, block: ModelBlock) -> tuple[str, str, int]:
    """Return the largest weight of a block, the first node that uses it, and its size in bytes."""
    graph = model.graph
    weights = [name for node in block.nodes for name in graph.node(node).uses if name in graph.initializers]
    weight = max(weights, key=lambda name: _bytes(graph.initializers[name]))
    user = next(node for node in block.nodes if weight in graph.node(node).uses)
    return weight, user, _bytes(graph.initializers[weight])


def weights_bytes(specs: Iterable[ValueSpec]) -> int:
    """Return the total size of weights."""
    return sum(map(_bytes, specs))


def _bytes(spec: ValueSpec) -> int:
    if spec.dtype is None or spec.shape is None or not spec.dtype.bits:
        return 0
    return math.prod(spec.sizes) * spec.dtype.bits // 8

"""The ONNX nodes of a region of an optimizing engine, when the engine names only some of them.

Engines name the last operation of a fused region, and some others; a region executes besides these every node on the
way back to nodes of other regions. Every node is in one region at most, the first that claims it; nodes that only
compute constants or shapes are in none unless the engine names them.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Graph


def place(named: Sequence[Iterable[str]], graph: "Graph", inputs: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the nodes of every region, in graph order.

    Args:
        named: Per region, the names of nodes that the engine gives for it.
        graph: Index of the model.
        inputs: Names of the model's inputs: values that do not depend on them are constant.
    """
    claimed: set[str] = set()
    claims: list[list[str]] = []
    for names in named:
        claims.append([name for name in dict.fromkeys(names) if name and name not in claimed])
        claimed.update(claims[-1])
    computed = {node.name for node in graph.descendants(tuple(inputs))}
    claimed |= {node.name for node in graph.nodes if node.name not in computed or {*node.outputs} & graph.shape_like}
    placed = []
    for claim in claims:
        nodes = _executed(claim, graph, claimed)
        claimed.update(nodes)
        placed.append(nodes)
    return placed


def _executed(names: Iterable[str], graph: "Graph", taken: Collection[str]) -> tuple[str, ...]:
    found = {name: graph.node(name) for name in names}
    pending = list(found.values())
    while pending:
        for value in pending.pop().uses:
            node = graph.producer(value)
            if node is not None and node.name not in taken and node.name not in found:
                found[node.name] = node
                pending.append(node)
    return tuple(node.name for node in sorted(found.values(), key=lambda node: node.index))

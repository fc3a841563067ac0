"""Which value of a PyTorch network each value of its ONNX model stands for, as the exporter's metadata tell.

A node of ``torch.export``'s graph becomes one or more ONNX nodes; the one value that leaves them is the node's. A
module becomes the ONNX nodes inside it, and the one value that leaves those is what it returns. Where several values
leave, nothing is said.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model


@dataclasses.dataclass(frozen=True, slots=True)
class TracedValue:
    """Where a value is in the network.

    Attributes:
        fx_node: Name of the node of ``torch.export``'s graph; empty when unknown.
        module: Path of the module that returns it; empty for none.
    """

    fx_node: str = ""
    module: str = ""


def traced_values(model: Model) -> Mapping[str, TracedValue]:
    """Return what is known of the values of a model, by ONNX name."""
    graph, outputs = model.graph, {spec.name for spec in model.outputs}
    by_fx_node: dict[str, list[str]] = defaultdict(list)
    by_module: dict[str, list[str]] = defaultdict(list)
    for node in graph.nodes:
        origin = graph.origin(node.name)
        if origin.fx_node:
            by_fx_node[origin.fx_node].append(node.name)
        for module in around(origin.module):
            by_module[module].append(node.name)
    found: dict[str, TracedValue] = {}
    for fx_node, nodes in by_fx_node.items():
        if len(values := leaving(graph, nodes, outputs)) == 1:
            found[values[0]] = TracedValue(fx_node)
    for module in sorted(by_module, key=lambda path: path.count(".")):  # the innermost one is said last
        if len(values := leaving(graph, by_module[module], outputs)) == 1:
            known = found.get(values[0], TracedValue())
            found[values[0]] = dataclasses.replace(known, module=module)
    return found


def around(module: str) -> Iterable[str]:
    """Yield a module and those around it, without the network itself."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def leaving(graph: Graph, nodes: Collection[str], outputs: Collection[str]) -> list[str]:
    """Return the values that nodes make for others, or for the user."""
    inside = set(nodes)
    made = (value for name in nodes for value in graph.node(name).outputs if value)
    return [
        value for value in made if value in outputs or any(user.name not in inside for user in graph.consumers(value))
    ]

"""The smallest sets of nodes that can be cut out of a model with nothing but tensors crossing the border."""

import onnx_ir as ir

from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.values.grouping import grouped


@collector_paused()
def inseparable_units(model: Model) -> tuple[tuple[Node, ...], ...]:
    """Return the nodes of the main graph, Constant nodes left out, in topological order.

    Nodes that make and use one sequence, optional or map form one unit; every other node is a unit of its own.
    """
    graph = model.graph
    leader: dict[int, int] = {node.index: node.index for node in graph.nodes}

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    for value in _no_tensors(model):
        members = [*filter(None, [graph.producer(value)]), *graph.consumers(value)]
        for node in members[1:]:
            first, second = sorted((find(members[0].index), find(node.index)))
            leader[second] = first
    units = grouped((find(node.index), node) for node in graph.nodes if node.op_type != "Constant" or node.domain)
    return tuple(map(tuple, units.values()))


def _no_tensors(model: Model) -> set[str]:
    types = infer_types(model.ir, {})
    made = (value for node in model.ir.graph for value in node.outputs)
    return {value.name or "" for value in made if value in types and not isinstance(types[value], ir.TensorType)} - {""}

"""Modules and lines of the source network that culprits come from: the names by which users know their network."""

import dataclasses
from collections.abc import Sequence

from tensortriage.diagnose.state.verdict import Culprit
from tensortriage.model.ir.graph import Graph
from tensortriage.model.provenance.path_names import common_pattern


def with_origin(culprit: Culprit, graphs: Sequence[Graph]) -> Culprit:
    """Return a culprit with its origin, from the first graph that has it."""
    graph = next((graph for graph in graphs if culprit.node in graph), None)
    if graph is None:
        return culprit
    shown_at = _shown_at(culprit, graph, graphs)
    names = [culprit.node, *(culprit.instances if len(culprit.instances) > 1 else ())]
    own, *copies = [graph.origin(name) for name in names]
    repeated = common_pattern([copy.module for copy in copies])
    return dataclasses.replace(
        culprit,
        origin=culprit.origin if culprit.origin.is_known else own,
        repeated_module=repeated if "*" in repeated else "",
        shown_at=shown_at,
    )


def _shown_at(culprit: Culprit, graph: Graph, graphs: Sequence[Graph]) -> str:
    """Return where the result of a culprit that the first graph lacks shows in it: a quantizer of another file."""
    own = graphs[0]
    for node in graph.descendants([culprit.value]) if graph is not own else ():
        if node.name in own:
            return own.node(node.name).outputs[0]
        if alike := next((name for name in node.outputs if own.producer(name)), ""):
            return alike
    return ""

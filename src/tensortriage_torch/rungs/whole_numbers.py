"""Whole numbers that an exporter computes in floating point: exact in PyTorch, rounded above 2^24 in the model.

Such an error vanishes next to that of float32, and healthy evaluations of the model may round another way each. But an
operation that takes whole numbers and gives whole numbers is exact in PyTorch: where the model gives anything else for
the same numbers, the translation is wrong, whatever envelope the model has.
"""

from collections.abc import Collection, Mapping

from tensortriage.diagnose.sdk import (
    EXTERNAL,
    Dispute,
    DType,
    Feed,
    Graph,
    Investigation,
    MemoryStore,
    Model,
    StoredValues,
    ValueSpec,
    between,
    distances,
    error_of,
    value_specs,
)
from tensortriage_torch.rungs.network_values import NetworkValues
from tensortriage_torch.traced_values import traced_values

IN_FLOATING_POINT = "whole numbers become float32 ones there, which are exact up to 2^24 only"


def inexact_integers(inv: Investigation, feed: Feed, values: NetworkValues) -> Mapping[str, Dispute]:
    """Return the first such whole number and the differences after it, in topological order; empty for none.

    The model is evaluated only where it has an operation on whole numbers with a floating point number inside.

    Raises:
        EngineError: When the model cannot be evaluated.
    """
    specs = value_specs(inv.model)
    suspects = [
        name
        for name in values.names
        if values.arrays[name].dtype.kind in "iu" and _may_be_inexact(inv.model.graph, specs, name, values.arrays)
    ]
    if not suspects:
        return {}
    graph, stored = inv.model.graph, StoredValues("", MemoryStore(values.arrays), values.names)
    figures = distances(inv.setting(feed), values.names, {}, stored=stored, what="whole numbers")[EXTERNAL]
    wrong = {name: error_of(figure) for name, figure in figures.items() if figure.mismatches}
    for name in suspects:
        if name in wrong and not any(given in wrong for given in _given(graph, name, values.arrays)):
            later = values.names[values.names.index(name) :]
            return {each: Dispute(each, wrong[each], 0.0) for each in later if each in wrong}
    return {}


def may_have_inexact_integers(model: Model) -> bool:
    """Return whether a file names such an operation: otherwise the network need not be queried."""
    known = {name for name, place in traced_values(model).items() if place.fx_node}
    specs = value_specs(model)
    return any(_may_be_inexact(model.graph, specs, name, known) for name in known)


def _may_be_inexact(graph: Graph, specs: Mapping[str, ValueSpec], name: str, known: Collection[str]) -> bool:
    """Return whether one operation of the network makes a value from integers by way of floats.

    Only the network shows whether it is whole itself: the file may convert it back behind the operation.
    """
    if graph.producer(name) is None or (name in specs and specs[name].dtype is DType.BOOL):
        return False
    nodes = between(graph, name, known)
    operations = {graph.origin(node.name).fx_node for node in nodes}
    if len(operations) != 1 or "" in operations:
        return False
    inner = [specs[output].dtype for node in nodes for output in node.outputs if output in specs and output != name]
    given = [specs[each].dtype if each in specs else None for each in _given(graph, name, known)]
    return any(dtype is not None and dtype.is_float for dtype in inner) and all(
        dtype is not None and not dtype.is_float for dtype in given
    )


def _given(graph: Graph, name: str, known: Collection[str]) -> list[str]:
    """Return the values that a value is computed from, without the model's own."""
    nodes = between(graph, name, known)
    made = {output for node in nodes for output in node.outputs}
    return [each for node in nodes for each in node.uses if each not in made and each not in graph.initializers]

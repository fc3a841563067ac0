"""The share of given nodes in a model's heavy work."""

import dataclasses
from collections.abc import Collection, Mapping

from tensortriage.precision.sdk import Graph, ValueSpec, multiplications


def shares(graph: Graph, specs: Mapping[str, ValueSpec], nodes: Collection[str]) -> dict[str, float]:
    """Return the share of every node in the multiplications of all; nothing when sizes are not known.

    Args:
        graph: The graph.
        specs: Shapes of values, as far as they are known; sizes that vary count as 1.
        nodes: Names of the nodes.
    """
    wanted = {value for name in nodes for value in (*graph.node(name).uses, *graph.node(name).outputs)}
    known_specs = {value: spec for value in wanted if (spec := graph.constants.get(value) or specs.get(value))}
    fixed = {
        value: dataclasses.replace(spec, shape=tuple(size if isinstance(size, int) else 1 for size in spec.shape))
        for value, spec in known_specs.items()
        if spec.shape is not None
    }
    counts = {name: multiplications(graph.node(name), fixed) for name in nodes}
    known = {name: count for name, count in counts.items() if count is not None}
    total = sum(known.values())
    return {name: count / total for name, count in known.items()} if total and len(known) == len(counts) else {}

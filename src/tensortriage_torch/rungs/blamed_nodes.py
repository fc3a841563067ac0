"""Which node of an exported model, or constant in it, makes a value that is not the network's; and why, in words."""

import math
from collections.abc import Collection, Sequence

import numpy as np

from tensortriage.diagnose.sdk import (
    Culprit,
    Dispute,
    Graph,
    Node,
    NodeOrigin,
    error_of,
    error_size,
    measure,
)
from tensortriage_torch.rungs.network_values import (
    NetworkValues,
)

_MOST_NODES = 8
_MOVES = frozenset(
    {
        "Transpose",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Identity",
        "Cast",
        "Expand",
        "Concat",
        "Slice",
        "Split",
    }
)
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


def wrong_nodes(graph: Graph, nodes: Sequence[Node], dispute: Dispute, values: NetworkValues) -> Culprit:
    """Return the culprit of a value whose operands are right: a node of those that make it, all of them listed."""
    blamed = unlike_the_network(graph, nodes, values.trace.operations)
    origin = graph.origin(blamed.name)
    made_of = [each.origin for each in values.trace.made_of(origin.fx_node)] or [origin]
    left_out = [each.origin for each in values.trace.left_out(origin.fx_node)]
    listed = nodes if blamed in nodes[:_MOST_NODES] else [blamed, *(node for node in nodes if node is not blamed)]
    reason = _reason(listed, dispute, made_of[::-1], values.described(origin.module))
    if called := kind_of(blamed, made_of):
        origin = called
    elif left_out:
        origin, reason = left_out[0], f"the model leaves out {_listed(left_out)}; {reason}"
    return Culprit(
        blamed.name,
        blamed.op_type,
        dispute.value,
        local_error=dispute.error,
        reason=reason,
        change="export",
        origin=origin,
    )


def kind_of(node: Node, origins: Sequence[NodeOrigin]) -> NodeOrigin | None:
    """Return the operation named like a node's type; None when it is the first one, or there is none."""
    word = node.op_type.lower()
    called = [origin for origin in origins if word in origin.operator.replace("_", "")]
    return called[0] if called and called[0] != origins[0] else None


def unlike_the_network(graph: Graph, nodes: Sequence[Node], operations: Collection[str]) -> Node:
    """Return the first node of an operation that the network lacks; if it has all of them, the last one that computes.

    Nodes that only move an operation's result, as those around a GRU do, prove nothing about it.
    """
    for node in nodes if operations else ():
        name = graph.origin(node.name).fx_node
        if name and name not in operations:
            return node
    last = graph.origin(nodes[-1].name).fx_node
    made = [node for node in nodes if graph.origin(node.name).fx_node == last] if last else nodes
    whole = next((node for node in reversed(made) if node.op_type in _RECURRENT), None)
    return whole or next((node for node in reversed(made) if last and node.op_type not in _MOVES), nodes[-1])


def wrong_constant(graph: Graph, nodes: Sequence[Node], dispute: Dispute, values: NetworkValues) -> Culprit | None:
    """Return the constant, computed by the exporter, that makes a result wrong; None when all are the network's.

    A constant that is off by no more than healthy engines are at the result is right.
    """
    errors = [
        (_constant_error(graph.weight(name), values.folded[name]), node, name)
        for node in nodes
        for name in node.uses
        if name in values.folded
    ]
    wrong = [each for each in errors if not each[0] <= dispute.limit]
    if not wrong:
        return None
    error, node, name = max(wrong, key=lambda each: each[0])
    origin = values.trace.operations[name].origin
    made_of = [each.origin for each in values.trace.made_of(name)][::-1]
    what = f"the constant '{name}', into which the exporter folded {_listed(made_of)}"
    off = f"is off by {error_size(error)}"
    if (shape := values.folded[name].shape) != graph.weight(name).shape:
        off = f"has another shape, {list(graph.weight(name).shape)} instead of {list(shape)},"
    if baked := [each.origin for each in values.trace.left_out(name)]:
        origin, what = baked[0], f"{what}, though it depends on the inputs"
    listed = f"{node.op_type} '{node.name}'"
    reason = f"{what}, {off} from PyTorch's result, and makes {listed} wrong"
    return Culprit(
        node.name, node.op_type, dispute.value, local_error=error, reason=reason, change="export", origin=origin
    )


def _constant_error(constant: np.ndarray, network: np.ndarray) -> float:
    """Return the relative RMS error of a constant; inf for another shape."""
    return error_of(measure(network, constant)) if constant.shape == network.shape else math.inf


def _listed(made_of: Sequence[NodeOrigin]) -> str:
    """Return operators and the lines they are called in, once each."""
    operators = dict.fromkeys(map(_plain, made_of))
    lines = dict.fromkeys(origin.source for origin in made_of if origin.source)
    more = f" and {len(operators) - _MOST_NODES} more" if len(operators) > _MOST_NODES else ""
    return ", ".join(list(operators)[:_MOST_NODES]) + more + (f" ({', '.join(lines)})" if lines else "")


def _plain(origin: NodeOrigin) -> str:
    return origin.operator.removesuffix(".default").removesuffix(".Tensor") or "the computation in PyTorch"


def _reason(nodes: Sequence[Node], dispute: Dispute, made_of: Sequence[NodeOrigin], described: str) -> str:
    listed = ", ".join(f"{node.op_type} '{node.name}'{_settings(node)}" for node in nodes[:_MOST_NODES])
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    off = f"has shape {list(dispute.shape)} in PyTorch" if dispute.shape else f"is off by {error_size(dispute.error)}"
    remark = f"; in PyTorch it is {described}" if described else ""
    what = ", ".join(dict.fromkeys(_plain(origin) for origin in made_of[:_MOST_NODES]))
    return f"{what} became {listed}{more}, whose result {off}, though all their operands agree{remark}"


def _settings(node: Node) -> str:
    """Return the attributes of a node that are numbers or words, in brackets."""
    plain = {
        key: f"{value:g}" if isinstance(value, float) else value
        for key, value in node.attributes.items()
        if isinstance(value, (int, float, str, tuple))
    }
    return f" ({', '.join(f'{key}={value}' for key, value in plain.items())})" if plain else ""

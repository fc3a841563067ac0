"""Is the exported model still the network? PyTorch's own values are judged before any engine is.

The network runs in its own interpreter; its outputs, and every inner value that the exporter's metadata name, are held
against the envelope of the ONNX model. What lies outside was changed by the export: the first such value on the way to
a wrong output, all values before it being right, is what the nodes between them make wrong.
"""

from collections.abc import Collection, Mapping, Sequence

from tensortriage.compare.judgement.relative_error import say
from tensortriage.diagnose.rungs.premises.network_values import NetworkValues, network_values
from tensortriage.diagnose.state.confidence import CHANGED_UNNAMED, OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Culprit, Verdict, VerdictKind
from tensortriage.envelope.reference import Dispute, disputes
from tensortriage.errors import EngineError
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.values.store import MemoryStore

QUESTION = "does the exported model compute what the network does?"
_MOST_NODES = 8


def network_changed(inv: Investigation) -> Verdict | None:
    """Compare the network with its exported model; a difference at an output is the verdict."""
    network = inv.question.network
    if network is None:
        return None
    since = inv.mark()
    worst: tuple[Feed, NetworkValues, dict[str, Dispute]] | None = None
    values: NetworkValues | None = None
    for feed in inv.question.feeds:
        try:
            values = network_values(inv, network, feed, inner=worst is None)
            store = MemoryStore(values.arrays)
            found = {each.value: each for each in disputes(inv, inv.model, feed, values.names, store)}
        except EngineError as failure:
            return _unanswered(inv, failure)
        if any(spec.name in found for spec in inv.model.outputs):
            worst = feed, values, found
            break
    assert values is not None
    if worst is None:
        inv.answered(QUESTION, f"yes: {values.share}", since=since, **values.evidence)
        return None
    feed, values, found = worst
    outputs = [spec.name for spec in inv.model.outputs if spec.name in found]
    culprit = _first(inv.model.graph, found, values, outputs)
    inv.answered(
        QUESTION,
        f"no: output '{outputs[0]}' differs by {say(found[outputs[0]].error)} on {feed.name}; {values.share}",
        since=since,
        output=outputs[0],
        relative_error=found[outputs[0]].error,
        disputed=list(found)[:_MOST_NODES],
        **values.evidence,
    )
    return _verdict(inv, values, found, outputs, culprit)


def _unanswered(inv: Investigation, failure: EngineError) -> Verdict:
    inv.answered(QUESTION, f"cannot be asked: {failure.message}", since=inv.mark())
    return inv.verdict(
        VerdictKind.COMPARISON_UNSOUND, OBSERVED, f"the network cannot be compared with its model: {failure.message}"
    )


def _verdict(
    inv: Investigation,
    values: NetworkValues,
    found: Mapping[str, Dispute],
    outputs: Sequence[str],
    culprit: Culprit | None,
) -> Verdict:
    error = say(found[outputs[0]].error)
    summary = f"the exported model is not the network: output '{outputs[0]}' differs by {error} from PyTorch's"
    if culprit is not None:
        place = inv.model.graph.origin(culprit.node).label or f"{culprit.op_type} '{culprit.node}'"
        summary += f"; it begins in {place}: {culprit.reason}"
    if values.training:
        summary += "; the network is in training mode: call .eval() before it is exported and compared"
    return inv.verdict(
        VerdictKind.MODEL_CHANGED,
        OBSERVED if culprit else CHANGED_UNNAMED,
        summary,
        culprits=[culprit] if culprit else [],
        next=[inv.command("run", "--reference", str(inv.question.network), "--target", str(inv.question.reference))],
    )


def _first(graph: Graph, found: Mapping[str, Dispute], values: NetworkValues, outputs: Sequence[str]) -> Culprit | None:
    """Return who makes the first wrong value that wrong values follow, on the way to a wrong output."""
    on_the_way = {value for node in graph.ancestors(outputs) for value in node.outputs}
    for value in found:
        producer = graph.producer(value)
        if value not in on_the_way or producer is None:
            continue
        followers = next_known(graph, value, values.arrays)
        if value in outputs or any(follower in found for follower in followers):
            nodes = between(graph, value, values.arrays)
            blamed = nodes[-1]
            origin = graph.origin(blamed.name)
            return Culprit(
                blamed.name,
                blamed.op_type,
                value,
                local_error=found[value].error,
                reason=_reason(nodes, found[value], origin.operator, values.described(origin.module)),
                change="export",
            )
    return None


def _reason(nodes: Sequence[Node], dispute: Dispute, operator: str, described: str) -> str:
    listed = ", ".join(f"{node.op_type} '{node.name}'{_settings(node)}" for node in nodes[:_MOST_NODES])
    more = f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else ""
    what = operator.removesuffix(".default").removesuffix(".Tensor") or "what PyTorch computes there"
    off = f"has shape {list(dispute.shape)} in PyTorch" if dispute.shape else f"is off by {say(dispute.error)}"
    said = f"; in PyTorch it is {described}" if described else ""
    return f"{what} became {listed}{more}, whose result {off}, though all they are made of agrees{said}"


def _settings(node: Node) -> str:
    """Return the attributes of a node that are numbers or words, in brackets."""
    plain = {
        key: f"{value:g}" if isinstance(value, float) else value
        for key, value in node.attributes.items()
        if isinstance(value, (int, float, str, tuple))
    }
    return f" ({', '.join(f'{key}={value}' for key, value in plain.items())})" if plain else ""


def next_known(graph: Graph, value: str, known: Collection[str]) -> set[str]:
    """Return the known values that are made of a value without another known one between."""
    found: set[str] = set()
    pending, seen = [value], {value}
    while pending:
        for user in graph.consumers(pending.pop()):
            for output in user.outputs:
                if output and output not in seen:
                    seen.add(output)
                    if output in known:
                        found.add(output)
                    else:
                        pending.append(output)
    return found


def between(graph: Graph, value: str, known: Collection[str]) -> tuple[Node, ...]:
    """Return the nodes that make a value of known values, in topological order, those of constants left out."""
    found: dict[int, Node] = {}
    pending = [value]
    while pending:
        node = graph.producer(pending.pop())
        if node is None or node.index in found or (not node.uses and node.op_type == "Constant"):
            continue
        found[node.index] = node
        pending += [name for name in node.uses if name not in known]
    return tuple(found[index] for index in sorted(found))

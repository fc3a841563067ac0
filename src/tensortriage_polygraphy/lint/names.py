"""Names that a file gives twice, and unused parts, found before a repair of the file hides them."""

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx

from tensortriage.model.sdk import all_nodes, bodies, op_label
from tensortriage.sdk import LintFinding, Severity

SLUGS: Mapping[str, str] = {
    "node-name-twice": "Two nodes with one name: precision settings and reports by name mean either",
    "nodes-unnamed": "Nodes without names, which cannot be addressed",
    "node-unused": "A node that no output depends on",
    "input-unused": "An input that no output depends on: engines drop it, and then refuse to be fed it",
    "initializer-unused": "An initializer that nothing uses",
    "function-unused": "A model-local function that nothing calls",
}

_MOST = 50


def check_file(proto: onnx.ModelProto) -> Iterator[LintFinding]:
    """Yield the defects of names and uses in the main graph of a parsed model."""
    graph = proto.graph
    yield from _names(graph)
    used = {name for node in all_nodes(graph.node) for name in node.input if name}
    used |= {info.name for info in graph.output}
    for node in all_nodes(graph.node):
        used |= {info.name for _, body in bodies(node) for info in body.output}
    initializers = {tensor.name for tensor in graph.initializer}
    needed = _needed(graph)
    for node in graph.node:
        if needed.isdisjoint(node.output):
            yield _finding("node-unused", node.name, op_label(node), "", "no output depends on its results",
                           "remove it: triage surgeon sanitize --cleanup")  # fmt: skip
    for info in graph.input:
        if info.name not in needed and info.name not in initializers:
            yield _finding("input-unused", "", "", info.name, "it must be fed and changes nothing",
                           "remove it: triage surgeon sanitize --cleanup")  # fmt: skip
    unused = sorted(initializers - used)
    for name in unused[:_MOST]:
        yield _finding("initializer-unused", "", "", name, "it only takes up space",
                       "remove it: triage surgeon sanitize --cleanup")  # fmt: skip
    called = {(node.domain, node.op_type) for nodes in _node_lists(proto) for node in all_nodes(nodes)}
    for function in proto.functions:
        if (function.domain, function.name) not in called:
            place = f"{function.domain}::{function.name}"
            yield _finding("function-unused", "", "", place, "nothing calls it", "remove it from the file")


def _needed(graph: onnx.GraphProto) -> set[str]:
    """Return the values that outputs depend on; nodes may come in any order."""
    makers = {name: node for node in graph.node for name in node.output if name}
    needed = {info.name for info in graph.output}
    ahead = list(needed)
    while ahead:
        node = makers.get(ahead.pop())
        if node is None:
            continue
        read = {name for each in all_nodes([node]) for name in each.input if name}
        read |= {info.name for each in all_nodes([node]) for _, body in bodies(each) for info in body.output}
        ahead += read - needed
        needed |= read
    return needed


def _names(graph: onnx.GraphProto) -> Iterator[LintFinding]:
    counts = Counter(node.name for node in graph.node if node.name)
    for name, count in counts.items():
        if count > 1:
            ops = sorted({op_label(node) for node in graph.node if node.name == name})
            yield LintFinding(
                "node-name-twice",
                Severity.PROBLEM,
                name,
                ", ".join(ops),
                "",
                "",
                f"{count} nodes have this name: settings and reports by name mean any of them",
                "give every node a name of its own: saving the model with triage does",
                "onnx_loader",
            )
    unnamed = [node for node in graph.node if not node.name]
    if unnamed:
        yield _finding(
            "nodes-unnamed",
            "",
            "",
            "",
            f"{len(unnamed)} of {len(graph.node)} nodes have no name, {op_label(unnamed[0])} first",
            "name them: saving the model with triage does",
        )


def _finding(slug: str, node: str, op_type: str, value: str, why: str, cure: str) -> LintFinding:
    return LintFinding(slug, Severity.HINT, node, op_type, value, "", why, cure, "onnx_loader")


def _node_lists(proto: onnx.ModelProto) -> Iterator[list[onnx.NodeProto]]:
    yield list(proto.graph.node)
    for function in proto.functions:
        yield list(function.node)

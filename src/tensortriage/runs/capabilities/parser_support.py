"""Which nodes of a model an engine supports, according to the engine's own parser, without a build.

A parser's answer is cheaper than builds and says less: a node that parses may still find no kernel. Nodes are told by
name where the parser gives one, else by their place in the file.
"""

import dataclasses
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensortriage.engines.capabilities import AsksParser
from tensortriage.model.ir.graph import Node
from tensortriage.model.model import Model
from tensortriage.runs.capabilities.capability import Capability, NodeAnswer, Piece, Support
from tensortriage.runs.outcome import OutcomeKind

_REFUSED = OutcomeKind.BUILD_FAILED.value
_OK = OutcomeKind.OK.value


def ask_parser(
    engine: AsksParser, model: Model, path: Path, options: Mapping[str, str], *, target: str, partition: bool
) -> Capability:
    """Return what a parser makes of a model.

    Args:
        engine: Asked.
        model: The model.
        path: File that holds exactly this model.
        options: Options of the engine.
        target: Spec of the engine, for the result.
        partition: Whether the groups of nodes that the parser tells are wanted.

    Raises:
        EngineMissing: When the engine cannot be used here.
        EngineError: When its parser crashes or hangs.
    """
    started = time.perf_counter()
    told = engine.capability(path, options)
    nodes = model.graph.nodes
    counted = [node for node in nodes if node.op_type != "Constant"]
    refused = _refused(told, nodes)
    behind = {node.name for name in refused for node in model.graph.descendants(model.graph.node(name).outputs)}
    unknown = behind - refused.keys()  # of groups TensorRT says at times that they are not supported, and means others
    answers = tuple(
        dataclasses.replace(_answer(node, refused, unknown), modules=model.graph.origin_labels([node.name]))
        for node in counted
    )
    whole = bool(told["supported"])
    return Capability(
        model=str(path),
        target=target,
        nodes=len(counted),
        outcome=_OK if whole else _REFUSED,
        message="" if whole else "; ".join(dict.fromkeys(refused.values())) or "the parser gave no reason",
        answers=() if whole else answers,
        pieces=tuple(_pieces(told["groups"], nodes, refused, unknown)) if partition else (),
        builds=0,
        build_seconds=round(time.perf_counter() - started, 3),
    )


def _refused(told: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, str]:
    """Return the reason for every node that the parser names."""
    found: dict[str, str] = {}
    names = {node.name for node in nodes}
    for problem in told["problems"]:
        name, index = problem["node"], problem["index"]
        if name not in names and 0 <= index < len(nodes):
            name = nodes[index].name
        found.setdefault(name, f"{problem['reason']} ({problem['code'].lower()})")
    return {name: reason for name, reason in found.items() if name in names}


def _answer(node: Node, refused: Mapping[str, str], unknown: Collection[str]) -> NodeAnswer:
    op_type = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    if node.name in refused:
        return NodeAnswer((node.name,), (op_type,), Support.UNSUPPORTED, _REFUSED, refused[node.name])
    if node.name in unknown:
        why = "it comes after a node that the parser does not support"
        return NodeAnswer((node.name,), (op_type,), Support.UNKNOWN, "", why)
    return NodeAnswer((node.name,), (op_type,), Support.SUPPORTED, _OK, "")


def _pieces(
    groups: Sequence[Mapping[str, Any]], nodes: Sequence[Node], refused: Mapping[str, str], unknown: Collection[str]
) -> Iterator[Piece]:
    """Yield the groups of nodes that the parser tells, and the nodes that it refuses, in order."""
    told = [sorted(group["nodes"]) for group in groups]
    grouped = {index for members in told for index in members}
    told += [[node.index] for node in nodes if node.name in refused and node.index not in grouped]
    for members in sorted(filter(None, told)):
        names = tuple(nodes[index].name for index in members)
        reasons = dict.fromkeys(refused[name] for name in names if name in refused)
        support = Support.UNKNOWN if set(names) & set(unknown) else Support.SUPPORTED
        support = Support.UNSUPPORTED if reasons else support
        outcome = {Support.SUPPORTED: _OK, Support.UNSUPPORTED: _REFUSED}.get(support, "")
        yield Piece(members[0], members[-1], names, support, outcome, "; ".join(reasons))

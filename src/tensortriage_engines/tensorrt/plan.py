"""TensorRT's layers in terms of the model's nodes.

TensorRT calls a layer after its ONNX node where it can. A fused layer lists its nodes; a region that Myelin compiles as
a whole (``ForeignNode``) names the first and the last only, so its nodes follow from the values it makes. Nodes that
conversion to a lower type put in, and layers that only move data between formats, belong to no node.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensortriage.engines.sdk import Plan, Region
from tensortriage_engines.region_nodes import place

if TYPE_CHECKING:
    from tensortriage.engines.sdk import Graph

_RANGE = "..."
_MOVES = "Reformat"
_MADE_UP = re.compile(
    r"(_output(_\d+)?|_\d+|\s*\[[^\]]*\]|_clone_\d+|_myl\d+.*|\s+copy|\s*\(Activation\)|\s*\(Output\))$"
)
_CONVERTED = re.compile(r"^(fp16|bf16|fp32)::")
_NAMELESS = "node_of_"
"""Prefix that TensorRT's parser puts before the name of a value to name a node that has no name."""


def in_terms_of_onnx(plan: Plan, model: Path) -> Plan:
    """Return a plan whose regions name nodes of the model.

    Args:
        plan: Regions with the words of TensorRT's inspector as nodes.
        model: The file that the user gave, before any conversion.
    """
    from tensortriage.engines.sdk import Model

    loaded = Model.load(model)
    named = [list(_named(region, loaded.graph)) for region in plan.regions]
    placed = place(named, loaded.graph, [spec.name for spec in loaded.inputs])
    return Plan(
        tuple(dataclasses.replace(region, nodes=nodes) for region, nodes in zip(plan.regions, placed, strict=True))
    )


def value_of(name: str, graph: "Graph") -> str:
    """Return the ONNX value that a tensor of TensorRT holds; empty when it is none of the model's."""
    while True:
        plain = _CONVERTED.sub("", name)
        if graph.producer(plain) is not None:
            return plain
        shorter = _MADE_UP.sub("", plain)
        if shorter == plain:
            return ""
        name = shorter


def shown_value(name: str, graph: "Graph") -> str:
    """Return the ONNX value that a tensor of this name certainly holds, in any type; empty when that is not certain.

    Names that TensorRT made up from a value's are left out: they may stand for it in another layout, or for a part.
    """
    plain = _CONVERTED.sub("", name)
    return plain if graph.producer(plain) is not None else ""


def _named(region: Region, graph: "Graph") -> Iterator[str]:
    """Yield the nodes that a region is known to execute: those it lists, and those that make its outputs.

    A layer that only copies a value into another format has the value's name on both sides, and executes nothing.
    """
    listed = [found for word in region.nodes if word != _RANGE and (found := _node(word, graph))]
    yield from listed
    if (listed and _RANGE not in region.nodes) or region.kind == _MOVES:
        return
    operands = {value_of(name, graph) for name in region.inputs}
    for name in region.outputs:
        value = value_of(name, graph)
        node = graph.producer(value) if value and value not in operands else None
        if node is not None:
            yield node.name


def _node(word: str, graph: "Graph") -> str:
    """Return the node that a layer's name means; empty when it is none of the model's."""
    word = word.removeprefix(_NAMELESS) if word not in graph else word
    while True:
        if word in graph:
            return word
        shorter = _MADE_UP.sub("", word)
        if shorter == word:
            value = value_of(word, graph)
            producer = graph.producer(value) if value else None
            return producer.name if producer is not None else ""
        word = shorter

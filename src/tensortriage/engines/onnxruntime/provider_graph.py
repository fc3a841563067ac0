"""The regions of a plugin provider, from its dumped graphs and from ONNX Runtime's assignment of nodes to providers.

QNN writes the graph that it hands to the hardware's compiler as JSON: operations with the names of their values, most
of which are still those of the ONNX model, and the type of every value as a number (QnnTypes.h, Qnn_DataType_t).
Nodes that the provider did not take are named by ONNX Runtime (1.24 and later).
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensortriage.engines.base import Region
from tensortriage.engines.onnxruntime.node_map import executed_nodes
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph
from tensortriage.model.model import Model

_TYPES = {
    0x0008: "int8", 0x0016: "int16", 0x0032: "int32", 0x0064: "int64",
    0x0108: "uint8", 0x0116: "uint16", 0x0132: "uint32", 0x0164: "uint64",
    0x0216: "float16", 0x0232: "float32", 0x0264: "float64",
    0x0304: "int4", 0x0308: "int8", 0x0316: "int16", 0x0332: "int32",
    0x0404: "uint4", 0x0408: "uint8", 0x0416: "uint16", 0x0432: "uint32", 0x0508: "bool",
}  # fmt: skip
_FLOAT32 = "float32"
_ADDED = re.compile(r"(_token_\d+|_nchwc|/MatMulAddFusion|/LayerNormFusion|/GeluFusion|_\d+|/)$")
"""Suffixes that ONNX Runtime and QNN append to the names of nodes that they rewrite."""


@frozen_dataclass
class _Operation:
    """An operation of a dumped graph; a `tensortriage.engines.onnxruntime.node_map.Kernel`."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtype: str
    attributes: Mapping[str, object] = dataclasses.field(default_factory=dict)


def placed_regions(
    original: Model,
    graphs: Sequence[Mapping[str, Any]],
    placement: Iterable[Mapping[str, Any]],
    provider: str,
    float_label: str,
) -> tuple[Region, ...]:
    """Return the regions with their providers, in the order of the model's nodes.

    Args:
        original: The model as given to the engine.
        graphs: Dumped graphs; empty for a provider that dumps none, whose parts are then one region each.
        placement: Per part of the graph the ``provider`` and its ``nodes`` (``name``, ``op_type``, ``domain``).
        provider: The requested provider.
        float_label: Type that the provider computes values in which are float32 in its graph; empty for float32.
    """
    graph = original.graph
    elsewhere = [part for part in placement if part["provider"] != provider]
    own = [part for part in placement if part["provider"] == provider]
    placed = {node["name"] for part in elsewhere for node in part["nodes"] if node["name"] in graph}
    known = {*graph.values, *graph.constants, *(spec.name for spec in original.inputs)}
    regions = []
    operations = [operation for dumped in graphs for operation in _operations(dumped["graph"], graph)]
    if operations:
        given = [value for name in placed for value in graph.node(name).outputs]
        for operation, nodes in zip(operations, executed_nodes(operations, graph, known, given=given), strict=True):
            label = float_label if float_label and operation.dtype == _FLOAT32 else operation.dtype
            kept = tuple(name for name in nodes if name not in placed)
            regions.append(Region(operation.name, kept, operation.op_type, label, device=provider))
    else:
        for number, part in enumerate(own):
            nodes = _in_model((node["name"] for node in part["nodes"]), graph)
            regions.append(Region(f"{provider} {number}", nodes, "partition", float_label, device=provider))
    done = {name for region in regions for name in region.nodes}
    for part in elsewhere:
        for node in part["nodes"]:
            nodes = tuple(name for name in _in_model([node["name"]], graph) if name not in done)
            done.update(nodes)
            regions.append(
                Region(node["name"], nodes, node["op_type"], _float_of(nodes, original), device=part["provider"])
            )
    return tuple(_in_order(regions, graph))


def _operations(dumped: Mapping[str, Any], graph: Graph) -> list[_Operation]:
    """Return the operations of a dumped graph, producers first; the file lists them by name."""
    types = {name: _TYPES.get(row.get("data_type"), "") for name, row in dumped.get("tensors", {}).items()}
    left = {}
    for name, row in dumped["nodes"].items():
        outputs = tuple(_value(word, graph) for word in row["output_names"])
        inputs = tuple(_value(word, graph) for word in row["input_names"])
        dtype = next((types[word] for word in row["output_names"] if types.get(word)), "")
        left[name] = _Operation(name, row["type"], inputs, outputs, dtype)
    made_later = {value for operation in left.values() for value in operation.outputs}
    ordered: list[_Operation] = []
    while left:
        ready = [o for o in left.values() if not made_later.intersection(o.inputs)] or list(left.values())
        for operation in ready:
            del left[operation.name]
            made_later.difference_update(operation.outputs)
        ordered += ready
    return ordered


def _value(word: str, graph: Graph) -> str:
    """Return the model's value that a tensor holds: several are named after the node that makes them."""
    if word not in graph or word in graph.values:
        return word
    return graph.node(word).outputs[0]


def _in_model(names: Iterable[str], graph: Graph) -> tuple[str, ...]:
    """Return the model's nodes behind names of nodes that ONNX Runtime may have rewritten, in order."""
    found = {}
    for name in names:
        while name and name not in graph and _ADDED.search(name):
            name = _ADDED.sub("", name)
        if name in graph:
            found[name] = graph.node(name).index
    return tuple(sorted(found, key=found.__getitem__))


def _float_of(nodes: Sequence[str], model: Model) -> str:
    """Return the float type that nodes have in the model; empty for none."""
    from tensortriage.model.shape_inference.value_specs import value_specs

    specs = value_specs(model)
    for name in nodes:
        for value in model.graph.node(name).outputs:
            dtype = specs[value].dtype if value in specs else None
            if dtype is not None and dtype.is_float:
                return dtype.label
    return ""


def _in_order(regions: Sequence[Region], graph: Graph) -> list[Region]:
    """Return regions in the order of the model's nodes; one without nodes stays behind the one before it."""
    last, keyed = -1, []
    for region in regions:
        last = max((graph.node(name).index for name in region.nodes), default=last)
        keyed.append((last, region))
    return [region for _, region in sorted(keyed, key=lambda row: row[0])]

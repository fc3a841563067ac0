"""The layers that the compiler for the board reports, and the values of the ONNX model that they hold.

The table of layers has type, format and place (NPU or CPU) under names that are cut off; the graph that the converter
leaves next to it has the same names in full, several nodes for one layer. Both are in the order of execution. Names of
ONNX nodes and values stay, with endings for the data movements around them: ``fc1/MatMul#2``, ``Add_output_0-rs``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

FUSED = "check3_fuse_ops.onnx"
"""The graph that is compiled, which ``RKNN(verbose=True)`` leaves in the current folder."""
_ROW = re.compile(r"RKNN: \[[\d:.]+\] \d+\s+(\w+)\s+(\w+)\s+(NPU|CPU|GPU)\s.*?(\S+:\S*)\s*$", re.MULTILINE)
_TABLE = "Network Layer Information Table"
_BORDERS = ("InputOperator", "OutputOperator")
_ENDING = re.compile(r"(?:[-_#][a-z0-9_#-]*)?$")
_NORM = "exNorm"
_FORMATS = {"FLOAT16": "float16", "FLOAT": "float32", "INT8": "int8", "UINT8": "uint8", "INT16": "int16"}


def plan(said: str, folder: Path, model: Any) -> Optional[List[Dict[str, Any]]]:
    """Return the layers, each with the values of the model that it makes; None when no table was printed.

    Args:
        said: Output of the compiler.
        folder: Folder of the converter's graph.
        model: The ONNX model.
    """
    _, found, rest = said.rpartition(_TABLE)
    if not found or not (folder / FUSED).is_file():
        return None
    import onnx

    nodes = list(onnx.load_model_from_string((folder / FUSED).read_bytes()).graph.node)
    names = _Names(model)
    regions = []  # type: List[Dict[str, Any]]
    held = {}  # type: Dict[str, Dict[str, Any]]
    for kind, dtype, target, name in _ROW.findall(rest):
        if kind in _BORDERS:
            continue
        row = {
            "name": name, "nodes": [], "kind": kind, "precision": _FORMATS.get(dtype, dtype.lower()),
            "implementation": target,
        }  # type: Dict[str, Any]  # fmt: skip
        regions.append(row)
        for node in nodes:
            full = "{}:{}".format(node.op_type, node.name)
            if node.output[0] not in held and (full.startswith(name) or "{}_{}".format(full, kind).startswith(name)):
                row["name"] = node.name
                held[node.output[0]] = row
                break
    nowhere = {"nodes": []}  # type: Dict[str, Any]
    places = {id(row): number for number, row in enumerate(regions)}
    for node in nodes:
        before = [held[value] for value in node.input if value in held]
        row = held.get(node.output[0]) or max(before, key=lambda row: places.get(id(row), -1), default=nowhere)
        held[node.output[0]] = row
        row["nodes"].extend(names.taken_by(node))
    return regions


class _Names:
    """The names of a model's nodes and values, each given to one converted node only."""

    def __init__(self, model: Any) -> None:
        named = [node for node in model.graph.node if node.name and node.output]
        self._by_node = {node.name: node.output[0] for node in named}
        self._by_value = {value: value for node in model.graph.node for value in node.output if value}
        self._taken: Set[str] = set()
        self._last = {_module(node.name): node.output[0] for node in named}

    def taken_by(self, node: Any) -> List[str]:
        """Return the value that a converted node makes, if names show it: by its own name, else by its result's.

        A normalization bears the name of its first node, and its result is that of the last one of the same module.
        """
        module = _module(node.name) if node.op_type == _NORM else ""
        norm = self._last.get(module) if module else None
        if norm and norm not in self._taken:
            self._taken.update(value for name, value in self._by_node.items() if _module(name) == module)
            return [norm]
        for name, known in ((node.name, self._by_node), (node.output[0], self._by_value), (node.name, self._by_value)):
            for end in range(len(name), 0, -1):
                value = known.get(name[:end])
                if value and value not in self._taken and _ENDING.match(name[end:]):
                    self._taken.add(value)
                    return [value]
        return []


def _module(name: str) -> str:
    """Return the module that a node's name begins with; empty where it names none."""
    return name.rpartition("/")[0]

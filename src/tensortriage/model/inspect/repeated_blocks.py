"""Repeated blocks: the twelve equal layers of a transformer, found by structure alone.

Exporters write the layers of a network one behind the other, so a repeated layer shows as a stretch of nodes in which
every node is alike to the one a fixed distance before it. The stretch that tells most is taken first (many copies tell
more than two large halves), then the best one in what is left. Two copies count as one block only when their canonical
hashes agree: the same operators and attributes, wired alike inside, with constants of the same type and rank in the
same places; names, numbers and what feeds the block from outside do not matter.
"""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.inspect.outline import ConstantFacts, attribute_text, op_label
from tensortriage.model.ir.messages import all_nodes, bodies
from tensortriage.model.provenance.origin import read_origin
from tensortriage.model.provenance.path_names import common_module

SMALLEST_BLOCK = 3
"""Fewest nodes of a block: pairs repeat everywhere and mean nothing."""

LARGEST_BLOCK = 2000
"""Most nodes of a block that is looked for, which bounds the search."""

MOST_BLOCKS = 8


@frozen_dataclass
class RepeatedBlock:
    """A piece of a network that occurs several times in a row.

    Attributes:
        hash: Canonical hash of one copy, in hex; equal in all copies.
        copies: How often it occurs.
        nodes_per_copy: Nodes of one copy; those that only compute constants are not counted.
        op_counts: Operator to number of nodes in one copy, in the order in which they first occur.
        first_nodes: Name of the first node of each copy.
        scopes: Path of the innermost module that all nodes of a copy share, for each copy; empty texts without one.
        same_parameter_shapes: Whether the constants of all copies have the same shapes, not only the same ranks.
    """

    hash: str
    copies: int
    nodes_per_copy: int
    op_counts: Mapping[str, int]
    first_nodes: tuple[str, ...]
    scopes: tuple[str, ...]
    same_parameter_shapes: bool


def repeated_blocks(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, ConstantFacts]
) -> tuple[RepeatedBlock, ...]:
    """Return the repeated blocks of a graph, in the order of their first nodes.

    Args:
        nodes: In execution order.
        constants: Initializers and outputs of Constant nodes.
    """
    search = _Search(nodes, constants)
    return tuple(search.block(first, size, copies) for first, size, copies in _stretches(search))


def instances(
    nodes: Sequence[onnx.NodeProto], constants: Mapping[str, ConstantFacts]
) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the repeated blocks of a graph as node names: per block its copies, per copy its nodes in order.

    Nodes at the same place of two copies are alike. Arguments are those of `repeated_blocks`.
    """
    search = _Search(nodes, constants)
    return tuple(
        tuple(
            tuple(node.name for node in search.nodes[start : start + size])
            for start in range(first, first + copies * size, size)
        )
        for first, size, copies in _stretches(search)
    )


def _stretches(search: "_Search") -> list[tuple[int, int, int]]:
    """Return (first node, nodes per copy, copies) of the repeated blocks, in the order of their first nodes."""
    pending = [(0, len(search.nodes))]
    found: list[tuple[int, int, int]] = []
    while pending and len(found) < MOST_BLOCKS:
        start, end = pending.pop()
        stretch = search.best_stretch(start, end)
        if stretch is None:
            continue
        first, size, copies = search.settled(*stretch)
        if copies > 1:
            found.append((first, size, copies))
        after = first + size * max(copies, 1)
        pending += [(start, first), (after, end)]
        pending.sort(key=lambda part: part[1] - part[0])
    return sorted(found)


class _Search:
    """The nodes of one graph that depend on its inputs, with the features that distinguish them."""

    def __init__(self, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, ConstantFacts]) -> None:
        self._constants: dict[str, ConstantFacts | None] = dict(constants)
        self.nodes: list[onnx.NodeProto] = []
        for node in nodes:
            if any(node.input) and all(name in self._constants for name in node.input if name):
                self._constants.update(dict.fromkeys(node.output))
            elif not (node.output and node.output[0] in constants):
                self.nodes.append(node)
        numbers: dict[str, int] = {}
        self._keys = [self._node_key(node) for node in self.nodes]
        self._labels = np.array([numbers.setdefault(key, len(numbers)) for key in self._keys], dtype=np.int64)
        self._places = {
            name: (index, slot)
            for index, node in enumerate(self.nodes)
            for slot, name in enumerate(node.output)
            if name
        }

    def best_stretch(self, start: int, end: int) -> tuple[int, int, int] | None:
        """Return (first node, period, length) of the most informative stretch, the shortest period among equals."""
        labels = self._labels[start:end]
        best: tuple[float, int, int, int] | None = None
        for period in range(SMALLEST_BLOCK, min(len(labels) // 2, LARGEST_BLOCK) + 1):
            first, length = _longest_run(labels[:-period] == labels[period:])
            copies = (length + period) // period
            told = copies * period * math.log2(copies) ** 2
            if copies > 1 and (best is None or told > best[0]):
                best = told, start + first, period, length + period
        return None if best is None else best[1:]

    def settled(self, first: int, size: int, length: int) -> tuple[int, int, int]:
        """Return (first node, nodes per copy, copies): where few values cross the borders, and all hashes agree."""
        copies = length // size
        first = min(range(first, first + length % size + 1), key=lambda start: self._crossings(start, size))
        hashes = [self._hash(first + number * size, size, shapes=False) for number in range(copies)]
        runs = [
            [number for number, _ in run] for _, run in itertools.groupby(enumerate(hashes), key=lambda pair: pair[1])
        ]
        longest = max(runs, key=len)
        return first + longest[0] * size, size, len(longest)

    def block(self, first: int, size: int, copies: int) -> RepeatedBlock:
        """Return the block of which `copies` follow each other from a node on."""
        starts = [first + number * size for number in range(copies)]
        return RepeatedBlock(
            hash=self._hash(first, size, shapes=False),
            copies=copies,
            nodes_per_copy=size,
            op_counts=dict(Counter(map(op_label, self.nodes[first : first + size]))),
            first_nodes=tuple(self.nodes[start].name for start in starts),
            scopes=tuple(_common_module(self.nodes[start : start + size]) for start in starts),
            same_parameter_shapes=len({self._hash(start, size, shapes=True) for start in starts}) == 1,
        )

    def _crossings(self, start: int, size: int) -> int:
        """Count the values that enter a piece; most cuts through a layer cut a residual or a branch as well."""
        inside = range(start, start + size)
        used = {name for node in self.nodes[start : start + size] for name in node.input if name in self._places}
        return sum(self._places[name][0] not in inside for name in used)

    def _hash(self, start: int, size: int, *, shapes: bool) -> str:
        digest = hashlib.sha256()
        for index in range(start, start + size):
            digest.update(self._keys[index].encode())
            for name in self.nodes[index].input:
                digest.update(self._operand(name, start, size, shapes=shapes).encode())
        return digest.hexdigest()[:16]

    def _node_key(self, node: onnx.NodeProto) -> str:
        """Return a text that is equal for nodes that are alike."""
        parts = [op_label(node), str(len(node.output))]
        parts += [self._operand_key(name) for name in node.input]
        for attribute in sorted(node.attribute, key=lambda attribute: attribute.name):
            parts.append(f"{attribute.name}={attribute_text(attribute)}")
        for name, body in bodies(node):
            parts.append(f"{name}:" + ",".join(map(op_label, all_nodes(body.node))))
        return "|".join(parts)

    def _operand_key(self, name: str) -> str:
        if name not in self._constants:
            return "value" if name else ""
        constant = self._constants[name]
        return "computed constant" if constant is None else f"{constant.dtype.label}/{len(constant.shape)}"

    def _operand(self, name: str, start: int, size: int, *, shapes: bool) -> str:
        if name in self._constants:
            constant = self._constants[name]
            return f" {constant.shape}" if shapes and constant is not None else " constant"
        index, slot = self._places.get(name, (-1, 0))
        return f" {index - start}.{slot}" if start <= index < start + size else " outside"


def _longest_run(same: np.ndarray) -> tuple[int, int]:
    """Return start and length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], same.view(np.int8), [0]))))
    if not edges.size:
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    longest = int(lengths.argmax())
    return int(edges[2 * longest]), int(lengths[longest])


def _common_module(nodes: Sequence[onnx.NodeProto]) -> str:
    """Return the module that contains all nodes, as far as their names show it."""
    origins = (
        read_origin(node.name, {prop.key: prop.value for prop in node.metadata_props}, node.doc_string)
        for node in nodes
    )
    return common_module([origin.module for origin in origins if origin.module])

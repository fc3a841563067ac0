"""The weights that a file stores in blocks: DequantizeLinear with ``block_size``, and ONNX Runtime's MatMulNBits."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tensortriage.model.sdk import BlockedQuantizer, Graph, Node, blocked_quantizers
from tensortriage.sdk import DType
from tensortriage_quantize.made_wrong_blocks import StoredBlocks

_PACKED, _SCALES, _ZEROS, _GROUPS = 1, 2, 3, 4
"""Places of MatMulNBits's inputs."""


@dataclasses.dataclass(frozen=True, slots=True)
class BlockedWeight:
    """One weight of a file.

    Attributes:
        node: The node that reads the stored numbers.
        value: What holds them: the dequantized value, or the packed constant.
        stored: The numbers.
        shape: Shape of the real numbers, before its axes are in order.
        axis: Axis of the blocks; rows are the others.
    """

    node: Node
    value: str
    stored: StoredBlocks
    shape: tuple[int, ...]
    axis: int

    def rows(self, array: np.ndarray) -> np.ndarray:
        """Return an array of that shape as rows of blocks."""
        return _rows(array, self.axis)

    def right(self, graph: Graph, right: StoredBlocks) -> dict[str, np.ndarray]:
        """Return the values of a graph in whose place others put a weight right; none where the form has no place."""
        if self.node.op_type != "DequantizeLinear":
            return _packed_again(graph, self.node, right)
        moved = np.moveaxis(np.empty(self.shape), self.axis, -1).shape
        real = np.moveaxis(right.real().reshape(moved), -1, self.axis)
        return {self.value: real.astype(graph.weight(self.node.inputs[1]).dtype)}


def blocked_weights(graph: Graph) -> Iterator[BlockedWeight]:
    """Yield the weights whose numbers, scales and zero points are constants."""
    for each in blocked_quantizers(graph):
        names = [each.quantized, each.scale, *([each.zero_point] if each.zero_point else [])]
        if each.stored and each.dtype is not None and each.dtype.is_integer and set(names) <= graph.constants.keys():
            yield _dequantized(graph, each, each.dtype)
    for node in graph.nodes:
        if node.op_type == "MatMulNBits" and (found := _product(graph, node)) is not None:
            yield found


def _rows(array: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis]).astype(np.float64)


def _exchanged(array: np.ndarray) -> np.ndarray:
    """Return numbers with each two that follow each other in memory in the other order."""
    flat = np.append(array.ravel(), np.zeros(array.size % 2, array.dtype))
    return np.asarray(flat.reshape(-1, 2)[:, ::-1].reshape(-1)[: array.size].reshape(array.shape))


def _dequantized(graph: Graph, each: BlockedQuantizer, dtype: DType) -> BlockedWeight:
    stored, scale = graph.weight(each.quantized).astype(np.float64), graph.weight(each.scale)
    axis = each.axis % stored.ndim
    zero = graph.weight(each.zero_point) if each.zero_point else np.zeros(scale.shape)
    numbers, exchanged, scales, zeros = (_rows(array, axis) for array in (stored, _exchanged(stored), scale, zero))
    signed = dtype.name.startswith("INT")
    blocks = StoredBlocks(numbers, exchanged, scales, zeros, each.block, dtype.bits, signed)
    return BlockedWeight(graph.node(each.node), each.value, blocks, stored.shape, axis)


def _product(graph: Graph, node: Node) -> BlockedWeight | None:
    names = [name for name in (*node.inputs, "", "")[_PACKED : _GROUPS + 1] if name]
    terms, columns, block = (node.attributes.get(name) for name in ("K", "N", "block_size"))
    bits = node.attributes.get("bits", 4)
    known = all(isinstance(each, int) for each in (terms, columns, block, bits))
    if not known or not set(names) <= graph.constants.keys() or (len(node.inputs) > _GROUPS and node.inputs[_GROUPS]):
        return None
    assert isinstance(terms, int)
    assert isinstance(columns, int)
    assert isinstance(block, int)
    assert isinstance(bits, int)
    if bits not in (2, 4, 8):
        return None
    blocks = -(-terms // block)
    stored = _unpacked(graph.weight(node.inputs[_PACKED]).reshape(columns, -1), bits)
    zero = np.full((columns, blocks), 2.0 ** (bits - 1))
    if len(node.inputs) > _ZEROS and node.inputs[_ZEROS]:
        given = graph.weight(node.inputs[_ZEROS])
        given = _unpacked(given.reshape(columns, -1), bits) if given.dtype == np.uint8 else given
        zero = given.reshape(columns, -1)[:, :blocks].astype(np.float64)
    scale = graph.weight(node.inputs[_SCALES]).astype(np.float64).reshape(columns, blocks)
    numbers, exchanged = (array[:, :terms].astype(np.float64) for array in (stored, _exchanged(stored)))
    read = StoredBlocks(numbers, exchanged, scale, zero, block, bits, is_signed=False)
    return BlockedWeight(node, node.inputs[_PACKED], read, (columns, terms), 1)


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of bytes, the lowest bits first, ``[rows, numbers]``."""
    shifts = np.arange(0, 8, bits)
    return np.asarray(((packed[:, :, None] >> shifts) & (2**bits - 1)).reshape(len(packed), -1))


def _packed(numbers: np.ndarray, bits: int, size: int) -> np.ndarray:
    """Return numbers ``[rows, numbers]`` in so many bytes a row, the lowest bits first."""
    each = 8 // bits
    padded = np.pad(numbers.astype(np.int64), ((0, 0), (0, size * each - numbers.shape[1])))
    shifts = np.arange(0, 8, bits)
    return np.asarray((padded.reshape(len(numbers), size, each) << shifts).sum(2).astype(np.uint8))


def _packed_again(graph: Graph, node: Node, right: StoredBlocks) -> dict[str, np.ndarray]:
    """Return the constants of a MatMulNBits that hold a weight; none where it has no place for the zero points."""
    low = max(0.0, -float(right.numbers.min()))
    numbers, zero, top = right.numbers + low, right.zero + low, 2.0**right.bits - 1.0
    given = node.inputs[_ZEROS] if len(node.inputs) > _ZEROS else ""
    usual = not given and bool((zero == 2.0 ** (right.bits - 1)).all())
    holds = bool(given) and graph.weight(given).dtype == np.uint8 and zero.min() >= 0.0 and zero.max() <= top
    if numbers.max() > top or not (usual or holds):
        return {}
    was = [graph.weight(node.inputs[place]) for place in (_PACKED, _SCALES)]
    rows = len(numbers)
    found = {
        node.inputs[_PACKED]: _packed(numbers, right.bits, was[0].size // rows).reshape(was[0].shape),
        node.inputs[_SCALES]: right.scale.reshape(was[1].shape).astype(was[1].dtype),
    }
    if holds:
        stored = graph.weight(given)
        found[given] = _packed(zero, right.bits, stored.size // rows).reshape(stored.shape)
    return found

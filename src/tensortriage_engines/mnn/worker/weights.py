"""Weights of a .mnn file, which MNN's Python API does not expose: their format, and the stored numbers.

Files are FlatBuffers: tables whose fields are found by number. Seen with files of MNN 3.0.0 and 3.6.1, whose converter
shows them as JSON (``mnnconvert -f MNN --JsonFile``): which is right, and as large as the weights in digits.
"""

from __future__ import annotations

import struct
from typing import Iterator, Optional, Tuple

import numpy as np

_OPERATORS, _SUBGRAPHS, _SUBGRAPH_OPERATORS = 3, 10, 4
_MAIN_KIND, _MAIN = 1, 2
_CONVOLUTION = 9
"""Kind of an operator that holds weights: convolutions, and their forms in the converter, such as products."""
_QUANTIZED = 3
_BUFFER, _SCALES, _KIND, _BITS, _LEAST, _ASYMMETRIC, _WIDE_SHAPE, _SCALE_FORMAT = 0, 1, 2, 7, 8, 9, 11, 14
_CODED, _FP16 = 1, 3
_FULL_BITS = (0, 8)
"""Files of MNN 3.0.0 hold nothing on 8 bits."""


def weights_of(content: bytes) -> str:
    """Return the narrowest format in which a file keeps a weight: fp16, int8 or, of fewer bits, int4; else nothing."""
    file, held = _File(content), set()
    for table in file.quantized():
        whole = "int8" if file.number(file.field(table, _BITS)) in _FULL_BITS else "int4"
        held.add("fp16" if file.number(file.field(table, _KIND)) == _FP16 else whole)
    return next((word for word in ("int4", "int8", "fp16") if word in held), "")


def numbers_of(content: bytes) -> Iterator[Optional[Tuple[np.ndarray, np.ndarray]]]:
    """Yield the weights that a file stores as integers: the real numbers, by rows of one scale, and a step of each.

    None replaces one that is not stored in the converter's usual way: its integers are places in a table of those that
    occur, in as few bits as suffice, the first bit the highest.
    """
    file = _File(content)
    for table in file.quantized():
        kind = file.number(file.field(table, _KIND))
        if kind != _FP16:
            yield _numbers(file, table) if kind == _CODED and not file.field(table, _SCALE_FORMAT) else None


def _numbers(file: "_File", table: int) -> Optional[Tuple[np.ndarray, np.ndarray]]:
    packed = file.vector(file.field(table, _BUFFER), "u1")
    scales = file.vector(file.field(table, _SCALES), "<f4").astype(np.float64)
    if not packed.size or not scales.size:
        return None
    wide = bool(file.number(file.field(table, _WIDE_SHAPE), "b"))
    axes = "<u4" if wide else "<u2"
    end = 1 + int(packed[0]) * np.dtype(axes).itemsize
    count = int(np.prod(packed[1:end].view(axes), dtype=np.int64))
    known = int(packed[end]) or 256
    integers = packed[end + 1 : end + 1 + known].view(np.int8).astype(np.float64)
    bits = max(1, (known - 1).bit_length())
    places = np.unpackbits(packed[end + 1 + known :])[: count * bits].reshape(count, bits)
    whole = integers[places @ (1 << np.arange(bits)[::-1])]
    if file.number(file.field(table, _ASYMMETRIC)):
        first, step = scales.reshape(-1, 2).T[..., None]
        return (whole.reshape(len(step), -1) - file.number(file.field(table, _LEAST))) * step + first, step
    return whole.reshape(len(scales), -1) * scales[:, None], scales[:, None]


class _File:
    """Tables of a FlatBuffer; places are counted from its first byte, and 0 is none."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def quantized(self) -> Iterator[int]:
        """Yield the tables that describe the weights of an operator, those of loops among them."""
        network = self.target(0)
        graphs = self.entries(self.field(network, _SUBGRAPHS))
        for operators in (
            self.field(network, _OPERATORS),
            *(self.field(graph, _SUBGRAPH_OPERATORS) for graph in graphs),
        ):
            for operator in self.entries(operators):
                kind, main = self.field(operator, _MAIN_KIND), self.field(operator, _MAIN)
                if kind and main and self._content[kind] == _CONVOLUTION:
                    quantized = self.field(self.target(main), _QUANTIZED)
                    if quantized:
                        yield self.target(quantized)

    def number(self, place: int, kind: str = "i") -> int:
        return int(struct.unpack_from("<" + kind, self._content, place)[0]) if place else 0

    def target(self, place: int) -> int:
        return place + int(struct.unpack_from("<I", self._content, place)[0])

    def field(self, table: int, number: int) -> int:
        """Return the place of a table's field; 0 where the table does not have it."""
        layout = table - self.number(table)
        entry = 4 + 2 * number
        offset = self.number(layout + entry, "H") if entry < self.number(layout, "H") else 0
        return table + offset if offset else 0

    def count(self, vector: int) -> int:
        return self.number(self.target(vector), "I") if vector else 0

    def entries(self, vector: int) -> Iterator[int]:
        """Yield the places that a vector of tables refers to."""
        first = self.target(vector) + 4 if vector else 0
        for number in range(self.count(vector)):
            yield self.target(first + 4 * number)

    def vector(self, vector: int, dtype: str) -> np.ndarray:
        """Return a vector of numbers."""
        first = self.target(vector) + 4 if vector else 0
        return np.frombuffer(self._content, dtype, self.count(vector), first)

"""In what format a .mnn file keeps its weights, of which MNN's Python API tells nothing.

Files are FlatBuffers: tables whose fields are found by number. Seen with files of MNN 3.0.0 and 3.6.1, whose converter
shows them as JSON (``mnnconvert -f MNN --JsonFile``): which is right, and as large as the weights in digits.
"""

from __future__ import annotations

import struct
from typing import Iterator

_OPERATORS = 3
_MAIN_KIND, _MAIN = 1, 2
_CONVOLUTION = 9
"""Kind of an operator that holds weights: convolutions, and what the converter turns into them, such as products."""
_QUANTIZED = 3
_KIND, _BITS = 2, 7
_FP16 = 3
_FULL_BITS = (0, 8)
"""Files of MNN 3.0.0 say nothing of 8 bits."""


def weights_of(content: bytes) -> str:
    """Return the narrowest format in which a file keeps a weight: fp16, int8 or, of fewer bits, int4; else nothing."""
    file, held = _File(content), set()
    for operator in file.entries(file.field(file.target(0), _OPERATORS)):
        kind, main = file.field(operator, _MAIN_KIND), file.field(operator, _MAIN)
        if not kind or not main or content[kind] != _CONVOLUTION:
            continue
        quantized = file.field(file.target(main), _QUANTIZED)
        if quantized:
            table = file.target(quantized)
            whole = "int8" if file.number(file.field(table, _BITS)) in _FULL_BITS else "int4"
            held.add("fp16" if file.number(file.field(table, _KIND)) == _FP16 else whole)
    return next((word for word in ("int4", "int8", "fp16") if word in held), "")


class _File:
    """Tables of a FlatBuffer; places are counted from its first byte, and 0 is none."""

    def __init__(self, content: bytes) -> None:
        self._content = content

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
        """Yield the places of what a vector of tables refers to."""
        first = self.target(vector) + 4 if vector else 0
        for number in range(self.count(vector)):
            yield self.target(first + 4 * number)

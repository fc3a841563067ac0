"""In what format a .mnn file keeps its weights; files of MNN's converter are read in tests/engines/test_mnn.py."""

import struct

import pytest

from tensortriage_engines.mnn.worker.weights import weights_of


def table(fields, at):
    """Return a FlatBuffer's table of 4-byte fields, by number, that begins at a place, its layout behind it."""
    count = max(fields) + 1
    body = b"".join(struct.pack("<I", fields[number]) for number in sorted(fields))
    entries = [4 + 4 * sorted(fields).index(number) if number in fields else 0 for number in range(count)]
    layout = struct.pack(f"<HH{count}H", 4 + 2 * count, 4 + len(body), *entries)
    return struct.pack("<i", -(4 + len(body))) + body + layout


def file_of(quantization):
    """Return a file of one convolution; references go from their own place to what they name."""
    held = bytearray(1024)

    def put(at, content):
        held[at : at + len(content)] = content

    put(0, struct.pack("<I", 16))
    put(16, table({3: 100 - 20}, 16))
    put(100, struct.pack("<II", 1, 200 - 104))
    put(200, table({1: 9, 2: 300 - 208}, 200))
    put(300, table({1: 400 - 304} if quantization is None else {3: 500 - 304}, 300))
    put(400, struct.pack("<I", 25))
    put(500, table({0: 600 - 504, **(quantization or {})}, 500))
    put(600, struct.pack("<I", 100))
    return bytes(held)


@pytest.mark.parametrize(
    ("quantization", "told"),
    [(None, ""), ({2: 3}, "fp16"), ({2: 1}, "int8"), ({2: 1, 7: 8}, "int8"), ({2: 1, 7: 4}, "int4")],
)
def test_the_format_of_weights_is_read_from_the_file(quantization, told):
    assert weights_of(file_of(quantization)) == told

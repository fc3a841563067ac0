"""How a .mnn file keeps its weights; files of MNN's converter are read in tests/engines/test_mnn.py."""

import struct

import pytest

from tensortriage_engines.mnn.worker.weights import numbers_of, weights_of


def table(fields, at):
    """Return a FlatBuffer's table of 4-byte fields, by number, that begins at a place, its layout behind it."""
    count = max(fields) + 1
    body = b"".join(struct.pack("<I", fields[number]) for number in sorted(fields))
    entries = [4 + 4 * sorted(fields).index(number) if number in fields else 0 for number in range(count)]
    layout = struct.pack(f"<HH{count}H", 4 + 2 * count, 4 + len(body), *entries)
    return struct.pack("<i", -(4 + len(body))) + body + layout


def file_of(quantization, buffer=b"", scales=()):
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
    held_as = {0: 600 - 504, 1: 800 - 508, **(quantization or {})}
    put(500, table(held_as, 500))
    put(600, struct.pack("<I", len(buffer)) + buffer)
    put(800, struct.pack(f"<I{len(scales)}f", len(scales), *scales))
    return bytes(held)


@pytest.mark.parametrize(
    ("quantization", "told"),
    [(None, ""), ({2: 3}, "fp16"), ({2: 1}, "int8"), ({2: 1, 7: 8}, "int8"), ({2: 1, 7: 4}, "int4")],
)
def test_the_format_of_weights_is_read_from_the_file(quantization, told):
    assert weights_of(file_of(quantization)) == told


TABLE = struct.pack("<BHHB3b", 2, 2, 4, 3, -128, 0, 127)
"""Two axes, of 2 and of 4; the three integers that occur."""
PLACES = bytes([0b00011000, 0b10011000])
"""0 1 2 0, then 2 1 2 0: two bits each."""


def test_integers_are_read_by_their_places_in_a_table():
    asymmetric = file_of({2: 1, 7: 8, 8: 2**32 - 128, 9: 2}, TABLE + PLACES, [-1.0, 0.5, 2.0, 0.25])
    ((numbers, step),) = numbers_of(asymmetric)
    assert step.tolist() == [[0.5], [0.25]]
    assert numbers.tolist() == [[-1.0, 63.0, 126.5, -1.0], [65.75, 34.0, 65.75, 2.0]]
    ((numbers, step),) = numbers_of(file_of({2: 1, 7: 8}, TABLE + PLACES, [0.5, 2.0]))
    assert step.tolist() == [[0.5], [2.0]]
    assert numbers.tolist() == [[-64.0, 0.0, 63.5, -64.0], [254.0, 0.0, 254.0, -256.0]]


@pytest.mark.parametrize(
    ("quantization", "told"), [({2: 3}, []), ({2: 2, 7: 8}, [None]), ({2: 1, 7: 8, 14: 1}, [None])]
)
def test_what_is_kept_in_another_way_is_not_read(quantization, told):
    assert list(numbers_of(file_of(quantization, TABLE + PLACES, [0.5, 2.0]))) == told


def test_a_file_of_float32_has_none():
    assert list(numbers_of(file_of(None))) == []

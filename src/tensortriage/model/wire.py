"""Take the weights out of an ONNX file without reading them.

Protobuf parses a whole file into memory, weights included. But the wire format is simple enough to walk: an ONNX file
is a sequence of fields, one of them the graph; the graph is a sequence of fields, some of them initializers; and the
numbers of an initializer are one field of bytes. Walking that far, and no further, gives the place of every large
weight in the file and a copy of everything else, which protobuf then parses. The same knowledge writes a file with its
weights streamed from wherever they are.

Source: https://protobuf.dev/programming-guides/encoding/ and the field numbers in onnx/onnx.proto.
"""

from collections.abc import Iterator, Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, Protocol

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.files import open_regular

MODEL_GRAPH = 7
GRAPH_INITIALIZER = 5
GRAPH_INPUT = 11
TENSOR_NAME = 8
TENSOR_RAW_DATA = 9
VALUE_NAME = 1

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}

Buffer = bytes | mmap


class WireError(Exception):
    """The bytes are not protobuf; the message names the byte where that shows."""


@frozen_dataclass
class Field:
    """One field of a message: bytes ``start:end`` with its tag, of which ``body:end`` is the payload."""

    number: int
    wire_type: int
    start: int
    body: int
    end: int


@frozen_dataclass
class Lifted:
    """A model without its large weights.

    Attributes:
        skeleton: Serialized ModelProto in which the lifted initializers have no raw_data.
        places: Position in ``graph.initializer`` to (offset, length) of its raw_data in the file, in bytes.
    """

    skeleton: bytes
    places: dict[int, tuple[int, int]]


class Payload(Protocol):
    """Numbers on their way into a file."""

    @property
    def nbytes(self) -> int:
        """Exactly how many bytes `tofile` writes."""
        ...

    def tofile(self, file: BinaryIO) -> None:
        """Write the bytes of raw_data."""
        ...


def lift_weights(data: Buffer, *, threshold: int) -> Lifted:
    """Separate a serialized ModelProto from the weights of its main graph.

    Args:
        data: The whole file.
        threshold: Only raw_data of at least this many bytes are lifted.

    Raises:
        WireError: When the bytes are not protobuf down to the initializers.
    """
    rest: list[bytes] = []
    graph: list[bytes] = []
    places: dict[int, tuple[int, int]] = {}
    count, found_graph = 0, False
    for field in _fields(data, 0, len(data)):
        if field.number != MODEL_GRAPH or field.wire_type != _LENGTH:
            rest.append(data[field.start : field.end])
            continue
        found_graph = True
        for part in _fields(data, field.body, field.end):
            if part.number != GRAPH_INITIALIZER or part.wire_type != _LENGTH:
                graph.append(data[part.start : part.end])
                continue
            tensor, place = _without_raw_data(data, part, threshold)
            graph.append(length_delimited(GRAPH_INITIALIZER, tensor))
            if place is not None:
                places[count] = place
            count += 1
    if found_graph:
        rest.append(length_delimited(MODEL_GRAPH, b"".join(graph)))
    return Lifted(b"".join(rest), places)


def input_messages(path: Path) -> dict[str, bytes]:
    """Return the inputs of the main graph of a file, serialized, by name and in order; none that has a weight.

    Raises:
        OSError: When the file cannot be read.
        WireError: When it is not protobuf down to the names.
    """
    inputs: dict[str, bytes] = {}
    weights: set[str] = set()
    with open_regular(path) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for graph in _fields(data, 0, len(data)):
            for part in _fields(data, graph.body, graph.end) if graph.number == MODEL_GRAPH else ():
                if part.number == GRAPH_INPUT:
                    inputs[_text(data, part, VALUE_NAME)] = data[part.body : part.end]
                elif part.number == GRAPH_INITIALIZER:
                    weights.add(_text(data, part, TENSOR_NAME))
    return {name: message for name, message in inputs.items() if name not in weights}


def write_model(
    file: BinaryIO, *, rest: bytes, graph: bytes, initializers: Sequence[tuple[bytes, Payload | None]]
) -> None:
    """Write a ModelProto, streaming the weights.

    Args:
        file: Where to write.
        rest: Serialized ModelProto without its graph.
        graph: Serialized GraphProto without its initializers.
        initializers: Per initializer, the serialized TensorProto without raw_data, and its raw_data (None when the
            TensorProto is complete).
    """
    heads = [_initializer_head(tensor, payload) for tensor, payload in initializers]
    weights_bytes = sum(payload.nbytes for _, payload in initializers if payload is not None)
    file.write(rest)
    file.write(_tag(MODEL_GRAPH) + varint(len(graph) + sum(map(len, heads)) + weights_bytes))
    file.write(graph)
    for head, (_, payload) in zip(heads, initializers, strict=True):
        file.write(head)
        if payload is not None:
            payload.tofile(file)


def length_delimited(number: int, body: bytes) -> bytes:
    """Return a field that holds bytes or a message."""
    return _tag(number) + varint(len(body)) + body


def varint(number: int) -> bytes:
    """Return the base-128 form of a non-negative integer."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _tag(number: int) -> bytes:
    return varint(number << 3 | _LENGTH)


def _initializer_head(tensor: bytes, payload: Payload | None) -> bytes:
    """Return an initializer field up to the first byte of its raw_data."""
    if payload is None:
        return length_delimited(GRAPH_INITIALIZER, tensor)
    body = tensor + _tag(TENSOR_RAW_DATA) + varint(payload.nbytes)
    return _tag(GRAPH_INITIALIZER) + varint(len(body) + payload.nbytes) + body


def _without_raw_data(data: Buffer, tensor: Field, threshold: int) -> tuple[bytes, tuple[int, int] | None]:
    kept: list[bytes] = []
    place: tuple[int, int] | None = None
    for field in _fields(data, tensor.body, tensor.end):
        if field.number == TENSOR_RAW_DATA and field.wire_type == _LENGTH and field.end - field.body >= threshold:
            place = (field.body, field.end - field.body)
        else:
            kept.append(data[field.start : field.end])
    return b"".join(kept), place


def _text(data: Buffer, message: Field, number: int) -> str:
    """Return a field of a message that holds text; empty when it has none."""
    fields = _fields(data, message.body, message.end)
    return next((data[field.body : field.end].decode() for field in fields if field.number == number), "")


def _fields(data: Buffer, position: int, end: int) -> Iterator[Field]:
    while position < end:
        key, body = _read_varint(data, position, end)
        wire_type = key & 7
        if wire_type == _VARINT:
            _, after = _read_varint(data, body, end)
        elif wire_type in _FIXED_BYTES:
            after = body + _FIXED_BYTES[wire_type]
        elif wire_type == _LENGTH:
            length, body = _read_varint(data, body, end)
            after = body + length
        else:
            raise WireError(f"byte {position} does not start a protobuf field")
        if after > end:
            raise WireError(f"the field at byte {position} ends at byte {after}, beyond the {end} bytes there are")
        yield Field(key >> 3, wire_type, position, body, after)
        position = after


def _read_varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError(f"the data end in the middle of a number at byte {position}")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise WireError(f"the number that ends at byte {position} is longer than 10 bytes")

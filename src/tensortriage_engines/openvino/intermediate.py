"""The network in OpenVINO's own format: an .xml with the graph, a .bin with the constants. Read here, never executed.

Layers have numbered ports; edges lead from port to port. A port that holds a value of the source model keeps its name
among its ``names``; a layer has the name of the source's node where its converter knew one.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import ml_dtypes
import numpy as np

from tensortriage.engines.sdk import UsageError, checked_file
from tensortriage_engines.file_pairs import beside

NEWEST = 11
"""Latest version of the format."""
TYPES: Mapping[str, np.dtype] = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f64": np.dtype(np.float64), "boolean": np.dtype(bool), "i4": np.dtype(ml_dtypes.int4),
    "u4": np.dtype(ml_dtypes.uint4), "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_PRECISIONS = {f"FP{bits}": f"f{bits}" for bits in (16, 32, 64)} | {"BOOL": "boolean"}
_COMMA = re.compile(r"(?<!\\),")

Shape = tuple[int | None, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Port:
    """An output of a layer.

    Attributes:
        dtype: OpenVINO's word for the element type.
        shape: Sizes; None for open ones.
        names: The source model's names of the value.
    """

    dtype: str
    shape: Shape
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    """An operation.

    Attributes:
        number: Its number in the file.
        kind: Its type.
        opset: Version of the set of operators that the type is of.
        data: Attributes, as they are written.
        sources: Number of the layer, and of its port, that each operand comes from.
        ports: Outputs, by number.
        plain: Whether it has no body of other layers.
    """

    number: int
    name: str
    kind: str
    opset: str
    data: Mapping[str, str]
    sources: tuple[tuple[int, int], ...]
    ports: Mapping[int, Port]
    plain: bool

    def numbers(self, key: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of whole numbers."""
        text = self.data.get(key)
        return list(default) if text is None else [int(word) for word in text.split(",") if word.strip()]

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return an attribute that is true or false."""
        return self.data.get(key, str(default)).lower() in ("true", "1")


@dataclasses.dataclass(frozen=True)
class Intermediate:
    """A file that was read.

    Attributes:
        path: The .xml.
        layers: Each after those that it reads.
        made: Metadata of the tools that made it: slash-separated keys and values.
    """

    path: Path
    layers: tuple[Layer, ...]
    made: Mapping[str, str]
    _content: np.memmap | bytes

    def constant(self, layer: Layer) -> np.ndarray:
        """Return the array of a Const.

        Raises:
            UsageError: For a type of numbers that is unknown, or one that lies beyond the end of the .bin.
        """
        word, start, size = layer.data["element_type"], int(layer.data["offset"]), int(layer.data["size"])
        dtype, raw = TYPES.get(word), np.frombuffer(self._content[start : start + size], np.uint8)
        shape = tuple(layer.numbers("shape"))
        if dtype is None:
            raise unreadable(self.path, f"'{layer.name}' has numbers of type {word}")
        if raw.size < size:
            raise unreadable(self.path, f"its .bin ends before the constant '{layer.name}'")
        if word in ("i4", "u4"):  # two in a byte, the lower half first
            raw = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[: int(np.prod(shape))]
            return (raw.astype(np.int8) if word == "u4" else (raw.astype(np.int8) ^ 8) - 8).astype(dtype).reshape(shape)
        return raw.view(dtype).reshape(shape)


def read(path: Path) -> Intermediate:
    """Return the network of an .xml, its .bin next to it.

    Raises:
        UsageError: When there is no .bin, the .xml is none of OpenVINO's, or is of a newer format
            (``engine-option-file``).
    """
    checked_file(str(path), "OpenVINO")
    if path.suffix != ".xml":
        raise unreadable(path, "it is not an .xml file")
    weights = Path(beside(str(path), ".bin"))
    text = path.read_bytes()
    if b"<!DOCTYPE" in text[:4096] or b"<!ENTITY" in text:
        raise unreadable(path, "it declares entities, which no file of OpenVINO does")
    try:
        net = ElementTree.fromstring(text)
        if net.tag != "net":
            raise unreadable(path, f"its root is <{net.tag}>, not <net>")
        version = int(net.get("version", "0"))
        if version > NEWEST:
            raise unreadable(
                path,
                f"its format is version {version}, newer than {NEWEST}",
                "convert the model with OpenVINO 2024 to 2026",
            )
        content = np.memmap(weights, np.uint8, "r") if weights.stat().st_size else b""
        return Intermediate(path, tuple(_in_order(net)), dict(_made(net)), content)
    except (ElementTree.ParseError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(path, " ".join(str(error).split()) or type(error).__name__) from error


def unreadable(path: Path, why: str, cure: str = "") -> UsageError:
    """Return the error for a file that is not OpenVINO's."""
    cure = cure or "give the .xml that ovc, NNCF or openvino.save_model wrote, with its .bin next to it"
    return UsageError(f"{path} is not a file of OpenVINO: {why}", slug="engine-option-file", cure=cure)


def _in_order(net: ElementTree.Element) -> Iterator[Layer]:
    """Yield the layers, each after those that it reads."""
    edges: dict[int, dict[int, tuple[int, int]]] = {}
    for edge in net.findall("edges/edge"):
        source, target = ((int(edge.attrib[f"{end}-layer"]), int(edge.attrib[f"{end}-port"])) for end in ("from", "to"))
        edges.setdefault(target[0], {})[target[1]] = source
    waiting = {layer.number: layer for layer in (_layer(each, edges) for each in net.findall("layers/layer"))}
    placed: set[int] = set()
    while waiting:
        before = len(placed)
        for layer in list(waiting.values()):
            if all(number in placed for number, _ in layer.sources):
                yield waiting.pop(layer.number)
                placed.add(layer.number)
        if len(placed) == before:
            raise ValueError("its layers read each other in a circle, or some that are missing")


def _layer(element: ElementTree.Element, edges: Mapping[int, Mapping[int, tuple[int, int]]]) -> Layer:
    number, data = int(element.attrib["id"]), element.find("data")
    ports = {int(port.attrib["id"]): _port(port) for port in element.findall("output/port")}
    fed = edges.get(number, {})
    return Layer(
        number, element.get("name", str(number)), element.attrib["type"], element.get("version", ""),
        {} if data is None else data.attrib, tuple(fed[port] for port in sorted(fed)), ports,
        element.find("body") is None and element.find("then_body") is None,
    )  # fmt: skip


def _port(element: ElementTree.Element) -> Port:
    word = element.get("precision", "").strip()
    names = _COMMA.split(element.get("names", ""))
    sizes = tuple(size if size >= 0 else None for size in (int(each.text or -1) for each in element.findall("dim")))
    return Port(_PRECISIONS.get(word, word.lower()), sizes, tuple(name.replace("\\,", ",") for name in names if name))


def _made(net: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """Yield the entries of the network's ``rt_info``."""
    waiting = [("", each) for each in net.findall("rt_info/*")]
    for before, element in waiting:
        key = before + (element.get("name", "") if element.tag == "info" else element.tag)
        if element.get("value") is not None:
            yield key, element.get("value", "")
        waiting.extend((f"{key}/", child) for child in element)

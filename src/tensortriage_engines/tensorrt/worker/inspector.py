"""From the engine inspector's report to the regions of a plan, for the spellings of TensorRT 8.5 to 11.

A layer's ONNX nodes are found in three ways, from best to worst: ``Metadata`` (``[ONNX Layer: name]``, joined by a
record separator), a name that lists the fused nodes (``conv1 + relu1``, ``PWN(a, b)``,
``{ForeignNode[first...last]}``), or nothing but the tensors it takes and makes. The result is words; the host, which
has the model, makes nodes of them.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

_METADATA = re.compile(r"\[ONNX Layer: ([^\]]*)\]")
_MOVES = re.compile(r"Reformatting CopyNode|reformat", re.IGNORECASE)
_FOREIGN = re.compile(r"\{?ForeignNode\[(.*)\]\}?$", re.DOTALL)
_TYPES = (  # words of formats in 8.5 to 10.x, and of data types in 11; the first that is found decides
    ("float8", "float8_e4m3fn"), ("fp8", "float8_e4m3fn"), ("bf16", "bfloat16"), ("bfloat", "bfloat16"),
    ("fp16", "float16"), ("half", "float16"), ("fp32", "float32"), ("float", "float32"), ("int8", "int8"),
    ("int4", "int4"), ("fp4", "float4_e2m1fn"), ("int64", "int64"), ("int32", "int32"), ("bool", "bool"),
    ("uint8", "uint8"),
)  # fmt: skip
_OPAQUE = "Myelin"
RANGE = "..."
"""Between the first and the last node of a foreign region in its list of nodes."""


def regions(text: str) -> List[Dict[str, Any]]:
    """Return one region per layer of ``EngineInspector.get_engine_information(JSON)``, in order.

    Each has ``name``, ``nodes`` (words; ``RANGE`` stands for those between its neighbours), ``kind``, ``precision``
    (label; empty when unknown), ``implementation``, ``inputs`` and ``outputs`` (names of tensors).

    Raises:
        ValueError: When the text is no JSON.
    """
    document = json.loads(text)
    layers = document.get("Layers", []) if isinstance(document, dict) else document
    return [_region(layer) for layer in layers]


def _region(layer: Any) -> Dict[str, Any]:
    if isinstance(layer, str):  # built with LAYER_NAMES_ONLY
        layer = {"Name": layer}
    name = str(layer.get("Name", ""))
    outputs, inputs = _tensors(layer.get("Outputs")), _tensors(layer.get("Inputs"))
    return {
        "name": name,
        "nodes": _nodes(name, str(layer.get("Metadata", "") or "")),
        "kind": str(layer.get("ParameterType") or layer.get("LayerType") or ""),
        "precision": _precision(layer, outputs, inputs),
        "implementation": _implementation(layer),
        "inputs": [tensor for tensor, _ in inputs],
        "outputs": [tensor for tensor, _ in outputs],
    }


def _tensors(items: Any) -> List[Tuple[str, str]]:
    """Return name and type label of a layer's tensors."""
    return [(str(item.get("Name", "")), _label(_told_type(item))) for item in items or [] if isinstance(item, dict)]


def _told_type(tensor: Mapping[str, Any]) -> str:
    return str(tensor.get("DataType") or tensor.get("Datatype") or tensor.get("Format/Datatype") or "")


def _label(text: str) -> str:
    words = text.lower()
    return next((label for key, label in _TYPES if key in words), "")


def _implementation(layer: Mapping[str, Any]) -> str:
    for key in ("TacticName", "TacticValue"):
        text = str(layer.get(key) or "")
        if text:
            return text
    return ""


def _precision(layer: Mapping[str, Any], outputs: List[Tuple[str, str]], inputs: List[Tuple[str, str]]) -> str:
    """Return the format that a layer computes in: as reported, else the type of its first float or quantized operand.

    A kernel may read fp16 and write fp32; its format is that of the operands it multiplies. 8.5 does not report the
    format inside a region that Myelin compiles as a whole: its inputs and outputs are of the network's types whatever
    continues inside.
    """
    reported = _label(str(layer.get("Precision") or ""))
    if reported or layer.get("LayerType") == _OPAQUE:
        return reported
    weights = layer.get("Weights")
    if isinstance(weights, dict) and _label(str(weights.get("Type") or "")):
        return _label(str(weights.get("Type")))
    types = [label for _, label in (*inputs, *outputs)]
    return next((label for label in types if label.startswith(("float", "bfloat", "int8", "int4"))), "")


def _nodes(name: str, metadata: str) -> List[str]:
    names = list(dict.fromkeys(_METADATA.findall(metadata)))
    if _MOVES.match(name):
        return names
    return names or list(dict.fromkeys(_named(name)))


def _named(name: str) -> Iterator[str]:
    """Yield the nodes that a layer's name lists."""
    for part in split(name):
        foreign = _FOREIGN.match(part)
        if foreign:
            first, _, last = foreign.group(1).partition(RANGE)
            yield from _named(first)
            if last:
                yield RANGE
                yield from _named(last)
            continue
        inner = _inside(part)
        if inner is not None:
            yield from _named(inner)
        elif part:
            yield part


def split(name: str) -> List[str]:
    """Return the parts of a fused layer's name: separated by ``+``, ``||`` or ``,`` outside of brackets."""
    parts, depth, start = [], 0, 0
    index = 0
    while index < len(name):
        letter = name[index]
        depth += (letter in "([{") - (letter in ")]}")
        width = next((len(s) for s in (" + ", " || ", ", ") if depth == 0 and name.startswith(s, index)), 0)
        if width:
            parts.append(name[start:index])
            start = index = index + width
        else:
            index += 1
    return [part.strip() for part in [*parts, name[start:]] if part.strip()]


def _inside(part: str) -> Optional[str]:
    """Return the nodes inside of ``PWN(...)`` and the like; None when a part is a plain name."""
    if part.startswith("PWN(") and part.endswith(")"):
        return part[4:-1]
    return None

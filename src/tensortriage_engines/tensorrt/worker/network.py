"""From an ONNX file to a TensorRT network, and the annotation of its layers: marks, precisions, owners.

Models are parsed by path: external data are then mapped, and there is no 2 GB limit. A layer belongs to the ONNX node
that its metadata names; where there are none (TensorRT 8.5), layers are identified by the values they make: the parser
adds the layers of one node in one go, and the last of them makes the node's value.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Sequence, Tuple

from tensortriage_engines.tensorrt.worker.dtypes import FLOATS, word
from tensortriage_engines.tensorrt.worker.library import member
from tensortriage_worker.adapter import AdapterError, AdapterFailure

_METADATA = re.compile(r"\[ONNX Layer: ([^\]]*)\]")
Problem = Dict[str, Any]
"""A parser's error about a node: ``node`` (name), ``index``, ``op``, ``reason``."""


class Parsed:
    """A network and all that must stay alive as long as it: the parser owns the weights.

    Attributes:
        network: The ``INetworkDefinition``.
        strong: Whether it is strongly typed.
    """

    def __init__(self, trt: Any, builder: Any, logger: Any, *, strong: bool) -> None:
        flags = 0
        for name in ("EXPLICIT_BATCH", "STRONGLY_TYPED"):
            found = member(trt, "NetworkDefinitionCreationFlag", name)
            if found and (name == "EXPLICIT_BATCH" or strong):
                flags |= 1 << int(found[0])
        self.network = builder.create_network(flags)
        self.parser = trt.OnnxParser(self.network, logger)
        self.strong = strong and bool(member(trt, "NetworkDefinitionCreationFlag", "STRONGLY_TYPED"))

    def parse(self, path: Path) -> None:
        """Parse an ONNX file.

        Raises:
            AdapterError: When TensorRT refuses it; the message names the node.
        """
        if not self.parser.parse_from_file(str(path)):
            found = problems(self.parser)
            raise AdapterError(AdapterFailure.BUILD, "; ".join(map(say, found[:3])) or "the parser gave no reason")


def problems(parser: Any) -> List[Problem]:
    """Return a parser's errors about the latest model."""
    return [_problem(parser.get_error(index)) for index in range(parser.num_errors)]


def _problem(error: Any) -> Problem:
    return {
        "node": error.node_name() if hasattr(error, "node_name") else "",
        "op": error.node_operator() if hasattr(error, "node_operator") else "",
        "index": error.node(),
        "reason": " ".join(str(error.desc()).split()),
    }


def say(problem: Problem) -> str:
    """Return a parser's problem in one line."""
    place = "node '{node}' ({op})" if problem["node"] or problem["op"] else "node {index}"
    return (place + ": {reason}").format(**problem)


def layers(network: Any) -> Iterator[Any]:
    """Yield the layers in order."""
    for index in range(network.num_layers):
        yield network.get_layer(index)


def made_by(layer: Any) -> List[Any]:
    """Return a layer's output tensors."""
    tensors = [layer.get_output(index) for index in range(layer.num_outputs)]
    return [tensor for tensor in tensors if tensor is not None]


def tensors_of(network: Any) -> Dict[str, Any]:
    """Return every tensor that a layer makes, by name."""
    return {tensor.name: tensor for layer in layers(network) for tensor in made_by(layer)}


def element_types(network: Any) -> FrozenSet[str]:
    """Return the member names of ``trt.DataType`` that the tensors of a network have."""
    return frozenset(word(tensor.dtype) for layer in layers(network) for tensor in made_by(layer))


def owners(network: Any, values: Mapping[str, str]) -> Iterator[Tuple[Any, str]]:
    """Yield each layer with its ONNX node; an empty name for constants and layers without one.

    Args:
        network: A parsed network.
        values: Node that makes each ONNX value, all of them.
    """
    pending: List[Any] = []
    for layer in layers(network):
        names = _METADATA.findall(getattr(layer, "metadata", "") or "")
        if names:
            yield layer, names[-1]
            continue
        pending.append(layer)
        made = [values[tensor.name] for tensor in made_by(layer) if tensor.name in values]
        if made:
            for waiting in pending:
                yield waiting, "" if word(waiting.type) == "CONSTANT" else made[0]
            pending = []
    for waiting in pending:
        yield waiting, ""


def is_float_layer(layer: Any) -> bool:
    """Return whether a layer computes floating-point tensors, so that a precision means something to it."""
    tensors = made_by(layer)
    return (
        bool(tensors)
        and word(layer.type) not in ("CONSTANT", "SHAPE", "QUANTIZE", "DEQUANTIZE", "PLUGIN_V2", "PLUGIN_V3")
        and all(word(tensor.dtype) in FLOATS and not tensor.is_shape_tensor for tensor in tensors)
    )


def constrain(trt: Any, network: Any, kept: Sequence[str], values: Mapping[str, str]) -> List[str]:
    """Request float32 in every layer of given ONNX nodes (weak typing); return the nodes that have such a layer."""
    wanted = frozenset(kept)
    found: Dict[str, None] = {}
    for layer, node in owners(network, values):
        if node in wanted and is_float_layer(layer):
            _set_precision(layer, trt.DataType.FLOAT)
            found[node] = None
    return list(found)


def constrain_as_typed(trt: Any, network: Any) -> None:
    """Ask every layer for the type that the ONNX gives its result: strong typing for releases that lack it."""
    for layer in layers(network):
        if is_float_layer(layer):
            _set_precision(layer, made_by(layer)[0].dtype)


def _set_precision(layer: Any, dtype: Any) -> None:
    layer.precision = dtype
    for index in range(layer.num_outputs):
        if layer.get_output(index) is not None:
            layer.set_output_type(index, dtype)


def mark_debug(network: Any, names: Sequence[str]) -> List[str]:
    """Mark tensors for the debug listener where this release can; return those that could be marked."""
    if not hasattr(network, "mark_debug"):
        return []
    tensors = tensors_of(network)
    return [name for name in names if name in tensors and network.mark_debug(tensors[name])]


def mark_unfused(network: Any) -> bool:
    """Mark every value that survives fusion for the debug listener; return False where this release cannot."""
    if not hasattr(network, "mark_unfused_tensors_as_debug_tensors"):
        return False
    return bool(network.mark_unfused_tensors_as_debug_tensors())

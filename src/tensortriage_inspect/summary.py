"""The contents of a model, at a glance: operators, interface, parameters, bodies, functions and repeated blocks.

Made from the parsed message alone: no weight is read, and files of external data are only looked for. A model whose
weights are missing can be inspected.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from tensortriage.sdk import (
    ConstantFacts,
    Message,
    RepeatedBlock,
    ValueFacts,
    all_nodes,
    bodies,
    declared_value,
    op_label,
    read_message,
    repeated_blocks,
    stored_tensor,
)
from tensortriage_inspect.constants import constant_value

_PASSED_ON_BY = frozenset(
    {"Cast", "DequantizeLinear", "Identity", "QuantizeLinear", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
UNUSED = "(unused)"
"""Stands for the operator of parameters that no node uses."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpCount:
    """One operator type.

    Attributes:
        op_type: Operator name, with its domain when that is not the standard one.
        nodes: Nodes of the main graph, of bodies and of functions.
        parameters: Elements of the constants that it is the first to compute with.
        parameter_bytes: Their size as stored.
    """

    op_type: str
    nodes: int
    parameters: int
    parameter_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class DTypeCount:
    """The constants of one element type."""

    dtype: str
    tensors: int
    elements: int
    nbytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file that holds weights; ``file_bytes`` is None when it is not there."""

    location: str
    tensors: int
    file_bytes: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Body:
    """A graph held by a node; ``depth`` is 1 for a node of the main graph."""

    node: str
    op_type: str
    attribute: str
    depth: int
    nodes: int


@dataclasses.dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A model-local function, and how many nodes call it."""

    name: str
    nodes: int
    calls: int


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSummary:
    """The contents of a model.

    Attributes:
        path: The file.
        file_bytes: Size of the file, external data not counted.
        name: Name of the graph.
        producer: Program that wrote the file, as the file names it.
        ir_version: Version of the file format.
        opsets: Operator set versions by domain.
        inputs: Its inputs, without those that have a default.
        outputs: Its outputs.
        nodes: Nodes of the main graph.
        all_nodes: With those of bodies and functions.
        ops: Operator types, the most frequent first.
        parameters: Elements of all constants: initializers and Constant nodes, bodies included.
        parameter_bytes: Their size as stored.
        initializers: Initializers of the main graph.
        dtypes: Constants by element type, the largest first.
        external: Files that hold weights.
        symbols: Name of each symbolic dimension of the inputs, to the places where it occurs (``input[axis]``).
        unknown_dims: Places of input dimensions without name or size.
        bodies: Graphs of If, Loop and Scan.
        functions: Model-local functions.
        blocks: Repeated blocks of the main graph.
        metadata: The exporter's notes about the whole model.
    """

    path: str
    file_bytes: int
    name: str
    producer: str
    ir_version: int
    opsets: Mapping[str, int]
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]
    nodes: int
    all_nodes: int
    ops: tuple[OpCount, ...]
    parameters: int
    parameter_bytes: int
    initializers: int
    dtypes: tuple[DTypeCount, ...]
    external: tuple[ExternalFile, ...]
    symbols: Mapping[str, tuple[str, ...]]
    unknown_dims: tuple[str, ...]
    bodies: tuple[Body, ...]
    functions: tuple[FunctionFacts, ...]
    blocks: tuple[RepeatedBlock, ...]
    metadata: Mapping[str, str]
    format: str = "tensortriage.model-summary/1"


def summarize(path: Path, *, external_data_dir: Path | None = None) -> ModelSummary:
    """Read and summarize a model file.

    Args:
        path: The file.
        external_data_dir: Folder of external data, when not that of the file.

    Raises:
        ModelError: When the file is no sound model; see `tensortriage.model.model`.
    """
    return summary_of(read_message(path), path, external_data_dir or path.parent)


def summary_of(message: Message, path: Path, external_data_dir: Path) -> ModelSummary:
    """Summarize a parsed model."""
    proto, graph = message.proto, message.proto.graph
    everything = [node for nodes in (graph.node, *(f.node for f in proto.functions)) for node in all_nodes(nodes)]
    constants = main_constants(graph)
    stored = [*constants.values(), *_inner_constants(graph)]
    inputs = tuple(declared_value(info) for info in graph.input if info.name not in constants)
    symbols, unknown = _open_dims(inputs)
    return ModelSummary(
        path=str(path),
        file_bytes=path.stat().st_size,
        name=graph.name,
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        ir_version=proto.ir_version,
        opsets={opset.domain or "ai.onnx": opset.version for opset in proto.opset_import},
        inputs=inputs,
        outputs=tuple(map(declared_value, graph.output)),
        nodes=len(graph.node),
        all_nodes=len(everything),
        ops=_op_counts(everything, stored),
        parameters=sum(constant.count for constant in stored),
        parameter_bytes=sum(constant.nbytes for constant in stored),
        initializers=len(graph.initializer),
        dtypes=_dtype_counts(stored),
        external=_external_files(graph, external_data_dir),
        symbols=symbols,
        unknown_dims=unknown,
        bodies=tuple(_bodies(graph.node, 1)),
        functions=_functions(proto.functions, everything),
        blocks=repeated_blocks(graph.node, constants),
        metadata={entry.key: entry.value for entry in proto.metadata_props},
    )


def main_constants(graph: onnx.GraphProto) -> dict[str, ConstantFacts]:
    """Return initializers and outputs of Constant nodes of one graph, without those of its bodies, by name."""
    found = {tensor.name: stored_tensor(tensor, tensor.name) for tensor in graph.initializer}
    for constant in filter(None, map(constant_value, graph.node)):
        found[constant.name] = constant
    return found


def _inner_constants(graph: onnx.GraphProto) -> Iterator[ConstantFacts]:
    for node in graph.node:
        for _, body in bodies(node):
            yield from main_constants(body).values()
            yield from _inner_constants(body)


def _op_counts(nodes: Sequence[onnx.NodeProto], stored: Iterable[ConstantFacts]) -> tuple[OpCount, ...]:
    counts: dict[str, list[int]] = {}
    users: dict[str, onnx.NodeProto] = {}
    for node in nodes:
        counts.setdefault(op_label(node), [0, 0, 0])[0] += 1
        for name in node.input:
            users.setdefault(name, node)
    for constant in stored:
        entry = counts.setdefault(_first_user(constant.name, users), [0, 0, 0])
        entry[1] += constant.count
        entry[2] += constant.nbytes
    rows = [OpCount(op_type, *entry) for op_type, entry in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.nodes, row.op_type)))


def _first_user(name: str, users: Mapping[str, onnx.NodeProto]) -> str:
    """Return the operator that computes with a constant: the first user that does not only pass it on."""
    seen: set[str] = set()
    while name in users and name not in seen:
        seen.add(name)
        node = users[name]
        if node.op_type not in _PASSED_ON_BY or not node.output or node.input[0] != name:
            return op_label(node)
        name = node.output[0]
    return op_label(users[next(iter(seen))]) if len(seen) == 1 and name in users else UNUSED


def _dtype_counts(stored: Iterable[ConstantFacts]) -> tuple[DTypeCount, ...]:
    counts: dict[str, list[int]] = {}
    for constant in stored:
        entry = counts.setdefault(constant.dtype.label, [0, 0, 0])
        for index, number in enumerate((1, constant.count, constant.nbytes)):
            entry[index] += number
    rows = [DTypeCount(label, *entry) for label, entry in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.nbytes, row.dtype)))


def _external_files(graph: onnx.GraphProto, directory: Path) -> tuple[ExternalFile, ...]:
    counts: dict[str, int] = {}
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
            counts[location] = counts.get(location, 0) + 1
    return tuple(ExternalFile(location, count, _size(directory / location)) for location, count in counts.items())


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # ValueError: a null byte in the name
        return None


def _open_dims(inputs: Iterable[ValueFacts]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    symbols: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for value in inputs:
        for axis, dim in enumerate(value.shape or ()):
            place = f"{value.name}[{axis}]"
            if isinstance(dim, str):
                symbols[dim] = (*symbols.get(dim, ()), place)
            elif dim is None or dim < 0:
                unknown.append(place)
    return symbols, tuple(unknown)


def _bodies(nodes: Iterable[onnx.NodeProto], depth: int) -> Iterator[Body]:
    for node in nodes:
        for attribute, graph in bodies(node):
            yield Body(node.name or node.op_type, op_label(node), attribute, depth, len(graph.node))
            yield from _bodies(graph.node, depth + 1)


def _functions(functions: Iterable[onnx.FunctionProto], nodes: Iterable[onnx.NodeProto]) -> tuple[FunctionFacts, ...]:
    calls = Counter((node.domain, node.op_type) for node in nodes)
    return tuple(FunctionFacts(f"{f.domain}::{f.name}", len(f.node), calls[f.domain, f.name]) for f in functions)

"""From a model to files that every engine loads, without passing the weights through memory.

Engines accept external data only inside the model's own directory: ONNX Runtime 1.31 and OpenVINO 2026.4 refuse
absolute paths, ``..`` and symbolic links that lead out. A hard link is accepted by both, but makes onnx.load refuse the
user's original file for as long as the link exists. So the models of one search are saved into one directory, and each
weight is copied into it once, named by its contents: `ExternalData.KEEP`.

Every file appears under its name only when it is complete.
"""

import contextlib
import dataclasses
import enum
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.serializing import Hollow, to_bytes, to_proto
from tensortriage.model.walk import all_graphs
from tensortriage.model.weights import MappedTensor, content_sha256
from tensortriage.model.wire import Payload, write_model

POOL = "weights"
EMBED_LIMIT_BYTES = 3 << 29
_INLINE_BYTES = 1024
_POOLED_BYTES = 64 << 10
_STREAMED_BYTES = 4096
_PAGE, _LINE = 4096, 64


class ExternalData(enum.Enum):
    """Where the weights of a saved model go.

    AUTO embeds them, unless they exceed 1.5 GiB (protobuf ends at 2 GiB): then as ALWAYS. ALWAYS writes one file,
    ``NAME.onnx.data``, beside the model. KEEP is for the many models of one search: weights beyond 64 KiB lie once in
    the directory ``weights`` beside the model, named by their SHA-256, and all models saved into the same directory
    share them.
    """

    AUTO = "auto"
    ALWAYS = "always"
    KEEP = "keep"


@dataclasses.dataclass(frozen=True, slots=True)
class _Weight:
    value: ir.Value
    tensor: Any

    @property
    def nbytes(self) -> int:
        return int(self.tensor.nbytes)


def save_model(
    model: ir.Model, path: Path, external_data: ExternalData, *, embed_limit_bytes: int = EMBED_LIMIT_BYTES
) -> None:
    """Write a model and its weights; the model stays usable, even when it overwrites its own files.

    Args:
        model: The model.
        path: Where; missing directories are made.
        external_data: Where the weights go.
        embed_limit_bytes: Most weights that are written into the model file itself.

    Raises:
        ModelError: ``model-unwritable`` when a file cannot be written, ``model-too-large`` when the graph alone exceeds
            2 GiB, ``external-data-changed`` when weights vanished since they were loaded.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        weights = _weights(model)
        _pin_what_is_replaced(weights, path)
        placed = _place(weights, path, external_data, embed_limit_bytes)
        streamed = _streamed(model, placed)
        proto = to_proto(
            model, lambda value, tensor: Hollow(tensor) if id(value) in streamed else placed.get(id(value), tensor)
        )
        values = model.graph.initializers
        initializers = [_initializer(t, streamed.get(id(values[t.name]))) for t in proto.graph.initializer]
        proto.graph.ClearField("initializer")
        graph = to_bytes(proto.graph)
        proto.ClearField("graph")
        with _complete(path) as file:
            write_model(file, rest=to_bytes(proto), graph=graph, initializers=initializers)
    except OSError as error:
        raise ModelError(
            f"{path} cannot be written: {error.strerror or error}",
            slug="model-unwritable",
            cure="check permissions and free space of that directory",
        ) from error


def _weights(model: ir.Model) -> list[_Weight]:
    return [
        _Weight(value, value.const_value)
        for graph in all_graphs(model)
        for value in graph.initializers.values()
        if value.const_value is not None and value.const_value.dtype != ir.DataType.STRING
    ]


def _place(
    weights: list[_Weight], path: Path, external_data: ExternalData, embed_limit_bytes: int
) -> dict[int, ir.ExternalTensor]:
    """Write the weights that go outside the model file; return what stands for them in it, by id of the value."""
    placed: dict[int, ir.ExternalTensor] = {}
    if external_data is ExternalData.KEEP:
        placed = {id(w.value): _pool(w, path.parent) for w in weights if w.nbytes > _POOLED_BYTES}
    inside = [weight for weight in weights if id(weight.value) not in placed]
    if external_data is ExternalData.ALWAYS or sum(weight.nbytes for weight in inside) > embed_limit_bytes:
        placed |= _write_beside([weight for weight in inside if weight.nbytes > _INLINE_BYTES], path)
    return placed


def _pool(weight: _Weight, directory: Path) -> ir.ExternalTensor:
    location = Path(POOL, f"{content_sha256(weight.tensor)[:40]}.bin")
    target = directory / location
    if not target.is_file() or target.stat().st_size != weight.nbytes:
        target.parent.mkdir(exist_ok=True)
        with _complete(target) as file:
            weight.tensor.tofile(file)
    return _reference(weight, location.as_posix(), 0)


def _write_beside(weights: list[_Weight], path: Path) -> dict[int, ir.ExternalTensor]:
    """Write one data file, each large tensor on a page of its own so that engines can map it."""
    if not weights:
        return {}
    placed: dict[int, ir.ExternalTensor] = {}
    written: dict[int, int] = {}
    with _complete(_beside(path)) as file:
        for weight in weights:
            if id(weight.tensor) not in written:
                alignment = _PAGE if weight.nbytes >= _PAGE else _LINE
                file.write(bytes(-file.tell() % alignment))
                written[id(weight.tensor)] = file.tell()
                weight.tensor.tofile(file)
            placed[id(weight.value)] = _reference(weight, _beside(path).name, written[id(weight.tensor)])
    return placed


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".data")


def _reference(weight: _Weight, location: str, offset: int) -> ir.ExternalTensor:
    shape = ir.Shape(weight.tensor.shape.numpy())
    return ir.ExternalTensor(
        location,
        offset,
        weight.nbytes,
        weight.tensor.dtype,
        shape=shape,
        name=weight.value.name or "",
        metadata_props=dict(weight.tensor.metadata_props),
    )


def _streamed(model: ir.Model, placed: dict[int, ir.ExternalTensor]) -> dict[int, Any]:
    """Return the tensors of the main graph that go around protobuf into the model file, by id of the value."""
    return {
        id(value): value.const_value
        for value in model.graph.initializers.values()
        if id(value) not in placed
        and value.const_value is not None
        and value.const_value.dtype != ir.DataType.STRING
        and value.const_value.nbytes > _STREAMED_BYTES
    }


def _initializer(proto: onnx.TensorProto, payload: Payload | None) -> tuple[bytes, Payload | None]:
    if payload is not None:
        proto.ClearField("raw_data")
    return to_bytes(proto), payload


def _pin_what_is_replaced(weights: list[_Weight], path: Path) -> None:
    replaced = {path.resolve(), _beside(path).resolve()}
    for weight in weights:
        if isinstance(weight.tensor, MappedTensor) and weight.tensor.file.path.resolve() in replaced:
            weight.tensor.file.pin()


@contextlib.contextmanager
def _complete(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when the block ends, and not at all when it fails."""
    partial = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

"""From a model to files that every engine loads, without passing the weights through memory.

Engines accept external data only inside the model's own directory: ONNX Runtime 1.31 and OpenVINO 2026.4 refuse
absolute paths, ``..`` and symbolic links that lead out. A hard link is accepted by both, but makes onnx.load refuse the
user's original file for as long as the link exists. So the models of one search are saved into one directory, and each
weight is copied into it once, named by its contents: `ExternalData.KEEP`.

Every file appears under its name only when it is complete.
"""

import enum
import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from tensortriage.errors import StoreError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.lazy_weights import MappedTensor, content_sha256, large_initializers, stored_bytes
from tensortriage.model.io.serialize import to_bytes, to_proto
from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.messages import all_nodes, bodies
from tensortriage.model.ir.traversal import all_graphs
from tensortriage.model.wire import Payload, write_model
from tensortriage.values.files import placed

POOL = "weights"
NO_METADATA: Mapping[str, str] = MappingProxyType({})
EMBED_LIMIT_BYTES = 3 << 29
_INLINE_BYTES = 1024
_POOLED_BYTES = 64 << 10
_PAGE, _LINE = 4096, 64
_DATA_FIELDS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


class ExternalData(enum.Enum):
    """Place of the weights of a saved model.

    AUTO embeds them, unless they exceed 1.5 GiB (protobuf ends at 2 GiB): then as ALWAYS. ALWAYS writes one file,
    ``NAME.onnx.data``, next to the model. KEEP is for the many models of one search: weights beyond 64 KiB lie once in
    the directory ``weights`` next to the model, named by their SHA-256, and all models saved into the same directory
    share them. LEAVE is for an edited copy of a model: embedded weights are embedded again; those in data files stay
    there when the copy is saved into the directory of these files, and are copied into ``NAME.onnx.data`` when it is
    saved elsewhere.
    """

    AUTO = "auto"
    ALWAYS = "always"
    KEEP = "keep"
    LEAVE = "leave"


@frozen_dataclass
class ExternalLayout:
    """Weights outside a saved model, and their files.

    Attributes:
        location: Path relative to the directory of the model, of the one data file (empty: ``NAME.onnx.data``) or of
            the directory of data files (empty: ``NAME.onnx.weights``).
        threshold_bytes: Smallest weight that goes outside.
        one_file: Whether there is one data file, or one per weight.
    """

    location: str = ""
    threshold_bytes: int = 1024
    one_file: bool = True


@frozen_dataclass
class _Weight:
    """An initializer to be written: its placeholder in the file, and the tensor with its numbers."""

    proto: onnx.TensorProto
    tensor: Any

    @property
    def nbytes(self) -> int:
        """Size of the numbers in bytes."""
        return stored_bytes(self.tensor)

    def tofile(self, file: BinaryIO) -> None:
        """Write its numbers."""
        self.tensor.tofile(file)

    @property
    def is_external(self) -> bool:
        """Whether its numbers are in a data file, as opposed to memory or a model file."""
        return isinstance(self.tensor, MappedTensor) and not self.tensor.file.is_model


@collector_paused()
def save_model(
    model: ir.Model,
    path: Path,
    external_data: ExternalData | ExternalLayout,
    *,
    metadata: Mapping[str, str] = NO_METADATA,
    embed_limit_bytes: int = EMBED_LIMIT_BYTES,
) -> None:
    """Write a model and its weights; the model stays usable, even when it overwrites its own files.

    Args:
        model: The model.
        path: Where; missing directories are made.
        external_data: Where the weights go.
        metadata: Goes into the file in addition to the model's own.
        embed_limit_bytes: Most weights that are written into the model file itself.

    Raises:
        UsageError: When a layout names a place outside the directory of the model, or the model itself
            (``external-location``).
        StoreError: ``model-unwritable`` when a file cannot be written; nothing is wrong with the model then.
        ModelError: ``model-too-large`` when the graph alone exceeds 2 GiB, ``external-data-changed`` when weights
            vanished since they were loaded.
    """
    if isinstance(external_data, ExternalLayout):
        _check_location(external_data, path)
    threshold = external_data.threshold_bytes if isinstance(external_data, ExternalLayout) else _INLINE_BYTES
    large = large_initializers(model, above_bytes=min(_INLINE_BYTES, max(threshold - 1, 0)))
    proto = to_proto(model, hollow=large)
    for key, value in metadata.items():
        proto.metadata_props.add(key=key, value=value)
    weights = {t.name: _Weight(t, large[t.name]) for t in proto.graph.initializer if t.name in large}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _pin_what_is_replaced(weights.values(), path, external_data)
        _move_out([*weights.values(), *_in_bodies(model, proto)], path, external_data, embed_limit_bytes)
        initializers = [_initializer(tensor, weights.get(tensor.name)) for tensor in proto.graph.initializer]
        proto.graph.ClearField("initializer")
        graph = to_bytes(proto.graph)
        proto.ClearField("graph")
        with placed(path) as file:
            write_model(file, rest=to_bytes(proto), graph=graph, initializers=initializers)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror or f'{error} (is the disk full?)'}",
            slug="model-unwritable",
            cure="check permissions and free space of that directory",
        ) from error


def _in_bodies(model: ir.Model, proto: onnx.ModelProto) -> list[_Weight]:
    """Return the large initializers inside the bodies of If, Loop and Scan; they did pass through protobuf."""
    if len(list(itertools.islice(all_graphs(model), 2))) == 1:
        return []
    holders = all_nodes([*proto.graph.node, *(node for function in proto.functions for node in function.node)])
    tensors = (tensor for node in holders for _, body in bodies(node) for tensor in body.initializer)
    found = (
        _Weight(tensor, ir.from_proto(tensor))
        for tensor in tensors
        if tensor.data_type != onnx.TensorProto.STRING and tensor.data_location != onnx.TensorProto.EXTERNAL
    )  # absent ones stay out
    return [weight for weight in found if weight.nbytes > _INLINE_BYTES]


def _move_out(
    weights: list[_Weight], path: Path, external_data: ExternalData | ExternalLayout, embed_limit_bytes: int
) -> None:
    """Write the weights outside the model file, and store their places in the messages."""
    inside = weights
    if isinstance(external_data, ExternalLayout):
        outside = [weight for weight in weights if weight.nbytes >= external_data.threshold_bytes]
        if external_data.one_file:
            _write_together(outside, path, external_data.location or _beside(path).name)
        else:
            _write_apart(outside, path, external_data.location or f"{path.name}.weights")
        return
    if external_data is ExternalData.KEEP:
        inside = [weight for weight in weights if weight.nbytes <= _POOLED_BYTES]
        for weight in weights:
            if weight.nbytes > _POOLED_BYTES:
                _pool(weight, path.parent)
    elif external_data is ExternalData.LEAVE:
        elsewhere = [weight for weight in weights if weight.is_external and not _leave(weight, path)]
        _write_together(elsewhere, path, _beside(path).name)
        inside = [weight for weight in weights if not weight.is_external]
        if elsewhere and sum(weight.nbytes for weight in inside) > embed_limit_bytes:
            inside += elsewhere  # one data file for all of them
    if external_data is ExternalData.ALWAYS or sum(weight.nbytes for weight in inside) > embed_limit_bytes:
        _write_together(inside, path, _beside(path).name)


def _leave(weight: _Weight, path: Path) -> bool:
    """Refer to the file of a weight if it is in the model's directory; return whether it is."""
    file, directory = weight.tensor.file.path, path.parent.resolve()
    if not file.is_relative_to(directory) or file in (path.resolve(), _beside(path).resolve()):
        return False
    weight.tensor.file.open().close()  # it raises when the file was changed
    _refer(weight, file.relative_to(directory).as_posix(), weight.tensor.offset)
    return True


def _pool(weight: _Weight, directory: Path) -> None:
    location = Path(POOL, f"{content_sha256(weight.tensor)[:40]}.bin")
    target = directory / location
    if not target.is_file() or target.stat().st_size != weight.nbytes:
        target.parent.mkdir(exist_ok=True)
        with placed(target) as file:
            weight.tensor.tofile(file)
    _refer(weight, location.as_posix(), 0)


def _write_together(weights: list[_Weight], path: Path, location: str) -> None:
    """Write one data file, each large tensor on a page of its own so that engines can map it."""
    if not weights:
        return
    written: dict[int, int] = {}
    target = path.parent / location
    target.parent.mkdir(parents=True, exist_ok=True)
    with placed(target) as file:
        for weight in weights:
            if id(weight.tensor) not in written:
                alignment = _PAGE if weight.nbytes >= _PAGE else _LINE
                file.write(bytes(-file.tell() % alignment))
                written[id(weight.tensor)] = file.tell()
                weight.tensor.tofile(file)
    for weight in weights:
        _refer(weight, location, written[id(weight.tensor)])


def _write_apart(weights: list[_Weight], path: Path, location: str) -> None:
    """Write one data file per weight, named after it."""
    for number, weight in enumerate(weights):
        name = re.sub(r"[^\w.-]+", "_", weight.proto.name)[-80:]
        _write_together([weight], path, f"{location}/{number:04d}_{name}.bin")


def _check_location(layout: ExternalLayout, path: Path) -> None:
    windows = PureWindowsPath(layout.location)
    if windows.anchor or ".." in windows.parts or layout.location == path.name:
        raise UsageError(
            f"external data of {path.name} cannot go to {quoted(layout.location)}",
            slug="external-location",
            cure="name a path relative to the directory of the model, below it and other than the model",
        )


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".data")


def _refer(weight: _Weight, location: str, offset: int) -> None:
    refer(weight.proto, location, offset, weight.nbytes)


def refer(message: onnx.TensorProto, location: str, offset: int, nbytes: int) -> None:
    """Replace the values in a message by the place where they are (onnx.proto, TensorProto.external_data).

    Args:
        message: The tensor; it is changed.
        location: File, relative to the directory of the model.
        offset: Of the first byte in it.
        nbytes: Length in bytes.
    """
    for field in _DATA_FIELDS:
        message.ClearField(field)
    message.data_location = onnx.TensorProto.EXTERNAL
    for key, said in (("location", location), ("offset", offset), ("length", nbytes)):
        message.external_data.add(key=key, value=str(said))


def _initializer(proto: onnx.TensorProto, weight: _Weight | None) -> tuple[bytes, Payload | None]:
    """Return the message of an initializer of the main graph, and its numbers when they are still to be written."""
    if weight is None or proto.data_location == onnx.TensorProto.EXTERNAL:
        return to_bytes(proto), None
    proto.ClearField("raw_data")
    return to_bytes(proto), weight


def _pin_what_is_replaced(weights: Iterable[_Weight], path: Path, external_data: ExternalData | ExternalLayout) -> None:
    replaced = {path.resolve(), _beside(path).resolve()}
    folder = None
    if isinstance(external_data, ExternalLayout) and external_data.location:
        replaced.add((path.parent / external_data.location).resolve())
    if isinstance(external_data, ExternalLayout) and not external_data.one_file:
        folder = (path.parent / (external_data.location or f"{path.name}.weights")).resolve()
    for weight in weights:
        if isinstance(weight.tensor, MappedTensor):
            source = weight.tensor.file.path.resolve()
            if source in replaced or (folder is not None and source.is_relative_to(folder)):
                weight.tensor.file.pin()

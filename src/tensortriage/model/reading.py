"""From a file of unknown origin to an onnx_ir model, or to an error that says what is wrong with the file.

This is the border for everything that onnx, onnx_ir and protobuf raise while a model is read. Files beyond a size are
mapped into memory and their weights stay where they are.
"""

import logging
import mmap
import stat
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.external import ExternalFiles
from tensortriage.model.foreign_types import take_foreign_types
from tensortriage.model.quoting import first_line
from tensortriage.model.structure import check_structure
from tensortriage.model.walk import replace_tensors
from tensortriage.model.weights import MappedTensor, WeightFile
from tensortriage.model.wire import Buffer, lift_weights

LARGE_FILE_BYTES = 32 << 20
LARGE_WEIGHT_BYTES = 16 << 10

logging.getLogger("onnx_ir").addHandler(logging.NullHandler())  # else its warnings go to stderr unasked

_MAGICS = (
    (0, b"version https://git-lfs", "a Git LFS pointer", "run git lfs pull"),
    (0, b"PK\x03\x04", "a zip file, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
    (4, b"ORTM", "a model in ONNX Runtime's own format", "use the ONNX file it was made from"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx"),
    (0, b"\x89HDF", "an HDF5 file, perhaps a Keras model", "convert it with tf2onnx"),
    (0, b"ptrt", "a TensorRT engine", "use the ONNX file it was built from"),
    (0, b"ftrt", "a TensorRT engine", "use the ONNX file it was built from"),
    (8, b"{", "a safetensors file", "export the network with torch.onnx.export"),
    (0, b"\x1f\x8b", "a gzip file", "unpack it first"),
    (0, b"<!DOCTYPE", "a web page", "download the model itself"),
    (0, b"<html", "a web page", "download the model itself"),
    (0, b"<?xml", "an XML file, perhaps an OpenVINO model", "use the ONNX file it was converted from"),
)


def read_model(path: Path, *, external_data_dir: Path | None = None) -> ir.Model:
    """Read an ONNX file; large weights, external or not, stay on disk.

    Args:
        path: The file.
        external_data_dir: Where external data are, when not beside the file.

    Raises:
        ModelError: Whatever is wrong with the file; see the table of slugs in `tensortriage.model.model`.
    """
    proto, places = _parse(path)
    check_structure(proto, lifted={index: length for index, (_, length) in places.items()})
    foreign_types = take_foreign_types(proto.graph)
    model = _deserialize(proto, path)
    foreign_types.attach(model.graph)
    _leave_in_file(model, path, {proto.graph.initializer[i].name: offset for i, (offset, _) in places.items()})
    files = ExternalFiles.of(path, external_data_dir)
    replace_tensors(model, lambda tensor: files.bind(tensor) if isinstance(tensor, ir.ExternalTensor) else tensor)
    return model


def _parse(path: Path) -> tuple[onnx.ModelProto, Mapping[int, tuple[int, int]]]:
    """Return the message without its large weights, and where in the file these are (see `Lifted.places`)."""
    data = _contents(path)
    try:
        lifted = lift_weights(data, threshold=LARGE_WEIGHT_BYTES if len(data) >= LARGE_FILE_BYTES else len(data) + 1)
        proto = onnx.ModelProto()
        proto.ParseFromString(lifted.skeleton)
    except Exception as error:  # WireError, or what protobuf raises, whose type has no stable home
        raise _not_onnx(path, data[:64], str(error)) from error
    if not proto.HasField("graph"):
        raise _not_onnx(path, data[:64], "it holds no graph")
    return proto, lifted.places


def _contents(path: Path) -> Buffer:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size:
            with path.open("rb") as file:
                if status.st_size < LARGE_FILE_BYTES:
                    return file.read()
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist", slug="model-missing", cure="check the path") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}", slug="model-unreadable", cure="check the path") from error
    what = "a directory" if stat.S_ISDIR(status.st_mode) else "empty" if not status.st_size else "not a regular file"
    raise ModelError(f"{path} is {what}", slug="model-unreadable", cure="name an ONNX file")


def _not_onnx(path: Path, start: bytes, reason: str) -> ModelError:
    for offset, magic, kind, cure in _MAGICS:
        if start[offset:].startswith(magic):
            return ModelError(f"{path} is not an ONNX model but {kind}", slug="model-unreadable", cure=cure)
    return ModelError(
        f"{path} is not an ONNX model, or is damaged or truncated: {reason}",
        slug="model-unreadable",
        cure="compare its size with the original; export or download it again",
    )


def _deserialize(proto: onnx.ModelProto, path: Path) -> ir.Model:
    try:
        return ir.from_proto(proto)
    except Exception as error:  # onnx_ir raises RuntimeError around anything; this is the border where it ends
        raise ModelError(
            f"{path} is not a valid ONNX model: {first_line(error)}",
            slug="model-invalid",
            cure="export the model again; python -m onnx.checker names further faults",
        ) from error


def _leave_in_file(model: ir.Model, path: Path, offsets: Mapping[str, int]) -> None:
    """Point the initializers whose data were lifted out at their bytes in the model file."""
    if not offsets:
        return
    file = WeightFile(path)
    for name, offset in offsets.items():
        value = model.graph.initializers[name]
        tensor = value.const_value
        if tensor is not None and not isinstance(tensor, ir.ExternalTensor):
            value.const_value = MappedTensor(
                file,
                offset,
                dtype=tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy(), frozen=True),
                name=name,
                metadata_props=dict(tensor.metadata_props),
            )

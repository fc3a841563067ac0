"""From a file of unknown origin to an onnx_ir model, or to an error that names the defect of the file.

With `tensortriage.model.io.parse` this is the border for everything that onnx, onnx_ir and protobuf raise while a model
is read. Files beyond a size are mapped into memory and their weights stay where they are.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.check_tensors import is_stripped
from tensortriage.model.io.external_data import ExternalFiles
from tensortriage.model.io.foreign_types import take_foreign_types
from tensortriage.model.io.lazy_weights import AbsentTensor, MappedTensor, WeightFile
from tensortriage.model.io.parse import Message, read_message
from tensortriage.model.io.serialize import TRAINING, Hollow
from tensortriage.model.ir.display_names import first_line
from tensortriage.model.ir.traversal import replace_tensors

logging.getLogger("onnx_ir").addHandler(logging.NullHandler())  # else its warnings go to stderr unasked


def read_model(
    path: Path,
    *,
    external_data_dir: Path | None = None,
    ignore_external_data: bool = False,
    message: Message | None = None,
) -> ir.Model:
    """Read an ONNX file; large weights, external or not, stay on disk.

    Args:
        path: The file.
        external_data_dir: Folder of external data, when not that of the file.
        ignore_external_data: Whether external data are never looked for.
        message: The file as it was parsed before; None to parse it.

    Raises:
        ModelError: Whatever is wrong with the file; see the table of slugs in `tensortriage.model.model`.
    """
    message = message or read_message(path)
    proto, places = message.proto, message.places
    foreign_types = take_foreign_types(proto.graph)
    model = _deserialize(proto, path)
    if proto.training_info:  # onnx_ir does not know it; metadata of a graph survive its clones
        model.graph.meta[TRAINING] = tuple(proto.training_info)
    foreign_types.attach(model.graph)
    for tensor in filter(is_stripped, proto.graph.initializer):
        value = model.graph.initializers[tensor.name]
        value.const_value = Hollow(value.const_value)
    _leave_in_file(model, path, {proto.graph.initializer[i].name: offset for i, (offset, _) in places.items()})
    bind = AbsentTensor.of if ignore_external_data else ExternalFiles.of(path, external_data_dir).bind
    replace_tensors(model, lambda tensor: bind(tensor) if isinstance(tensor, ir.ExternalTensor) else tensor)
    return model


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
    """Point initializers at their data in the model file."""
    if not offsets:
        return
    file = WeightFile(path, is_model=True)
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
                described=tensor,
            )

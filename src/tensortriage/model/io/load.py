"""From a file of unknown origin to an onnx_ir model, or to an error that names the defect of the file.

With `tensortriage.model.io.parse` this is the border for everything that onnx, onnx_ir and protobuf raise while a model
is read. Files beyond a size are mapped into memory and their weights stay where they are.
"""

from pathlib import Path

import onnx_ir as ir

from tensortriage.model.io.check_tensors import is_stripped
from tensortriage.model.io.deserialize import deserialize
from tensortriage.model.io.external_data import ExternalFiles
from tensortriage.model.io.lazy_weights import AbsentTensor, Hollow, leave_in_file
from tensortriage.model.io.parse import Message
from tensortriage.model.ir.traversal import replace_tensors


def read_model(message: Message, path: Path, files: ExternalFiles | None) -> ir.Model:
    """Return the model of a parsed ONNX file; large weights, external or not, stay on disk.

    Args:
        message: The file, parsed.
        path: The file.
        files: Where its external data are; None to look for none.

    Raises:
        ModelError: When onnx_ir cannot read it, or external data are wrong; see `tensortriage.model.model`.
    """
    proto = message.proto
    model = deserialize(proto, path)
    for tensor in filter(is_stripped, proto.graph.initializer):
        value = model.graph.initializers[tensor.name]
        value.const_value = Hollow(value.const_value)
    offsets = {proto.graph.initializer[i].name: offset for i, (offset, _) in message.places.items()}
    leave_in_file(model, path, offsets)
    bind = AbsentTensor.of if files is None else files.bind
    replace_tensors(model, lambda tensor: bind(tensor) if isinstance(tensor, ir.ExternalTensor) else tensor)
    return model

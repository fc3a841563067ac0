"""A model as a message whose large weights stay in the files where they are, for engines that read such messages.

Writing an edited model to a file costs the time and the space of all its weights, though an edit changes few of them.
An embedded weight can be referred to as well: the model file is then the file of external data.
"""

from pathlib import Path

from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.lazy_weights import MappedTensor, lacks_numbers
from tensortriage.model.io.save import EMBED_LIMIT_BYTES, refer
from tensortriage.model.io.serialize import to_bytes, to_proto
from tensortriage.model.model import Model

_REFERRED_BYTES = 16 << 10


@frozen_dataclass
class InPlace:
    """A model that is in no file of its own.

    Attributes:
        message: Serialized ModelProto.
        folder: Real directory that its external data are in.
    """

    message: bytes
    folder: Path


def in_place(model: Model) -> InPlace | None:
    """Return a model as a message that refers to weights where they are.

    Args:
        model: The model; its files must stay as they are for as long as the message is in use.

    Returns:
        None when its weights do not lie in one directory, when they are not known, or when those in memory do not fit
        into a message.

    Raises:
        ModelError: When a file of weights changed since the model was loaded (slug ``external-data-changed``).
    """
    tensors = {
        name: value.const_value for name, value in model.ir.graph.initializers.items() if value.const_value is not None
    }
    mapped = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, MappedTensor)}
    outside = {name: tensor for name, tensor in mapped.items() if tensor.nbytes > _REFERRED_BYTES}
    if not outside and model.path is not None:
        return InPlace(model.path.read_bytes(), model.path.resolve().parent)
    inside = sum(tensor.nbytes for name, tensor in tensors.items() if name not in outside)
    files = {tensor.file for tensor in outside.values()}
    folders = {file.path.resolve().parent for file in files}
    if any(map(lacks_numbers, tensors.values())) or len(folders) > 1 or inside > EMBED_LIMIT_BYTES:
        return None
    for file in files:
        file.open().close()  # it raises when the file was changed
    proto = to_proto(model.ir, hollow=outside)
    for message in proto.graph.initializer:
        if message.name in outside:
            tensor = outside[message.name]
            refer(message, tensor.file.path.resolve().name, tensor.offset, tensor.nbytes)
    return InPlace(to_bytes(proto), folders.pop() if folders else Path())

"""From a file of unknown origin to a parsed, checked ONNX message whose large weights were left in the file.

Looking into a model needs no more than this, which is why onnx_ir stays out of it: importing it takes longer and holds
more memory than everything done here to a model of two thousand nodes.
"""

import dataclasses
import mmap
import stat
from collections.abc import Mapping
from pathlib import Path

import onnx

from tensortriage.errors import ModelError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.io.check_structure import check_structure
from tensortriage.model.io.other_formats import not_onnx
from tensortriage.model.io.repeated_names import mend_repeated_names
from tensortriage.model.wire import Buffer, lift_weights
from tensortriage.values.files import absence

LARGE_FILE_BYTES = 32 << 20
LARGE_WEIGHT_BYTES = 16 << 10


@frozen_dataclass(eq=False)
class Message:
    """A model file as parsed by protobuf.

    Attributes:
        proto: The message, its graph checked, without the data of the initializers in `places`.
        places: Position in ``graph.initializer`` to (offset, length) of its raw data in the file, in bytes.
        mended: New name to old name of the values that were renamed apart.
    """

    proto: onnx.ModelProto
    places: Mapping[int, tuple[int, int]]
    mended: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read_message(path: Path, *, mend_names: bool = False) -> Message:
    """Parse an ONNX file, mapped into memory when it is large, and check that its graph hangs together.

    Args:
        path: The file.
        mend_names: Whether values that several nodes make under one name are renamed apart; see
            `tensortriage.model.io.repeated_names`.

    Raises:
        ModelError: Whatever is wrong with the file but for its external data; see `tensortriage.model.model`.
    """
    data = _contents(path)
    try:
        lifted = lift_weights(data, threshold=LARGE_WEIGHT_BYTES if len(data) >= LARGE_FILE_BYTES else len(data) + 1)
        proto = onnx.ModelProto()
        proto.ParseFromString(lifted.skeleton)
    except Exception as error:  # WireError, or an exception of protobuf, whose type has no stable home
        raise not_onnx(path, data[:64], str(error)) from error
    if not proto.HasField("graph"):
        raise not_onnx(path, data[:64], "it holds no graph")
    mended = mend_repeated_names(proto) if mend_names else {}
    check_structure(proto, lifted={index: length for index, (_, length) in lifted.places.items()})
    return Message(proto, lifted.places, mended)


def _contents(path: Path) -> Buffer:
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size:
            with path.open("rb") as file:
                if status.st_size < LARGE_FILE_BYTES:
                    return file.read()
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise ModelError(absence(path), slug="model-missing", cure="check the path") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}", slug="model-unreadable", cure="check the path") from error
    what = "a directory" if stat.S_ISDIR(status.st_mode) else "empty" if not status.st_size else "not a regular file"
    raise ModelError(f"{path} is {what}", slug="model-unreadable", cure="name an ONNX file")

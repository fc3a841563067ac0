"""Models that are given in Python rather than named: they become files, for engines and cases know models by files."""

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import onnx
import onnx_ir as ir

from tensortriage.model.model import Model


def model_file(given: object) -> Path:
    """Return the file of a model, written to a temporary folder of this process where the model has none.

    Args:
        given: A path, an ``onnx.ModelProto`` or its bytes, an ``onnx_ir.Model``, or a `Model`.

    Raises:
        TypeError: For anything else.
        ModelError: When it cannot be read or written.
    """
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    if isinstance(given, bytes):
        return _written(given)
    if isinstance(given, onnx.ModelProto):
        if given.ByteSize() < onnx.checker.MAXIMUM_PROTOBUF:
            return _written(given.SerializeToString(deterministic=True))
        return Model.from_ir(ir.serde.deserialize_model(given)).save(_folder() / f"{id(given)}.onnx")
    if isinstance(given, Model):
        return given.path or given.save(_folder() / f"{given.fingerprint[:16]}.onnx")
    if isinstance(given, ir.Model):
        return model_file(Model.from_ir(given.clone()))
    raise TypeError("give the path of an ONNX file, or an onnx.ModelProto")


def _written(data: bytes) -> Path:
    """Return a file of these bytes, named by them, so that a resumed case recognises the model."""
    path = _folder() / f"{hashlib.sha256(data).hexdigest()[:16]}.onnx"
    if not path.is_file():
        path.write_bytes(data)
    return path


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="triage-given-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

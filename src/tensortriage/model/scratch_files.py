"""Models that are written for one use: they are marked, so that leftovers can be recognised later."""

from pathlib import Path

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.lazy_weights import MappedTensor, stored_bytes
from tensortriage.model.model import ExternalData, Model

STAMP = "tensortriage.transient"
"""Metadata key of the mark."""
POOLED_BYTES = 256 << 20
"""Weights beyond that are not written again for every model."""


def save_transient(model: Model, path: Path) -> None:
    """Write a marked copy of a model, large weights only once for all models that are saved into one directory.

    Weights that lie in data files in that directory stay where they are.

    Raises:
        ModelError: When it cannot be written.
    """
    known = {} if STAMP in model.ir.metadata_props else {STAMP: "may be overwritten"}
    model.save(path, external_data=_layout(model.ir, path), metadata=known)


def is_transient(path: Path) -> bool:
    """Return whether a file was written by `save_transient`."""
    try:
        return STAMP in Model.load(path).ir.metadata_props
    except ModelError:
        return False


def _layout(model: ir.Model, path: Path) -> ExternalData:
    tensors = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    folders = {
        tensor.file.path.resolve().parent
        for tensor in tensors
        if isinstance(tensor, MappedTensor) and not tensor.file.is_model
    }
    if folders == {path.resolve().parent}:
        return ExternalData.LEAVE
    size = sum(stored_bytes(tensor) for tensor in tensors)
    return ExternalData.KEEP if folders or size > POOLED_BYTES else ExternalData.AUTO

"""External data: which file a tensor of a stranger's model may point into, and whether its bytes are there.

The rule of the ONNX format is that weights live in the directory of the model, below it, or nowhere. A model file that
is itself a symbolic link (as in the Hugging Face cache) may also use the directory it really lies in.
"""

import os
import stat
from pathlib import Path, PureWindowsPath

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.io.lazy_weights import AbsentTensor, MappedTensor, WeightFile
from tensortriage.model.ir.display_names import quoted
from tensortriage.model.ir.traversal import all_graphs

_LFS_POINTER = b"version https://git-lfs"


class ExternalFiles:
    """The files that one model may point into, opened once each.

    Args:
        model: Path of the model file, for messages.
        directory: Where locations are relative to.
        roots: Real directories outside of which nothing is read.
    """

    def __init__(self, model: Path, directory: Path, roots: tuple[Path, ...]) -> None:
        self._model = model
        self._directory = directory
        self._roots = roots
        self._files: dict[str, WeightFile] = {}

    @classmethod
    def of(cls, model: Path, directory: Path | None) -> "ExternalFiles":
        """Return the files of a model: in its folder, or in the given one."""
        if directory is not None:
            return cls(model, directory, (directory.resolve(),))
        return cls(model, model.parent, (model.parent.resolve(), model.resolve().parent))

    def bind(self, tensor: ir.ExternalTensor) -> MappedTensor:
        """Return the tensor on its file, checked.

        Raises:
            ModelError: ``external-data-missing``, ``external-data-outside`` or ``external-data-truncated``.
        """
        location = os.fspath(tensor.location)
        file = self._files.get(location)
        if file is None:
            file = self._files[location] = self._open(location, tensor.name)
        offset, nbytes = tensor.offset or 0, tensor.nbytes
        where = f"initializer {quoted(tensor.name)} of {self._model}"
        if offset + nbytes > file.size:
            raise self._truncated(where, file, offset + nbytes)
        return MappedTensor(
            file,
            offset,
            dtype=tensor.dtype,
            shape=tensor.shape,
            name=tensor.name,
            described=tensor,
        )

    @property
    def are_apart(self) -> bool:
        """Whether one that a tensor was bound to lies in another directory than the model's file."""
        folder = self._model.resolve().parent
        return any(file.path.parent != folder for file in self._files.values())

    def _open(self, location: str, tensor_name: str | None) -> WeightFile:
        named = f"{quoted(location)}, named by initializer {quoted(tensor_name)} of {self._model},"
        windows = PureWindowsPath(location)
        if not location or "\0" in location or windows.anchor or ".." in windows.parts:
            raise self._outside(f"external data {named} must be a relative path without '..'")
        path = self._directory / location
        real = Path(os.path.realpath(path))  # Path.resolve raises on links in a circle
        if not any(real.is_relative_to(root) for root in self._roots):
            raise self._outside(f"external data {named} lead out of the model's directory, to {real}")
        try:
            mode = real.stat().st_mode
        except OSError:
            raise ModelError(
                f"{named} does not exist",
                slug="external-data-missing",
                cure="put it next to the model, or pass --external-data-dir DIR",
            ) from None
        if not stat.S_ISREG(mode):
            raise self._outside(f"external data {named} are not a regular file")
        try:
            return WeightFile(real)
        except OSError as error:
            raise ModelError(
                f"{named} cannot be read: {error.strerror}", slug="external-data-missing", cure="check its permissions"
            ) from error

    def _outside(self, message: str) -> ModelError:
        return ModelError(
            message,
            slug="external-data-outside",
            cure="put the weights next to the model, named by a plain relative path, or pass --external-data-dir DIR",
        )

    def _truncated(self, where: str, file: WeightFile, needed: int) -> ModelError:
        with file.open() as source:
            pointer = source.read(len(_LFS_POINTER)) == _LFS_POINTER
        return ModelError(
            f"{where} ends at byte {needed} of {file.path.name}, which has {file.size}",
            slug="external-data-truncated",
            cure="it is a Git LFS pointer: run git lfs pull" if pointer else "copy or download the weights again",
        )


def weight_files(model: ir.Model, directory: Path) -> frozenset[Path]:
    """Return the files that hold weights of a model; its own file counts when weights are mapped from it.

    Args:
        model: The model.
        directory: Where the locations of weights that were left unseen are relative to.
    """
    tensors = [value.const_value for graph in all_graphs(model) for value in graph.initializers.values()]
    seen = {tensor.file.path for tensor in tensors if isinstance(tensor, MappedTensor)}
    said = {os.fspath(tensor.location) for tensor in tensors if isinstance(tensor, AbsentTensor)}
    return frozenset(seen | {directory / location for location in said if "\0" not in location})

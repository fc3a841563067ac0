"""A model: an onnx_ir graph with its weights left on disk, an index, and a fingerprint.

What can be wrong with a file that `Model.load` is given, all as `ModelError`:

| slug | meaning |
|---|---|
| ``model-missing``, ``model-unreadable`` | no such file; not ONNX, truncated, a directory, empty, nested too deeply |
| ``model-empty`` | no nodes or no outputs |
| ``model-invalid`` | ONNX, but onnx_ir cannot read it |
| ``name-invalid``, ``value-defined-twice``, ``value-undefined``, ``graph-cycle`` | the graph does not hang together |
| ``dtype-unsupported``, ``tensor-invalid`` | a tensor is malformed |
| ``external-data-missing``, ``-outside``, ``-invalid``, ``-truncated``, ``-changed`` | its weights are not there |
"""

import logging
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

import onnx
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.fingerprint import fingerprint
from tensortriage.model.io.external_data import ExternalFiles, weight_files
from tensortriage.model.io.hollow_message import hollow_proto
from tensortriage.model.io.load import read_model
from tensortriage.model.io.parse import read_message
from tensortriage.model.io.save import NO_METADATA, ExternalData, ExternalLayout, save_model
from tensortriage.model.io.serialize import to_bytes
from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.display_names import first_line
from tensortriage.model.ir.graph import Graph
from tensortriage.model.ir.node_names import name_nodes
from tensortriage.model.ir.specs import value_spec
from tensortriage.model.ir.topological_sort import sort_nodes
from tensortriage.values.spec import ValueSpec

__all__ = ["ExternalData", "ExternalLayout", "Model"]

_CHECKED_BYTES = 1024
_logger = logging.getLogger(__name__)


class Model:
    """An ONNX model, treated as immutable: to change it, `clone` it, edit the clone's `ir`, wrap that with `from_ir`.

    Attributes:
        ir: The onnx_ir model. Every node of its main graph has a unique name, and its nodes are in topological order.
        path: The file it was loaded from; None when it was made otherwise.
        is_inferred: Whether everything that shape inference finds is declared in it.

    Example:
        >>> model = Model.load("model.onnx")
        >>> edited = model.clone().ir
        >>> edited.graph.node("/encoder/MatMul").name = "first"
        >>> Model.from_ir(edited).save("edited.onnx")
    """

    def __init__(self, model: ir.Model, path: Path | None) -> None:
        self.ir = model
        self.path = path
        self.is_inferred = False

    @classmethod
    @collector_paused()
    def load(
        cls,
        path: Path | str,
        *,
        external_data_dir: Path | None = None,
        ignore_external_data: bool = False,
        mend_names: bool = False,
    ) -> Self:
        """Load an ONNX file; large weights stay on disk and are read on demand.

        Args:
            path: The file.
            external_data_dir: Folder of external data, when not that of the file. Such a model has no path, because
                engines look for the data next to the file.
            ignore_external_data: Whether external data are never looked for; see
                `tensortriage.model.io.lazy_weights`. Such a model has no path, because engines cannot load it.
            mend_names: Whether values that several nodes make under one name are renamed apart; see
                `tensortriage.model.io.repeated_names`. A model that was mended has no path either.

        Raises:
            ModelError: When anything is wrong with it; see the table above.
        """
        path = Path(path)
        place = _place(path)
        message = read_message(path, mend_names=mend_names)
        files = None if ignore_external_data else ExternalFiles.of(path, external_data_dir)
        found = read_model(message, path, files)
        for new, old in message.mended.items():
            _logger.warning("'%s' is made more than once; one that comes first is now '%s'", old, new)
        unlike_file = bool(message.mended) or files is None or (external_data_dir is not None and files.are_apart)
        model = cls.from_ir(found, None if unlike_file else path)
        _logger.debug("read %s: %d nodes, opset %d", path, len(found.graph), model.opset)
        if model.path is not None and place is not None:
            _LOADED[place] = model
        return model

    @classmethod
    def of_file(cls, path: Path | str) -> "Model":
        """Return the model of a file as `load` does: the one that is in use, where the file is as it was then.

        Raises:
            ModelError: As `load`.
        """
        place = _place(Path(path))
        known = None if place is None else _LOADED.get(place)
        return cls.load(path) if known is None else known

    @classmethod
    def from_ir(cls, model: ir.Model, path: Path | None = None) -> Self:
        """Wrap an onnx_ir model; its nodes are sorted when they need to be, and get unique names, in place.

        Raises:
            ModelError: When values depend on each other in a circle (slug ``graph-cycle``).
        """
        sort_nodes(model)
        name_nodes(model)
        return cls(model, path)

    def save(
        self,
        path: Path | str,
        *,
        external_data: ExternalData | ExternalLayout = ExternalData.AUTO,
        metadata: Mapping[str, str] = NO_METADATA,
    ) -> Path:
        """Write the model, streaming the weights, and return the path.

        The file appears when it is complete. Overwriting the file that the model was loaded from is fine.

        Args:
            path: Where.
            external_data: Where the weights go.
            metadata: Goes into the file in addition to the model's own.

        Raises:
            StoreError: ``model-unwritable``.
            ModelError: ``model-too-large``, ``external-data-changed``.
            UsageError: ``external-location``.
        """
        path = Path(path)
        save_model(self.ir, path, external_data, metadata=metadata)
        _logger.debug("wrote %s", path)
        return path

    @collector_paused()
    def clone(self) -> "Model":
        """Return an independent copy of structure and metadata; the weights are shared."""
        return type(self)(self.ir.clone(), self.path)

    def check(self) -> None:
        """Check the model with onnx.checker: operator signatures, attribute types, opset rules.

        Large weights are shown to it as inputs, so that a model of any size is checked without reading them; that
        their bytes are there was checked when the model was loaded. An output of unknown rank, which engines take and
        the checker does not, is shown to it with a shape.

        Raises:
            ModelError: With the checker's first complaint (slug ``model-invalid``).
        """
        proto = hollow_proto(self.ir, above_bytes=_CHECKED_BYTES)
        for output in proto.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.shape.SetInParent()
        serialized = to_bytes(proto)
        try:
            onnx.checker.check_model(serialized)
        except Exception as error:  # ValidationError, and any other exception of the C++ checker
            raise ModelError(
                f"onnx.checker refuses the model: {first_line(error)}", slug="model-invalid", cure="export it again"
            ) from error

    @cached_property
    def graph(self) -> Graph:
        """Index of the main graph."""
        with collector_paused():
            return Graph(self.ir)

    @cached_property
    def inputs(self) -> tuple[ValueSpec, ...]:
        """Inputs to feed: the graph's inputs without those that have an initializer as default."""
        defaults = self.ir.graph.initializers
        return tuple(value_spec(value) for value in self.ir.graph.inputs if value.name not in defaults)

    @cached_property
    def outputs(self) -> tuple[ValueSpec, ...]:
        """Outputs of the model; dtype is None for sequences, maps and optionals."""
        return tuple(value_spec(value) for value in self.ir.graph.outputs)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over structure and weights: see `tensortriage.model.fingerprint`."""
        with collector_paused():
            return fingerprint(self.ir)

    @property
    def files(self) -> frozenset[Path]:
        """The file that it was loaded from, if any, and those that hold its weights."""
        own = frozenset() if self.path is None else frozenset({self.path})
        return own | weight_files(self.ir, self.path.parent if self.path else Path())

    @property
    def opset(self) -> int:
        """Version of the standard operator set; 0 when the model does not import it."""
        return self.ir.opset_imports.get("", 0)

    @property
    def parameter_count(self) -> int:
        """Number of elements in all initializers of the main graph."""
        return sum(v.const_value.size for v in self.ir.graph.initializers.values() if v.const_value is not None)


_LOADED: "weakref.WeakValueDictionary[tuple[str, int, int, int, int], Model]" = weakref.WeakValueDictionary()
"""Models that were loaded from files and are in use, by path and file identity."""


def _place(path: Path) -> tuple[str, int, int, int, int] | None:
    try:
        stat = path.stat()
    except (OSError, ValueError):  # the reader of the file reports why
        return None
    return str(path.absolute()), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns

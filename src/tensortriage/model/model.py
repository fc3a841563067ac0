"""A model: an onnx_ir graph with its weights left on disk, an index, and a fingerprint."""

import enum
from functools import cached_property
from pathlib import Path
from typing import Self

import onnx_ir as ir

from tensortriage.model.fingerprint import fingerprint
from tensortriage.model.graph import Graph
from tensortriage.model.naming import name_nodes
from tensortriage.model.specs import value_spec
from tensortriage.values.spec import ValueSpec


class ExternalData(enum.Enum):
    """Where the weights of a saved model go."""

    AUTO = "auto"
    ALWAYS = "always"
    KEEP = "keep"


class Model:
    """An ONNX model, treated as immutable: to change it, `clone` it, edit the clone's `ir`, wrap it with `from_ir`."""

    def __init__(self, model: ir.Model, path: Path | None) -> None:
        self.ir = model
        self.path = path

    @classmethod
    def load(cls, path: Path | str, *, external_data_dir: Path | None = None) -> Self:
        """Load an ONNX file; external data stay on disk."""
        path = Path(path)
        model = ir.load(path)
        if external_data_dir is not None:
            ir.external_data.set_base_dir(model.graph, external_data_dir)
        return cls.from_ir(model, path)

    @classmethod
    def from_ir(cls, model: ir.Model, path: Path | None = None) -> Self:
        """Wrap an onnx_ir model, which is sorted and gets unique node names in place."""
        model.graph.sort()
        name_nodes(model)
        return cls(model, path)

    def save(self, path: Path | str, *, external_data: ExternalData = ExternalData.AUTO) -> Path:
        """Write the model and return the path."""
        path = Path(path)
        size = sum(v.const_value.nbytes for v in self.ir.graph.initializers.values() if v.const_value is not None)
        apart = external_data is not ExternalData.AUTO or size > 3 << 29
        ir.save(self.ir, path, external_data=path.name + ".data" if apart else None)
        return path

    def clone(self) -> "Model":
        """Return an independent copy of structure and metadata; the weights are shared."""
        return type(self)(self.ir.clone(), self.path)

    @cached_property
    def graph(self) -> Graph:
        """Index of the main graph."""
        return Graph(self.ir)

    @cached_property
    def inputs(self) -> tuple[ValueSpec, ...]:
        """Inputs the caller must feed: graph inputs without an initializer as default."""
        return tuple(value_spec(v) for v in self.ir.graph.inputs if v.name not in self.ir.graph.initializers)

    @cached_property
    def outputs(self) -> tuple[ValueSpec, ...]:
        """Graph outputs."""
        return tuple(value_spec(v) for v in self.ir.graph.outputs)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, over structure and weights."""
        return fingerprint(self.ir)

    @property
    def opset(self) -> int:
        """Version of the standard operator set."""
        return self.ir.opset_imports.get("", 0)

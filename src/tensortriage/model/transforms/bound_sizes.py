"""Tensors that give another tensor a size which the data decide and nothing bounds, and a Min behind them.

An engine that plans memory ahead (TensorRT) must know the largest size of every tensor. The size of what Range, Expand
or Tile make can be any number that the network computes. It is bounded when it follows from shapes alone, since the
user bounds those of the inputs; it is not when the contents of an input lead to it, unless a Min caps it on the way.
The list is what Polygraphy's ``--list-unbounded-dds`` means, the Min what ``--set-unbounded-dds-upper-bound`` inserts.
"""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.graph import Graph, Node
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.rewrite_helpers import (
    Names,
    find_values,
    initializer,
    is_standard,
    take_over,
)
from tensortriage.values.spec import ValueSpec

_OPSET_OF_INTEGER_MIN = 12


def bound(model: Model, bounds: Mapping[str, int], *, specs: Mapping[str, ValueSpec]) -> Model:
    """Return the model with a Min behind values, so that nothing downstream sees more than their bounds.

    The bounded value takes over the name; what the node computes is then named ``unbounded::V``. An input of the model
    keeps its name; its bounded version is named ``bounded::V``.

    Args:
        model: The model; it is not changed.
        bounds: Largest number by name of a value.
        specs: Types of values.

    Raises:
        UsageError: When a value is unknown (``value-unknown``) or constant (``value-constant``).
        ModelError: When the opset knows no Min of integers and the model cannot be upgraded (``opset-too-old``).
    """
    clone = require_opset(model, _OPSET_OF_INTEGER_MIN).clone()
    graph = clone.ir.graph
    names = Names(graph)
    types = infer_types(clone.ir, specs)
    for name, value in find_values(clone, bounds).items():
        producer = value.producer()
        if value.is_initializer() or is_standard(producer, "Constant"):
            raise UsageError(
                f"{name!r} is a constant, whose size is bounded already",
                slug="value-constant",
                cure="list the sizes without a bound: triage inspect model MODEL --list-unbounded-dds",
            )
        kind = types.get(value)
        dtype = kind.dtype if isinstance(kind, ir.TensorType) else ir.DataType.INT64
        limit = initializer(names.fresh(f"bound::{name}"), np.array(bounds[name], dtype.numpy()))
        graph.register_initializer(limit)
        node = ir.node("Min", [value, limit], name=names.fresh(f"min::{name}"))
        bounded = node.outputs[0]
        bounded.type, bounded.shape = ir.TensorType(dtype), None if value.shape is None else value.shape.copy()
        other = names.fresh(f"bounded::{name}" if producer is None else f"unbounded::{name}")
        take_over(value, [node], [use for use in value.uses() if use.node is not node], name=other)
    return Model.from_ir(clone.ir)


SIZE_OPERANDS: dict[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,), "Expand": (1,), "OneHot": (1,), "Pad": (1,), "Range": (0, 1, 2), "Resize": (2, 3),
    "Tile": (1,), "Upsample": (1,),
}  # fmt: skip
"""Inputs whose numbers determine the size of the result; Reshape, Slice and the like only divide their operand."""

_ONLY_SIZES = frozenset({"Shape", "Size", "SequenceLength"})


@frozen_dataclass
class UnboundedSize:
    """A tensor whose numbers determine a size: ``value`` is an input of ``node``, an ``op_type``."""

    value: str
    node: str
    op_type: str


def unbounded_sizes(graph: Graph) -> tuple[UnboundedSize, ...]:
    """Return the tensors that decide sizes and depend on data, each with the first node that takes a size from it."""
    found: dict[str, UnboundedSize] = {}
    for node in graph.nodes:
        for value in _size_operands(node):
            if value not in found and value not in graph.constants and _depends_on_data(value, graph):
                found[value] = UnboundedSize(value, node.name, node.op_type)
    return tuple(found.values())


def _size_operands(node: Node) -> tuple[str, ...]:
    positions = SIZE_OPERANDS.get(node.op_type, ()) if not node.domain else ()
    return tuple(node.inputs[i] for i in positions if i < len(node.inputs) and node.inputs[i])


def _depends_on_data(value: str, graph: Graph) -> bool:
    """Whether the numbers of a value depend on those of an input that is fed, other than through shapes and Min."""
    pending, seen = [value], {value}
    while pending:
        name = pending.pop()
        producer = graph.producer(name)
        if producer is None:
            if name not in graph.constants:
                return True
        elif producer.op_type not in _ONLY_SIZES and producer.op_type != "Min":
            fresh = [used for used in producer.uses if used not in seen]
            seen.update(fresh)
            pending += fresh
    return False

"""A Min behind tensors that give another tensor a size which the data decide: the size is bounded then.

It is what Polygraphy's ``--set-unbounded-dds-upper-bound`` inserts.
"""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.api import Model
from tensortriage.envelope.sdk import ValueSpec
from tensortriage.model.sdk import Names, find_values, infer_types, initializer, is_standard, require_opset, take_over
from tensortriage.sdk import UsageError

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

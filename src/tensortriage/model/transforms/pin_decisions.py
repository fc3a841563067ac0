"""A model whose decisions are given as inputs, to compare the rest of it after an ArgMax, a TopK or an NMS."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import BEFORE_PREFIX
from tensortriage.model.transforms.rewrite_helpers import Names, find_values, initializer, take_over


def pinned(model: Model, indices: Mapping[str, np.ndarray]) -> Model:
    """Return the model that takes given indices for its decisions, and computes everything else.

    The values of a TopK are gathered by its indices then, whatever their order. What the model itself decides stays
    there as ``before::VALUE``.

    Args:
        model: The model; it is not changed.
        indices: Indices (int64) by the `tensortriage.model.inspect.decisions.Decision.value` they stand for.

    Raises:
        UsageError: When a value is unknown (``value-unknown``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    for name, value in find_values(clone, indices).items():
        producer = value.producer()
        if producer is not None and producer.op_type == "TopK":
            _gather_values(producer, names, model.opset)
        given = initializer(names.fresh(f"given::{name}"), np.asarray(indices[name], np.int64))
        graph.register_initializer(given)
        passed = ir.Node("", "Identity", [given], name=names.fresh(f"pinned::{name}"))
        passed.outputs[0].type, passed.outputs[0].shape = given.type, given.shape
        take_over(value, [passed], tuple(value.uses()), name=names.fresh(f"{BEFORE_PREFIX}{name}"))
    return Model.from_ir(clone.ir)


def _gather_values(node: ir.Node, names: Names, opset: int) -> None:
    """Make the users of a TopK's values take the elements of its operand at the given indices."""
    values, indices = node.outputs[0], node.outputs[1]
    source = node.inputs[0]
    if not values.name or opset < 11 or source is None:  # no GatherElements before
        return
    axis = ir.AttrInt64("axis", node.attributes["axis"].as_int() if "axis" in node.attributes else -1)
    gather = ir.Node("", "GatherElements", [source, indices], [axis], name=names.fresh(f"picked::{node.name}"))
    gather.outputs[0].type, gather.outputs[0].shape = values.type, values.shape
    take_over(values, [gather], tuple(values.uses()), name=names.fresh(f"{BEFORE_PREFIX}{values.name}"))

"""Add an error to values inside a model at run time, to see its effect on the outputs."""

from collections.abc import Collection, Iterable, Mapping

import onnx_ir as ir

from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.mark_outputs import BEFORE_PREFIX
from tensortriage.model.transforms.rewrite_helpers import Names, declared_value, find_values, take_over
from tensortriage.values.spec import ValueSpec

ERROR_PREFIX = "error::"


def perturb(
    model: Model, values: Iterable[str], *, specs: Mapping[str, ValueSpec], sparing: Collection[str] = ()
) -> Model:
    """Return the model in which an error is added to given values.

    Every value V gets one more input, ``error::V``, of its type and shape. Everything downstream, a graph output V
    included, sees the sum; what the node computes is then named ``before::V``.

    Args:
        model: The model; it is not changed.
        values: Names of floating-point values that nodes make.
        specs: Types and shapes of the values.
        sparing: Names of nodes that go on using the node's own result; bodies of nodes are never spared.

    Raises:
        UsageError: When a value is unknown (``value-unknown``).
        ModelError: When the type of a value is not known (``value-type-unknown``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    types = infer_types(clone.ir, specs)
    for name, value in find_values(clone, dict.fromkeys(values)).items():
        error = declared_value(f"{ERROR_PREFIX}{name}", specs.get(name), types.get(value))
        graph.inputs.append(error)
        users = tuple(value.uses())
        add = ir.Node("", "Add", [value, error], name=names.fresh(f"add_error::{name}"))
        add.outputs[0].type, add.outputs[0].shape = value.type, value.shape
        seeing = [use for use in users if use.node.graph is not graph or use.node.name not in sparing]
        take_over(value, [add], seeing, name=names.fresh(f"{BEFORE_PREFIX}{name}"))
    return Model.from_ir(clone.ir)

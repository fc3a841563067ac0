"""Add an error to values inside a model at run time, to see what it does to the outputs."""

from collections.abc import Collection, Iterable, Mapping

import onnx_ir as ir

from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.mark_outputs import BEFORE_PREFIX
from tensortriage.model.transforms.rewrite_helpers import Names, declared_value, find_values, replace_output
from tensortriage.values.spec import ValueSpec

ERROR_PREFIX = "error::"


def perturb(
    model: Model, values: Iterable[str], *, specs: Mapping[str, ValueSpec], sparing: Collection[str] = ()
) -> Model:
    """Return the model in which an error is added to some values.

    Every value V gets one more input, ``error::V``, of its type and shape. Everything downstream, a graph output V
    included, sees the sum; what the node computes is then named ``before::V``.

    Args:
        model: The model; it is not changed.
        values: Names of floating-point values that nodes make.
        specs: Types and shapes of the values.
        sparing: Names of nodes that go on using what the node computes; bodies of nodes are never spared.

    Raises:
        UsageError: When a value is unknown (``value-unknown``).
        ModelError: When the type of a value is not known (``value-type-unknown``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    types = infer_types(clone.ir, specs)
    for name, value in find_values(clone, dict.fromkeys(values)).items():
        producer = value.producer()
        assert producer is not None
        error = declared_value(f"{ERROR_PREFIX}{name}", specs.get(name), types.get(value))
        graph.inputs.append(error)
        users = tuple(value.uses())
        add = ir.Node("", "Add", [value, error], name=names.fresh(f"add_error::{name}"))
        add.outputs[0].type, add.outputs[0].shape = value.type, value.shape
        for user, index in users:
            if user.graph is not graph or user.name not in sparing:
                user.replace_input_with(index, add.outputs[0])
        replace_output(graph, value, add.outputs[0])
        value.name = names.fresh(f"{BEFORE_PREFIX}{name}")
        add.outputs[0].name = name
        graph.insert_after(producer, add)
    return Model.from_ir(clone.ir)

"""Write the known types and shapes of values into the model, where every reader of the file finds them."""

import logging
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.model.ir.traversal import all_graphs
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.spec import ValueSpec

_logger = logging.getLogger(__name__)
Shape = tuple[int | str | None, ...]


def with_inferred_shapes(model: Model) -> Model:
    """Return the model with the types and shapes that ONNX's shape inference finds declared in it.

    What is declared already is kept; unknown dimensions of it are filled in. Weights beyond 1 KiB are not read. A model
    that came out of this is returned as it is.
    """
    if model.is_inferred:
        return model
    inferred = with_specs(model, value_specs(model, refine=True))
    inferred.is_inferred = True
    return inferred


def with_specs(model: Model, specs: Mapping[str, ValueSpec]) -> Model:
    """Return the model with these types and shapes declared, in the place of its former declarations.

    Args:
        model: The model; it is not changed.
        specs: By name of a value of the main graph; open parts of a spec keep their declaration.
    """
    clone = model.clone()
    graph = clone.ir.graph
    for value in (*graph.inputs, *(v for node in graph for v in node.outputs)):
        spec = specs.get(value.name or "")
        if spec is None or not (value.type is None or isinstance(value.type, ir.TensorType)):
            continue
        if spec.dtype is not None:
            value.type = ir.TensorType(ir.DataType(spec.dtype.value))
        if spec.shape is not None and value.type is not None:
            value.shape = ir.Shape(spec.shape)
    return Model.from_ir(clone.ir)


def with_input_shapes(model: Model, shapes: Mapping[str, Shape], *, strict: bool = True) -> Model:
    """Return the model with other shapes of its inputs; declarations of values that depend on them are removed.

    Args:
        model: The model; it is not changed.
        shapes: Shape by input name: numbers, names of dynamic dimensions, or None for unnamed ones.
        strict: Whether a name that is not an input is an error; else it is warned about.

    Raises:
        UsageError: For a name that is not an input (slug ``input-unknown``).
    """
    clone = model.clone()
    inputs = {value.name or "": value for value in clone.ir.graph.inputs}
    for name, shape in shapes.items():
        if name not in inputs:
            if not strict:
                _logger.warning("the model has no input named '%s'", name)
                continue
            raise UsageError(
                f"the model has no input named {name!r}",
                slug="input-unknown",
                cure="its inputs are: " + ", ".join(map(repr, inputs)),
            )
        inputs[name].shape = ir.Shape(shape)
    forget_shapes(clone.ir)
    return Model.from_ir(clone.ir)


def forget_shapes(model: ir.Model) -> None:
    """Remove, in place, the shapes of all results of nodes; outputs keep their rank."""
    for graph in all_graphs(model):
        outputs = set(graph.outputs)
        _forget((value for node in graph for value in node.outputs), outputs)


def _forget(values: Iterable[ir.Value], outputs: set[ir.Value]) -> None:
    for value in values:
        if value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape)) if value in outputs else None

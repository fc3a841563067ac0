"""Specs of all values before any run: declared in the file, inferred, or recorded from a run."""

from collections.abc import Mapping
from types import MappingProxyType

from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.specs import value_spec
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.inferred_specs import inferred_specs
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.values.spec import ValueSpec

_NOTHING: Mapping[str, ValueSpec] = MappingProxyType({})


@collector_paused()
def value_specs(
    model: Model, recorded: Mapping[str, ValueSpec] = _NOTHING, *, refine: bool = False
) -> Mapping[str, ValueSpec]:
    """Return the specs of all values of the main graph.

    When the file leaves a type or a rank open, and no recorded spec closes it, onnx's shape inference (with data
    propagation) fills in what it can: declared dtypes and numbers are kept. Where inference fails, only what is
    declared remains.

    Args:
        model: The model.
        recorded: Specs of arrays that a run produced; they win over everything.
        refine: Whether to infer even when every type and rank is declared, for the sake of open dimensions.

    Returns:
        A spec for every input, initializer and node output, also for those of which nothing is known.
    """
    declared = [*model.ir.graph.inputs, *model.ir.graph.initializers.values()]
    declared += [value for node in model.ir.graph for value in node.outputs if value.name]
    specs = {value.name or "": value_spec(value) for value in declared}
    if refine or any(spec.dtype is None or spec.shape is None for name, spec in specs.items() if name not in recorded):
        for spec in inferred_specs(model):
            if spec.name in specs:
                specs[spec.name] = specs[spec.name].filled_in(spec)
    return MappingProxyType({**specs, **recorded})


def typing_specs(model: Model) -> Mapping[str, ValueSpec]:
    """Return the specs without which `infer_types` leaves the type of a value of the main graph open.

    There are none where operator schemas give all types; ONNX's shape inference, a process of its own, is not needed.
    """
    types = infer_types(model.ir, _NOTHING)
    typed = all(value in types for node in model.ir.graph for value in node.outputs if value.name)
    return _NOTHING if typed else value_specs(model)

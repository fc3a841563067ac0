"""What is known of every value before anything ran: declared, inferred, or recorded from a run."""

from collections.abc import Mapping
from types import MappingProxyType

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from tensortriage.model.model import Model
from tensortriage.model.specs import value_spec
from tensortriage.values.spec import ValueSpec

_NOTHING: Mapping[str, ValueSpec] = MappingProxyType({})


def value_specs(model: Model, recorded: Mapping[str, ValueSpec] = _NOTHING) -> Mapping[str, ValueSpec]:
    """Return a spec for every value of the main graph whose type is known: recorded ones win, then inferred ones."""
    clone = model.ir.clone()
    ShapeInferencePass(strict_mode=False, check_type=False)(clone)
    specs: dict[str, ValueSpec] = {}
    for name, value in ir.convenience.create_value_mapping(clone.graph, include_subgraphs=False).items():
        specs[name] = value_spec(value)
    return MappingProxyType({**specs, **recorded})

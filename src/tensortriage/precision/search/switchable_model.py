"""A model with a switch per node, or per pair of quantizers, that chooses its precision at run time."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Protocol

from tensortriage.errors import ModelError, UsageError
from tensortriage.model.mixed_precision.convert_precision import convertible
from tensortriage.model.mixed_precision.switchable_rounding import Switched, switch_rounding
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.precision.goal import (
    GoalReading,
    PrecisionGoal,
)
from tensortriage.precision.selection.pass_through_nodes import Islands
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

TYPED = (Precision.FP16, Precision.BF16)
"""Formats that a model can be written in by types alone."""
NEWER_OPSET = 22
"""From here on Conv, pooling and others accept bf16 (onnx.ai, Conv)."""


def raised(model: Model, precision: Precision) -> Model:
    """Return the model in an opset that can express more of it in the format, if that is needed and possible."""
    if precision is not Precision.BF16 or model.opset >= NEWER_OPSET:
        return model
    before = convertible(model, precision, specs=value_specs(model))
    try:
        newer = require_opset(model, NEWER_OPSET)
        after = convertible(newer, precision, specs=value_specs(newer))
    except ModelError:
        return model
    known = {node.name for node in model.graph.nodes}
    same = {node.name for node in newer.graph.nodes if node.op_type != "Constant"} <= known
    return newer if same and len(after) > len(before) else model


class Choosable(Protocol):
    """What can be chosen in a model: `SwitchableModel` where candidates are typed, else where they have Q/DQ pairs."""

    @property
    def model(self) -> Model:
        """The model."""
        ...

    @property
    def precision(self) -> Precision:
        """The lower format."""
        ...

    @property
    def specs(self) -> Mapping[str, ValueSpec]:
        """Types of its values."""
        ...

    @property
    def fixed(self) -> tuple[str, ...]:
        """Nodes that the format has no way to write."""
        ...

    @property
    def items(self) -> tuple[str, ...]:
        """Nodes to choose from, in topological order."""
        ...

    @property
    def movers(self) -> frozenset[str]:
        """Nodes that only hand numbers on, in whatever type."""
        ...


class Emulated(Protocol):
    """Who tells without a build what the outputs lose: `Emulation`, or `QuantizedNodes`."""

    goal: PrecisionGoal
    items: tuple[str, ...]

    @property
    def runs(self) -> int:
        """Readings really taken."""
        ...

    def read(self, kept: Collection[str]) -> GoalReading:
        """Return the reading of a set of kept nodes."""
        ...

    def only(self, low: Collection[str]) -> GoalReading:
        """Return the reading when nothing but some nodes computes in the format."""
        ...

    def close(self) -> None:
        """Release the session."""
        ...


@dataclasses.dataclass(frozen=True)
class SwitchableModel:
    """A model and what can be chosen in it.

    Attributes:
        model: The model.
        precision: The lower format.
        specs: Types of its values.
        switched: The model with a switch per rounding.
        islands: Completes sets of kept nodes.
        fixed: Nodes that round and that the format has no way to write.
    """

    model: Model
    precision: Precision
    specs: Mapping[str, ValueSpec]
    switched: Switched
    islands: Islands
    fixed: tuple[str, ...]

    @property
    def items(self) -> tuple[str, ...]:
        """Nodes to choose from, in topological order."""
        fixed = set(self.fixed)
        return tuple(name for name in self.switched.rounding if name not in fixed)

    @property
    def movers(self) -> frozenset[str]:
        """Nodes that only hand numbers on, in whatever type."""
        return self.islands.lowerable - self.islands.rounding


def stage_of(model: Model, precision: Precision, specs: Mapping[str, ValueSpec], *, typed: bool) -> SwitchableModel:
    """Return what can be chosen in a model.

    Args:
        model: The model.
        precision: The lower format.
        specs: Types of its values.
        typed: Whether candidates are typed models.

    Raises:
        UsageError: When the format cannot be written (``precision-not-typed``), or nothing can compute in it
            (``precision-nothing-to-choose``).
    """
    switched = switch_rounding(model, precision, specs=specs)
    able = convertible(model, precision, specs=specs) if typed else frozenset(switched.nodes)
    lowerable = frozenset(switched.nodes) & able
    fixed = tuple(name for name in switched.rounding if name not in able)
    if len(fixed) == len(switched.rounding):
        raise UsageError(
            f"no node of the model can compute in {precision.value}",
            slug="precision-nothing-to-choose",
            cure="give a model with float32 nodes; triage inspect model shows the types",
        )
    islands = Islands(model, lowerable, frozenset(switched.rounding) & able)
    return SwitchableModel(model, precision, specs, switched, islands, fixed)

"""A model with a switch per node, or per pair of quantizers, that chooses its precision at run time."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tensortriage.errors import ModelError, UsageError
from tensortriage.model.mixed_precision.convert_precision import convertible
from tensortriage.model.mixed_precision.switchable_rounding import Switched, switch_rounding
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.precision.goal import GoalSample, PrecisionGoal
from tensortriage.precision.selection.emulation import Emulation, Switches
from tensortriage.precision.selection.pass_through_nodes import Islands
from tensortriage.runs.lab import Lab
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choosable:
    """A model and the nodes to choose from.

    Attributes:
        precision: The lower format.
        specs: Types of its values.
        items: Nodes to choose from, in topological order.
        fixed: Nodes that round and that the format has no way to write; none in 8 bits, where they are no candidates.
        movers: Nodes that only hand numbers on, in whatever type.
        written: Options of ``triage convert``, in addition to the format, that write models so.
    """

    model: Model
    precision: Precision
    specs: Mapping[str, ValueSpec]
    items: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    movers: frozenset[str] = frozenset()
    written: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SwitchableModel(Choosable):
    """A model whose nodes round to the format or not, by switches.

    Attributes:
        switched: The model with a switch per rounding.
        islands: Completes sets of kept nodes.
    """

    switched: Switched
    islands: Islands

    def switches(self, kept: Collection[str]) -> Mapping[str, np.ndarray]:
        """Return the inputs of the switches for a set of kept nodes."""
        wide = frozenset((*kept, *self.fixed))
        return self.switched.feed(wide | self.islands.carriers(wide))

    def emulation(
        self, samples: Sequence[GoalSample], goal: PrecisionGoal, *, lab: Lab, seconds: float | None
    ) -> Emulation:
        """Return the emulation that measures the cost of choices (to be closed)."""
        switches = Switches(self.switched.model, self.switches, self.items)
        return Emulation(switches, samples, goal, lab=lab, seconds=seconds)


def stage_of(model: Model, precision: Precision, specs: Mapping[str, ValueSpec], *, typed: bool) -> SwitchableModel:
    """Return the nodes that can be chosen in a model.

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
    return SwitchableModel(
        model=model,
        precision=precision,
        specs=specs,
        items=tuple(name for name in switched.rounding if name not in set(fixed)),
        fixed=fixed,
        movers=islands.lowerable - islands.rounding,
        switched=switched,
        islands=islands,
    )

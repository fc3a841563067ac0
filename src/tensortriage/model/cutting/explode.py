"""Feed every operation its golden inputs, all in one model: one build and one run give the local error of all of them.

In the full model an error travels; a tensor that is wrong says little about the op that made it. Here every unit (one
node by default) reads what the reference computed and writes its own result under its own name, so that the difference
from the golden value is the error of that unit. Units do not depend on each other: no error is inherited.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.cutting.extract import Carving
from tensortriage.model.ir.shape_operands import shape_positions
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.rewrite_helpers import find_nodes, is_standard
from tensortriage.values.spec import ValueSpec

GOLDEN_PREFIX = "golden::"
_NO_VALUES: Mapping[str, np.ndarray] = MappingProxyType({})


@frozen_dataclass
class Exploded:
    """A model in which every unit is fed by golden values.

    Attributes:
        model: The model; node names and output names are those of the original.
        feeds: Name of each input (``golden::VALUE``) to the name of the value it wants.
        outputs: Name of each output to the name of the original value, which is the same name.
    """

    model: Model
    feeds: Mapping[str, str]
    outputs: Mapping[str, str]


def explode(
    model: Model,
    units: Sequence[Collection[str]] | None = None,
    *,
    specs: Mapping[str, ValueSpec],
    shape_values: Mapping[str, np.ndarray] = _NO_VALUES,
    ends_only: bool = False,
) -> Exploded:
    """Return one model in which every unit is fed by its own golden inputs.

    Weights are shared with `model`, and two units that need the same golden value share one input. A node with bodies
    is never split. Constant nodes are no units: they come along with the nodes that use them.

    Args:
        model: The model to explode; it is not changed.
        units: Sets of names of nodes that stay wired to each other, e.g. the nodes an engine fused; together they need
            not cover the model. None for every node by itself. Units that exchange sequences or optionals, which
            cannot be fed, become one.
        specs: Types and shapes of values, for the inputs.
        shape_values: Golden values that may become constants: where such a value is a shape operand (the target of a
            Reshape, the bounds of a Slice, ...) or is used to compute one, the use gets a constant ``frozen::VALUE``,
            because engines want shapes known at build time. Uses as data stay inputs.
        ends_only: Whether only what no node of the unit uses becomes an output (and what is one of the model): a value
            that is used within the unit is then never marked, as marking would break a fusion across it.

    Raises:
        UsageError: For an unknown node, an empty unit (``unit-empty``) or a node in two units (``unit-overlap``).
        ModelError: When the type of an input is not known (``value-type-unknown``), or no unit makes a tensor that
            could be compared (``nothing-to-explode``).
    """
    types = infer_types(model.ir, specs)
    units = [[node.name] for node in model.graph.nodes] if units is None else units
    position = {node: index for index, node in enumerate(model.ir.graph)}
    groups = [sorted(group, key=position.__getitem__) for group in _together(_named_groups(model, units), types)]
    freeze = _Freezer(model.graph.shape_like, shape_values)
    carving = Carving(model, specs=specs, input_name=lambda name: GOLDEN_PREFIX + name, frozen=freeze)
    outputs: list[ir.Value] = []
    graph_outputs = {value.name for value in model.ir.graph.outputs}
    for group in groups:
        names = {node.name for node in group}
        made = carving.add(group)
        for node in group:
            for value in node.outputs:
                users = model.graph.consumers(value.name or "")
                used_inside = (any if ends_only else all)(user.name in names for user in users)
                inside = bool(users) and used_inside and value.name not in graph_outputs
                if value.name and not inside and isinstance(types.get(value, _TENSOR), ir.TensorType):
                    outputs.append(made[value.name])
    if not outputs:
        raise ModelError(
            "no node of the model computes a tensor; there are only constants",
            slug="nothing-to-explode",
            cure="compare the outputs of the whole model instead",
        )
    result = carving.finish(outputs)
    return Exploded(
        result,
        MappingProxyType(carving.feeds),
        MappingProxyType({value.name: value.name for value in outputs if value.name}),
    )


_TENSOR = ir.TensorType(ir.DataType.UNDEFINED)


class _Freezer:
    """Turns golden values that decide shapes into constants."""

    def __init__(self, shape_like: Collection[str], values: Mapping[str, np.ndarray]) -> None:
        self._shape_like = frozenset(shape_like)
        self._values = values

    def __call__(self, value: ir.Value, user: ir.Node, index: int) -> np.ndarray | None:
        """Return the constant for one use of a value, or None when the use carries data."""
        name = value.name or ""
        if name not in self._values or value.is_initializer() or is_standard(value.producer(), "Constant"):
            return None
        operand = index in shape_positions(user.op_type, user.domain)
        computes_shape = all(made.name in self._shape_like for made in user.outputs if made.name)
        return self._values[name] if operand or (computes_shape and name in self._shape_like) else None


def _together(groups: Sequence[Sequence[ir.Node]], types: Mapping[ir.Value, ir.TypeProtocol]) -> list[list[ir.Node]]:
    """Merge the groups that exchange sequences or optionals, which cannot be fed; all in topological order."""
    merged: dict[ir.Node, list[ir.Node]] = {node: [node] for group in groups for node in group}
    links = [(group[0], node) for group in groups for node in group]
    links += [
        (producer, node)
        for node in merged
        for value in node.inputs
        if value is not None
        and not isinstance(types.get(value, _TENSOR), ir.TensorType)
        and (producer := value.producer()) in merged
    ]
    for first, second in links:
        group, other = merged[first], merged[second]
        if group is not other:
            group.extend(other)
            merged.update((node, group) for node in other)
    return list({id(group): group for group in merged.values()}.values())


def _named_groups(model: Model, units: Sequence[Collection[str]]) -> list[tuple[ir.Node, ...]]:
    unit_of: dict[str, int] = {}
    for number, unit in enumerate(units):
        if not unit:
            raise UsageError(f"unit {number} names no node", slug="unit-empty", cure="leave out empty units")
        for name in unit:
            if unit_of.setdefault(name, number) != number:
                raise UsageError(
                    f"node {name!r} is in unit {unit_of[name]} and in unit {number}",
                    slug="unit-overlap",
                    cure="give every node to one unit",
                )
    groups: list[list[ir.Node]] = [[] for _ in units]
    for node in find_nodes(model, unit_of):
        if not is_standard(node, "Constant"):
            groups[unit_of[node.name or ""]].append(node)
    return [tuple(group) for group in groups if group]

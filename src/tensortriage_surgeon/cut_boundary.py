"""Where a cut starts and ends: from the values or nodes that a user named to a set of nodes that hangs together."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from tensortriage.api import Model
from tensortriage.envelope.sdk import ValueSpec
from tensortriage.model.sdk import (
    Graph,
    leaving_values,
    nearest_name,
    with_specs,
)
from tensortriage.sdk import DType, UsageError
from tensortriage_surgeon.nodes_between import Dangling, nodes_between

_SHOWN = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Boundary:
    """A cut through a graph.

    Attributes:
        nodes: Names of the nodes inside.
        inputs: Values that enter, in the order they get as inputs.
        outputs: Values that leave, in the order they get as outputs.
    """

    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def boundary_of(
    model: Model,
    chosen: Sequence[str] | None,
    inputs: Mapping[str, ValueSpec] | None,
    outputs: Mapping[str, DType | None] | None,
) -> Boundary:
    """Return the cut that a user described.

    Args:
        model: The model to cut from.
        chosen: Names of nodes; None for the nodes between inputs and outputs.
        inputs: Values at which to start; None for the model's inputs.
        outputs: Values at which to end; None for the model's outputs, or for values that leave the chosen nodes.

    Raises:
        UsageError: For an unknown value (``value-unknown``), a constant or an output among the inputs
            (``cut-input-constant``, ``cut-input-unused``), nodes together with inputs (``cut-overdetermined``), a cut
            without nodes (``cut-empty``), and one that needs more than its inputs (``cut-dangling``).
    """
    graph = model.graph
    _check_known(model, [*(inputs or {}), *(outputs or {})])
    if chosen is not None:
        if inputs is not None:
            raise UsageError(
                "nodes and --inputs both define the start of the cut",
                slug="cut-overdetermined",
                cure="give either nodes, or --inputs and --outputs",
            )
        leaving = tuple(outputs) if outputs else leaving_values(model, chosen)
        return Boundary(tuple(chosen), _entering(graph, chosen), leaving)
    starts = tuple(spec.name for spec in model.inputs) if inputs is None else tuple(inputs)
    ends = tuple(spec.name for spec in model.outputs) if outputs is None else tuple(outputs)
    for name in starts:
        if name in graph.constants:
            raise UsageError(
                f"'{name}' is a constant, which is included without being named",
                slug="cut-input-constant",
                cure="leave it out of --inputs",
            )
    nodes, dangling = nodes_between(graph, starts, ends)
    if dangling:
        raise _dangling(dangling, starts, ends)
    if not nodes:
        raise UsageError(
            f"no node lies between {_list(starts)} and {_list(ends)}",
            slug="cut-empty",
            cure="name outputs that depend on the inputs",
        )
    entering = _entering(graph, nodes)
    unused = [name for name in starts if name not in entering]
    if unused and inputs is not None:
        raise UsageError(
            f"none of the outputs {_list(ends)} depends on {_list(unused)}",
            slug="cut-input-unused",
            cure="leave it out of --inputs, or name outputs that depend on it",
        )
    return Boundary(nodes, tuple(name for name in starts if name in entering), ends)


def with_boundary(
    result: Model,
    boundary: Boundary,
    inputs: Mapping[str, ValueSpec] | None,
    outputs: Mapping[str, DType | None] | None,
) -> Model:
    """Return a cut model with its inputs in the order of the boundary, and the user's types.

    Raises:
        UsageError: When the user's type is not the value's (slug ``type-contradicts``).
    """
    known = {spec.name: spec for spec in (*result.inputs, *result.outputs)}
    given = dict(inputs or {}) | {name: ValueSpec(name, dtype, None) for name, dtype in (outputs or {}).items()}
    for name, spec in given.items():
        own = known[name].dtype if name in known else None
        if spec.dtype is not None and own is not None and spec.dtype is not own:
            raise UsageError(
                f"'{name}' is {own.label}, not {spec.dtype.label}",
                slug="type-contradicts",
                cure=f"write auto instead of {spec.dtype.label}",
            )
    return _ordered(with_specs(result, given), boundary.inputs)


def _check_known(model: Model, names: Sequence[str]) -> None:
    graph = model.graph
    known = {*(spec.name for spec in model.inputs), *graph.values, *graph.initializers}
    for name in names:
        if name not in known:
            raise UsageError(
                f"the model has no value named '{name}'", slug="value-unknown", cure=nearest_name(name, known)
            )


def _ordered(model: Model, names: Sequence[str]) -> Model:
    """Return the model with these inputs first, in this order; the others follow in theirs."""
    clone = model.clone()
    places = {name: place for place, name in enumerate(names)}
    ordered = sorted(clone.ir.graph.inputs, key=lambda value: places.get(value.name or "", len(places)))
    clone.ir.graph.inputs.clear()
    clone.ir.graph.inputs.extend(ordered)
    return Model.from_ir(clone.ir)


def _entering(graph: Graph, nodes: Collection[str]) -> tuple[str, ...]:
    """Return the values that nodes use and do not make, constants left out, in order of first use."""
    inside = [graph.node(name) for name in nodes]
    made = {value for node in inside for value in node.outputs}
    used = dict.fromkeys(value for node in inside for value in node.uses)
    return tuple(name for name in used if name not in made and name not in graph.constants)


def _dangling(found: Sequence[Dangling], starts: Sequence[str], ends: Sequence[str]) -> UsageError:
    shown = "; ".join(
        f"'{branch.value}' (used by '{branch.node}', depends on {_list(branch.origins)})" for branch in found[:_SHOWN]
    )
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    words = " ".join(f"{branch.value}:auto:auto" for branch in found)
    return UsageError(
        f"between {_list(starts)} and {_list(ends)} other values enter the cut: {shown}{more}",
        slug="cut-dangling",
        cure=f"add to --inputs: {words}",
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "no inputs"

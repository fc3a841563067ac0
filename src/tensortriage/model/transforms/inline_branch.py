"""Replace an If by the nodes of the branch that it is known to take."""

from collections.abc import Mapping

import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.traversal import walk_bodies
from tensortriage.model.model import Model
from tensortriage.model.provenance.origin import BODY
from tensortriage.model.transforms.rewrite_helpers import Names, find_nodes, is_standard, release_bodies
from tensortriage.model.transforms.unused_removal import clean_in_place

THEN, ELSE = "then_branch", "else_branch"


def holder_of(model: Model, node: str) -> str:
    """Return the If of the main graph that holds a node in a branch, at any depth; empty where none does."""
    if node in model.graph:
        return ""
    holders = (holder for holder in model.ir.graph if is_standard(holder, "If"))
    found = (each for each in holders if any(inner and inner.name == node for _, inner in walk_bodies(each)))
    return next((holder.name or "" for holder in found), "")


def take_branch(model: Model, node: str, branch: str) -> Model:
    """Return the model with an If replaced by the nodes of one of its branches; as `take_branches`."""
    return take_branches(model, {node: branch})


def take_branches(model: Model, taken: Mapping[str, str]) -> Model:
    """Return the model with Ifs replaced by the nodes of one of their branches.

    Nodes keep their names unless one is taken outside the branch, and note whose they are (`NodeOrigin.body`); results
    of the branch get the names of the If's. What only served the condition or the other branch goes, inputs of the
    model included.

    Args:
        model: The model; it is not changed.
        taken: `THEN` or `ELSE` by the name of an If, a node of the main graph.

    Raises:
        UsageError: For an unknown node (``node-unknown``).
        ModelError: When a constant of the branch has a name that is taken outside of it (``branch-not-taken``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    holders = find_nodes(clone, taken)
    served = [value for holder in holders for value in _used(holder) if value.is_graph_input()]
    for holder in holders:
        _take(graph, holder, taken[holder.name or ""])
    clean_in_place(clone.ir)
    for value in served:
        if not value.uses() and value not in graph.outputs and value in graph.inputs:
            graph.inputs.remove(value)
    return Model.from_ir(clone.ir)


def _take(graph: ir.Graph, holder: ir.Node, branch: str) -> None:
    """Put the nodes of a branch in place of an If."""
    path = "/".join(filter(None, (holder.metadata_props.get(BODY), holder.name, branch)))
    body = holder.attributes[branch].as_graph()
    results = tuple(body.outputs)
    _move_constants(body, graph)
    nodes = tuple(body)
    body.outputs.clear()
    body.remove(nodes)
    release_bodies(holder)  # the rest of the branches uses nothing
    for name in (THEN, ELSE):
        holder.attributes.pop(name, None)
    names = _names_without(graph, holder)
    graph.insert_before(holder, nodes)
    for moved in nodes:
        moved.name = names.fresh(moved.name or f"{holder.name}::{moved.op_type}")
        moved.metadata_props[BODY] = path
        for value in moved.outputs:
            if value.name:
                value.name = names.fresh(value.name)
    own = frozenset(value for moved in nodes for value in moved.outputs)
    _hand_over(graph, holder, results, own, names)
    graph.remove(holder, safe=True)


def _used(holder: ir.Node) -> list[ir.Value]:
    """Return every value that a node or its bodies use."""
    inner = [value for _, node in walk_bodies(holder) if node is not None for value in node.inputs]
    return list(dict.fromkeys(value for value in (*holder.inputs, *inner) if value is not None))


def _names_without(graph: ir.Graph, holder: ir.Node) -> Names:
    """Return the names in use after a node and its bodies are removed."""
    names = Names(graph)
    names.release([holder.name, *(value.name for value in holder.outputs)])
    return names


def _move_constants(body: ir.Graph, graph: ir.Graph) -> None:
    for name, value in list(body.initializers.items()):
        if name in graph.initializers:
            raise ModelError(
                f"the constant {name!r} of a branch is also one of the model",
                slug="branch-not-taken",
                cure="give the constants of the branch names of their own",
            )
        del body.initializers[name]
        graph.register_initializer(value)


def _hand_over(
    graph: ir.Graph, holder: ir.Node, results: tuple[ir.Value, ...], own: frozenset[ir.Value], names: Names
) -> None:
    """Make everything use the results of the branch, under the names that the If gave them."""
    given: set[ir.Value] = set()
    for old, new in zip(holder.outputs, results, strict=True):
        name, old.name = old.name, None
        if new not in own or new in given:
            copy = ir.Node("", "Identity", [new], name=names.fresh(f"{holder.name}::Identity"))
            graph.insert_before(holder, copy)
            new = copy.outputs[0]
        given.add(new)
        new.name = name
        new.type, new.shape = new.type or old.type, new.shape or old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)

"""Edits that keep every name: choose the outputs, turn values into constants, or make values replaceable at run time.

Each returns a new model that shares the weights of the old one.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.errors import DataError, UsageError
from tensortriage.model.ir.traversal import outer_values
from tensortriage.model.model import Model
from tensortriage.model.provenance.network_outputs import note_outputs
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.rewrite_helpers import (
    Names,
    as_scalar,
    declared_value,
    find_values,
    initializer,
    is_standard,
    prune_initializers,
    release_bodies,
    take_over,
)
from tensortriage.model.transforms.unused_removal import clean_in_place
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

INJECT_PREFIX = "inject::"
USE_PREFIX = "use::"
BEFORE_PREFIX = "before::"


def markable(model: Model) -> tuple[str, ...]:
    """Return the values that can become outputs, in topological order.

    These are the tensors that nodes make; outputs of Constant nodes, sequences, optionals and maps are left out.
    """
    types = infer_types(model.ir, {})
    made = (value for node in model.ir.graph if not is_standard(node, "Constant") for value in node.outputs)
    return tuple(v.name for v in made if v.name and (v not in types or isinstance(types[v], ir.TensorType)))


def mark_outputs(model: Model, values: Iterable[str]) -> Model:
    """Return the model with more outputs, after those it has.

    Args:
        model: The model; it is not changed.
        values: Names of values that nodes make, e.g. from `markable`. Those that are outputs already are not repeated.

    Raises:
        UsageError: When a value is unknown (``value-unknown``) or made by no node (``value-not-markable``).
    """
    return _with_outputs(model, [*(value.name or "" for value in model.ir.graph.outputs), *values])


def select_outputs(model: Model, values: Iterable[str]) -> Model:
    """Return the model with exactly these outputs, in this order; nodes stay even when no output needs them.

    Raises:
        UsageError: When there are none (``outputs-empty``), one is unknown (``value-unknown``) or made by no node and
            no output so far (``value-not-markable``).
    """
    return _with_outputs(model, _some(values))


def needed_for(model: Model, values: Iterable[str]) -> Model:
    """Return the model with exactly these outputs and nothing that they do not need; errors as of `select_outputs`."""
    return _with_outputs(model, _some(values), prune=True)


def freeze(model: Model, values: Mapping[str, np.ndarray]) -> Model:
    """Return the model with values replaced by constants.

    Graph inputs among them cease to be inputs. Nodes that only served to compute a frozen value are removed.

    Args:
        model: The model; it is not changed.
        values: Name of a value (graph input, initializer or node output) to its array.

    Raises:
        UsageError: When a value is unknown (``value-unknown``).
        DataError: When an array has another element type than the value (``dtype-mismatch``).
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    producers: list[ir.Node] = []
    for name, old in find_values(clone, values).items():
        _check_dtype(name, old, values[name])
        producer = old.producer()
        if producer is not None:
            old.name = names.fresh(f"{BEFORE_PREFIX}{name}")
            producers.append(producer)
        if old.is_graph_input():
            graph.inputs.remove(old)
        if old.is_initializer():
            del graph.initializers[name]
        for user, index in tuple(old.uses()):
            if (scalar := as_scalar(user, values[name])) is not None:
                alone = initializer(names.fresh(f"{name}::scalar"), scalar)
                graph.register_initializer(alone)
                user.replace_input_with(index, alone)
        new = initializer(name, values[name])
        graph.register_initializer(new)
        old.replace_all_uses_with(new, replace_graph_outputs=True)
    _remove_dead(graph, producers)
    prune_initializers(graph)
    return Model.from_ir(clone.ir)


def inject(model: Model, values: Iterable[str], *, specs: Mapping[str, ValueSpec], fixed: bool = False) -> Model:
    """Return the model in which values can be replaced at run time, to see how an error in them reaches the outputs.

    Every value V gets two more inputs: ``inject::V`` (the type of V, same rank, every dimension free) and ``use::V``
    (a bool scalar). Everything downstream, a graph output V included, sees ``inject::V`` where ``use::V`` is true and
    the computed V otherwise; what the node computes is then named ``before::V``. To leave V alone feed False and any
    array of the type, e.g. of shape ``(1,) * rank``.

    The switch is an ``If``: it passes one side on bit for bit and never looks at the other, while ONNX Runtime's
    ``Where`` on the CPU adds the two masked sides, which loses the sign of -0.0, and broadcasts them.

    Args:
        model: The model; it is not changed.
        values: Names of node outputs, graph inputs or initializers.
        specs: Types and ranks of the values.
        fixed: Whether replacements have the shapes of the specs, and no others: what follows is then built for these,
            which some operators need (ONNX Runtime takes an Attention of unknown width for a narrower one).

    Raises:
        UsageError: When a value is unknown (``value-unknown``) or replaceable already (``value-injected``).
        ModelError: When the type of a value is not known (``value-type-unknown``).
    """
    clone = require_opset(model, 1).clone()
    graph = clone.ir.graph
    names = Names(graph)
    taken = {value.name for value in graph.inputs}
    types = infer_types(clone.ir, specs)
    for name, value in find_values(clone, dict.fromkeys(values)).items():
        if f"{INJECT_PREFIX}{name}" in taken:
            raise UsageError(
                f"value {name!r} is replaced already", slug="value-injected", cure="inject into the original model"
            )
        spec = specs.get(name)
        if spec is not None and spec.shape is not None and not fixed:
            spec = ValueSpec(name, spec.dtype, (None,) * len(spec.shape))
        spec = spec if spec is not None and spec.shape is not None else None
        replacement = declared_value(f"{INJECT_PREFIX}{name}", spec, types.get(value))
        use = declared_value(f"{USE_PREFIX}{name}", ValueSpec(f"{USE_PREFIX}{name}", DType.BOOL, ()), None)
        graph.inputs.extend((replacement, use))
        switch = _switch(value, use, replacement, names)
        own = {node for attr in switch.attributes.values() for node in attr.as_graph()}
        users = [use for use in value.uses() if use.node not in own]
        prefix = "injected::" if value.producer() is None else BEFORE_PREFIX
        take_over(value, [switch], users, name=names.fresh(f"{prefix}{name}"))
    return Model.from_ir(clone.ir)


def _some(values: Iterable[str]) -> list[str]:
    names = list(values)
    if not names:
        raise UsageError("a model needs at least one output", slug="outputs-empty", cure="name a value to keep")
    return names


def _with_outputs(model: Model, names: Collection[str], *, prune: bool = False) -> Model:
    clone = model.clone()
    graph = clone.ir.graph
    before = set(graph.outputs)
    found = find_values(clone, dict.fromkeys(names))
    for name, value in found.items():
        if value.producer() is None and value not in before:
            raise UsageError(
                f"{name!r} is an input or an initializer, not the result of a node",
                slug="value-not-markable",
                cure="mark outputs of nodes; the value of an input or initializer is known without running the model",
            )
    note_outputs(graph.metadata_props, [value.name or "" for value in graph.outputs])
    graph.outputs.clear()
    graph.outputs.extend(found.values())
    if prune:
        clean_in_place(clone.ir)
    if any(value.type is None for value in found.values()):  # ONNX wants outputs typed, and TensorRT 8.5 insists
        types = infer_types(clone.ir, {})
        for value in found.values():
            value.type = value.type or types.get(value)
    return Model.from_ir(clone.ir)


def _check_dtype(name: str, value: ir.Value, array: np.ndarray) -> None:
    dtype = DType.from_numpy(array.dtype)
    if value.dtype is not None and value.dtype.value != dtype.value:
        raise DataError(
            f"value {name!r} is {DType(value.dtype.value).label}, but the array for it is {dtype.label}",
            slug="dtype-mismatch",
            cure="convert the array to the type of the value",
        )


def _remove_dead(graph: ir.Graph, candidates: list[ir.Node]) -> None:
    """Remove nodes whose outputs nothing uses any more, and then those that only served them."""
    outputs = set(graph.outputs)
    while candidates:
        node = candidates.pop()
        if node.graph is not graph or any(value.uses() or value in outputs for value in node.outputs):
            continue
        before = [value.producer() for value in outer_values(node)]
        release_bodies(node)
        graph.remove(node, safe=True)
        candidates.extend(producer for producer in before if producer is not None)


def _switch(value: ir.Value, use: ir.Value, replacement: ir.Value, names: Names) -> ir.Node:
    """Return a node that passes on the replacement where `use` is true and the value otherwise."""
    branches = []
    for branch, source in (("then_branch", replacement), ("else_branch", value)):
        copy = ir.Node("", "Identity", [source], name=names.fresh(f"{branch}::{value.name}"))
        copy.outputs[0].name = names.fresh(f"{branch}::{value.name}")
        copy.outputs[0].type = replacement.type
        body = ir.Graph((), copy.outputs, nodes=(copy,), name=branch)
        branches.append(ir.AttrGraph(branch, body))
    switch = ir.Node("", "If", [use], branches, name=names.fresh(f"switch::{value.name}"))
    switch.outputs[0].type = replacement.type
    switch.outputs[0].shape = None if replacement.shape is None else replacement.shape.copy()
    return switch

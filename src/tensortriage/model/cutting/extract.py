"""Cut any set of nodes out of a model, fed with the values that the rest of the model would have computed.

Every subset of a graph's nodes is a valid model once each value that crosses the border becomes an input. Constants
never cross: initializers and Constant nodes come along, their tensors shared. The same carving serves one unit
(`extract`) and many side by side (`tensortriage.model.cutting.explode`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.model.ir.collector_pause import collector_paused
from tensortriage.model.ir.traversal import outer_values
from tensortriage.model.model import Model
from tensortriage.model.provenance.network_outputs import note_part
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.transforms.rewrite_helpers import (
    as_scalar,
    declared_value,
    find_nodes,
    initializer,
    is_standard,
    nearest_name,
    with_graph,
)
from tensortriage.values.spec import ValueSpec

Frozen = Callable[[ir.Value, ir.Node, int], np.ndarray | None]
"""Decides whether one use (value, using node, input position) of an outer value becomes a constant, and which."""


@collector_paused()
def extract(
    model: Model,
    nodes: Collection[str],
    *,
    specs: Mapping[str, ValueSpec],
    outputs: Collection[str] | None = None,
) -> Model:
    """Return a model of exactly these nodes, with names, weights, functions and metadata unchanged.

    Args:
        model: The model to cut from; it is not changed.
        nodes: Names of nodes of the main graph. A node with bodies is cut with them.
        specs: Types and shapes of values, for the inputs of the new model; see
            `tensortriage.model.shape_inference.value_specs.value_specs`.
        outputs: Values that become the outputs, in this order; by default those that are used outside the cut or are
            outputs of `model`, and when there are none, those that nothing uses.

    Raises:
        UsageError: For an empty set of nodes (``extract-empty``), an unknown node (``node-unknown``, ``node-in-body``)
            or an output that none of the nodes makes (``output-not-made``).
        ModelError: When the type of an input is not known (``value-type-unknown``).
    """
    picked = find_nodes(model, nodes)
    if not picked:
        raise UsageError("no nodes to extract", slug="extract-empty", cure="name at least one node of the model")
    carving = Carving(model, specs=specs, input_name=lambda value: value)
    made = carving.add(picked)
    names = _default_outputs(model, picked) if outputs is None else tuple(dict.fromkeys(outputs))
    for name in names:
        if name not in made:
            raise UsageError(
                f"none of the extracted nodes makes the value {name!r}",
                slug="output-not-made",
                cure=nearest_name(name, made),
            )
    return carving.finish([made[name] for name in names])


def leaving_values(model: Model, nodes: Collection[str]) -> tuple[str, ...]:
    """Return the default outputs of `extract` for these nodes; same errors for their names."""
    return _default_outputs(model, find_nodes(model, nodes))


class Carving:
    """A new graph in the making, to which sets of nodes are added, each fed from outside.

    Args:
        model: The model to carve from.
        specs: Types and shapes of its values.
        input_name: Gives the name of the input for a value.
        frozen: Decides which uses of outer values become constants instead; those are named ``frozen::VALUE``.
    """

    def __init__(
        self,
        model: Model,
        *,
        specs: Mapping[str, ValueSpec],
        input_name: Callable[[str], str],
        frozen: Frozen = lambda _value, _node, _index: None,
    ) -> None:
        self._model = model
        self._specs = specs
        self._input_name = input_name
        self._frozen = frozen
        self._types: Mapping[ir.Value, ir.TypeProtocol] | None = None
        self._nodes: list[ir.Node] = []
        self._inputs: list[ir.Value] = []
        self._initializers: dict[str, ir.Value] = {}
        self._shared: dict[ir.Value, ir.Value] = {}
        self.feeds: dict[str, str] = {}
        """Input name to the name of the value that it holds."""

    def add(self, unit: Sequence[ir.Node]) -> dict[str, ir.Value]:
        """Copy one set of nodes, in topological order, into the new graph; return their results, by value name."""
        own = {value for node in unit for value in node.outputs}
        outer = tuple(dict.fromkeys(v for node in unit for v in outer_values(node) if v not in own))
        copies, stand_ins = _copy(self._model.ir.graph, unit, outer)
        for value, stand_in in zip(outer, stand_ins, strict=True):
            self._connect(value, stand_in)
        self._nodes.extend(copies)
        return {value.name: value for node in copies for value in node.outputs if value.name}

    def finish(self, outputs: Sequence[ir.Value]) -> Model:
        """Return the new model; outputs whose type is not declared get the one in the specs, if any."""
        old = self._model.ir.graph
        for value in outputs:
            spec = self._specs.get(value.name or "")
            if value.type is None and spec is not None and spec.dtype is not None:
                value.type = ir.TensorType(ir.DataType(spec.dtype.value))
                value.shape = None if spec.shape is None else ir.Shape(spec.shape)
        order = {value.name: index for index, value in enumerate(old.inputs)}
        self._inputs.sort(key=lambda value: order.get(self.feeds.get(value.name or "", value.name), len(order)))
        graph = ir.Graph(
            self._inputs,
            outputs,
            nodes=self._nodes,
            initializers=tuple(self._initializers.values()),
            doc_string=old.doc_string,
            opset_imports=dict(old.opset_imports),
            name=old.name,
            metadata_props=dict(old.metadata_props),
        )
        note_part(graph.metadata_props)
        return Model.from_ir(with_graph(self._model.ir, graph))

    def _connect(self, value: ir.Value, stand_in: ir.Value) -> None:
        """Wire the uses of a copied unit's stand-in for an outer value to a constant or an input of the new graph."""
        for user, index in tuple(stand_in.uses()):
            array = self._frozen(value, user, index)
            if array is None:
                user.replace_input_with(index, self._outer(value))
            elif (scalar := as_scalar(user, array)) is not None:
                user.replace_input_with(index, self._constant(f"frozen::{value.name}::scalar", scalar))
            else:
                user.replace_input_with(index, self._constant(f"frozen::{value.name}", array))

    def _outer(self, value: ir.Value) -> ir.Value:
        if value not in self._shared:
            self._shared[value] = self._make_outer(value)
        return self._shared[value]

    def _make_outer(self, value: ir.Value) -> ir.Value:
        name = value.name or ""
        producer = value.producer()
        if value.is_initializer():
            shape = None if value.shape is None else value.shape.copy()
            copy = ir.Value(name=name, type=value.type, shape=shape, const_value=value.const_value)
            self._initializers[name] = copy
            if value.is_graph_input():
                self._inputs.append(copy)
            return copy
        if is_standard(producer, "Constant"):
            (node,), _ = _copy(self._model.ir.graph, (producer,), ())
            self._nodes.append(node)
            return node.outputs[0]
        source = self._input_name(name)
        made = declared_value(source, self._specs.get(name) or _declared(value), self._type(value))
        made.doc_string = value.doc_string
        made.metadata_props.update(value.metadata_props)
        made.meta.update(value.meta)
        self._inputs.append(made)
        self.feeds[source] = name
        return made

    def _type(self, value: ir.Value) -> ir.TypeProtocol | None:
        """Return the type of a value; inferring those of the whole model is left until one is really missing."""
        spec = self._specs.get(value.name or "")
        if value.type is not None or (spec is not None and spec.dtype is not None):
            return value.type
        if self._types is None:
            self._types = infer_types(self._model.ir, self._specs)
        return self._types.get(value)

    def _constant(self, name: str, array: np.ndarray) -> ir.Value:
        if name not in self._initializers:
            self._initializers[name] = initializer(name, array)
        return self._initializers[name]


def _copy(
    graph: ir.Graph, nodes: Sequence[ir.Node], outer: Sequence[ir.Value]
) -> tuple[tuple[ir.Node, ...], tuple[ir.Value, ...]]:
    """Copy nodes of a graph; return the copies, which belong to no graph, and the stand-ins for the outer values."""
    copy = ir.GraphView(outer, (), nodes=nodes, opset_imports=graph.opset_imports).clone()
    copies = tuple(copy)
    copy.remove(copies)
    return copies, tuple(copy.inputs)


def _declared(value: ir.Value) -> ValueSpec | None:
    if value.shape is None:
        return None
    return ValueSpec(value.name or "", None, tuple(d if isinstance(d, int) else d.value for d in value.shape))


def _default_outputs(model: Model, picked: Sequence[ir.Node]) -> tuple[str, ...]:
    """Return the values that leave a set of nodes, graph outputs first in their own order."""
    names = {node.name for node in picked}
    made = [value.name for node in picked for value in node.outputs if value.name]
    graph_outputs = [value.name for value in model.ir.graph.outputs if value.name in set(made)]
    users = {name: model.graph.consumers(name) for name in made}
    leaving = [name for name in made if any(user.name not in names for user in users[name])]
    found = dict.fromkeys(name for name in (*graph_outputs, *leaving) if name)
    return tuple(found) or tuple(name for name in made if not users[name])

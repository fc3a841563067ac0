"""Make a model of its own out of the body of an If, Loop or Scan, and describe the feed of every turn.

A body uses values from around it (captures) and, in a Loop or Scan, gets others at every turn. Both become inputs.
Constants among the captures come along as constants.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.ir.traversal import captures
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import Types, infer_types
from tensortriage.model.transforms.rewrite_helpers import find_nodes, with_graph
from tensortriage.values.spec import ValueSpec


@frozen_dataclass
class BodyInput:
    """Source of an input of a body in the first turn; slices of a Scan in every turn.

    Attributes:
        value: Value of the main graph; empty for a constant.
        constant: The constant, when there is no value.
        axis: The axis along which a Scan hands out slices; None for the whole value.
        from_end: Whether the Scan starts at the far end of that axis.
    """

    value: str
    constant: np.ndarray | None = None
    axis: int | None = None
    from_end: bool = False

    def take(self, values: Mapping[str, np.ndarray], turn: int = 0) -> np.ndarray:
        """Return the value of the input in the first turn, or a later slice, from recorded values of the main graph."""
        if self.constant is not None:
            return self.constant
        array = values[self.value]
        if self.axis is None:
            return array
        part: np.ndarray = np.take(array, -1 - turn if self.from_end else turn, axis=self.axis)
        return part


@frozen_dataclass(eq=False)
class LiftedBody:
    """A body as a model.

    Attributes:
        model: The model; names of nodes and values are those of the body.
        sources: Where each of its inputs comes from in the first turn.
        own: Inputs that are the body's own, in its order; the others are values from around it.
    """

    model: Model
    sources: Mapping[str, BodyInput]
    own: tuple[str, ...] = ()

    def next_turn(self, fed: Mapping[str, np.ndarray], made: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the values that a Loop, or a Scan but for its slices, feeds to the turn after one.

        Args:
            fed: What was fed to that turn.
            made: What it gave, by output name.
        """
        results = [made[spec.name] for spec in self.model.outputs]
        following = dict(fed)
        if self._counts:
            number, *states = self.own
            following[number] = fed[number] + 1
        else:
            states = [name for name in self.own if self.sources[name].axis is None]
        return following | dict(zip(states, results, strict=False))

    @property
    def _counts(self) -> bool:
        """Whether this is the body of a Loop, whose first input is the number of the turn."""
        return bool(self.own) and self.sources[self.own[0]].constant is not None


def lift_body(model: Model, node: str, branch: str = "", *, specs: Mapping[str, ValueSpec]) -> LiftedBody:
    """Return the body of a node of the main graph as a model.

    Args:
        model: The model; it is not changed.
        node: Name of the If, Loop or Scan.
        branch: Name of the attribute that holds the body (``then_branch``); needed when there are several.
        specs: Types and shapes of values of the main graph.

    Raises:
        UsageError: For an unknown node (``node-unknown``), one without a body (``node-without-body``), one with
            several (``body-ambiguous``), or a body from which nothing can be made (``body-empty``).
    """
    (holder,) = find_nodes(model, [node])
    body = _pick(holder, branch)
    types = infer_types(model.ir, specs)
    outer = captures([body])
    if not len(body):
        raise UsageError(
            f"the body of {node!r} has no nodes", slug="body-empty", cure="extract the nodes around it instead"
        )
    copy = ir.GraphView(
        [*body.inputs, *outer],
        body.outputs,
        nodes=tuple(body),
        initializers=tuple(body.initializers.values()),
        opset_imports=model.ir.graph.opset_imports,
        name=body.name,
    ).clone()
    sources = dict(zip((value.name or "" for value in copy.inputs), _turn_inputs(holder, body), strict=False))
    for value, stand_in in zip(outer, tuple(copy.inputs)[len(body.inputs) :], strict=True):
        tensor = value.const_value if value.is_initializer() else _constant(value)
        if tensor is not None:
            copy.inputs.remove(stand_in)
            stand_in.const_value = tensor
            stand_in.type, stand_in.shape = ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())
            copy.register_initializer(stand_in)
            continue
        spec = specs.get(value.name or "")
        stand_in.type = types.get(value, stand_in.type)
        stand_in.shape = ir.Shape(spec.shape) if spec is not None and spec.shape is not None else stand_in.shape
        sources[stand_in.name or ""] = BodyInput(value.name or "")
    _declare(copy, body, holder, types)
    for value in copy.inputs[: len(body.inputs)]:
        if value.shape is None and (source := sources.get(value.name or "")) is not None:
            value.shape = _shape_in_turns(source, specs.get(source.value))
    own = tuple(value.name or "" for value in copy.inputs[: len(body.inputs)])
    return LiftedBody(Model.from_ir(with_graph(model.ir, copy)), sources, own)


def _pick(holder: ir.Node, branch: str) -> ir.Graph:
    found = {
        name: attr.as_graph()
        for name, attr in holder.attributes.items()
        if attr.type == ir.AttributeType.GRAPH and not attr.is_ref()
    }
    if not found:
        raise UsageError(
            f"{holder.op_type} node {holder.name!r} has no body",
            slug="node-without-body",
            cure="name an If, Loop or Scan node of the main graph",
        )
    if branch not in found and (branch or len(found) > 1):
        raise UsageError(
            f"{holder.op_type} node {holder.name!r} has "
            + (f"no body {branch!r}" if branch else f"{len(found)} bodies"),
            slug="body-ambiguous",
            cure="name one: " + " or ".join(f"{holder.name}:{name}" for name in found),
        )
    return found[branch] if branch else next(iter(found.values()))


def _constant(value: ir.Value) -> ir.TensorProtocol | None:
    producer = value.producer()
    tensor: ir.TensorProtocol | None = None if producer is None else constant_tensor(producer)
    return tensor


def _turn_inputs(holder: ir.Node, body: ir.Graph) -> list[BodyInput]:
    """Return the inputs of a body in the first turn (onnx.ai: If, Loop, Scan)."""
    fed = [BodyInput("") if value is None else BodyInput(value.name or "") for value in holder.inputs]
    if holder.op_type == "Loop":
        first = [BodyInput("", np.array(0, np.int64)), BodyInput("", np.array(True))]
        return first[:1] + ([fed[1]] if len(fed) > 1 and fed[1].value else first[1:]) + fed[2:]
    if holder.op_type == "Scan":
        count = holder.attributes["num_scan_inputs"].as_int()
        states = len(body.inputs) - count
        axes, backward = _ints(holder, "scan_input_axes", count), _ints(holder, "scan_input_directions", count)
        return fed[:states] + [
            dataclasses.replace(source, axis=axes[i], from_end=bool(backward[i]))
            for i, source in enumerate(fed[states:])
        ]
    return []


def _shape_in_turns(source: BodyInput, spec: ValueSpec | None) -> ir.Shape | None:
    """Return the shape of an input of a body: a slice of its source, or a state, of which turns fix only the rank."""
    if spec is None or spec.shape is None:
        return None
    if source.axis is None:
        return ir.Shape([None] * len(spec.shape))
    axis = source.axis % len(spec.shape)
    return ir.Shape([size for place, size in enumerate(spec.shape) if place != axis])


def _ints(node: ir.Node, name: str, count: int) -> list[int]:
    attr = node.attributes.get(name)
    return [0] * count if attr is None else list(attr.as_ints())


def _declare(copy: ir.Graph, body: ir.Graph, holder: ir.Node, types: Types) -> None:
    """Declare the types of inputs and outputs that the body leaves to be inferred from around it."""
    for old, new in (*zip(body.inputs, copy.inputs, strict=False), *zip(body.outputs, copy.outputs, strict=True)):
        if new.type is None:
            new.type = types.get(old)
    if holder.op_type == "Loop":
        for value, shape in zip(copy.inputs[:2], ((), ()), strict=False):
            value.shape = ir.Shape(shape) if value.shape is None else value.shape

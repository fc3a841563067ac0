"""Rewrites that compute the same in float32 and need less of a narrow format: no node has to be kept for them.

Each returns a new model, or None where there is nothing to rewrite. Names of values that stay do not change; new nodes
are named after the node they replace.
"""

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from tensortriage.errors import ModelError
from tensortriage.model.ir.attributes import constant_tensor
from tensortriage.model.model import Model
from tensortriage.model.transforms.opset_upgrade import require_opset
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, is_standard, take_over
from tensortriage.model.transforms.unused_removal import clean
from tensortriage.values.dtype import Precision

LAYER_NORM_OPSET = 17
_HEADROOM = 2.0
"""A constant is brought this much below the largest number, to leave room for the other summand."""


_ENDS = {"Clip": (1, 2)}
"""Operands with extreme values that only mean "to the end": an infinity has the same meaning."""


def constants_beyond(model: Model, precision: Precision, nodes: Collection[str] | None = None) -> dict[str, float]:
    """Return the finite constants beyond the range of a format: the largest magnitude in each, by its name.

    Args:
        model: The model.
        precision: A floating-point format.
        nodes: Names of the nodes that compute in the format; what others alone read is left out. None for all.
    """
    limit = float(precision.dtype.finfo.max)
    found = {}
    for value, tensor, _ in _constants(model, nodes):
        array = np.abs(np.asarray(tensor.numpy()))
        if _clamped(tensor, limit) is not None:
            found[value.name or ""] = float(array[np.isfinite(array)].max())
    return found


def clamp_constants(model: Model, precision: Precision, nodes: Collection[str] | None = None) -> Model | None:
    """Return the model with finite constants beyond the range of a format brought into it (an additive mask of -1e9).

    They are given half of its largest number, so that the sum of two, or of one and a score, is finite as well.

    Args:
        model: The model; it is not changed.
        precision: A floating-point format.
        nodes: As of `constants_beyond`.
    """
    limit = float(precision.dtype.finfo.max)
    clone = model.clone()
    changed = 0
    for value, tensor, maker in tuple(_constants(clone, nodes)):
        clamped = _clamped(tensor, limit)
        if clamped is None:
            continue
        changed += 1
        if maker is None:
            value.const_value = ir.Tensor(clamped, name=value.name)
        elif maker.op_type == "ConstantOfShape":
            maker.attributes["value"] = ir.AttrTensor("value", ir.Tensor(clamped))
        else:
            maker.attributes.clear()
            maker.attributes.add(ir.AttrTensor("value", ir.Tensor(clamped)))
    return Model.from_ir(clone.ir) if changed else None


def _constants(
    model: Model, nodes: Collection[str] | None
) -> Iterator[tuple[ir.Value, ir.TensorProtocol, ir.Node | None]]:
    """Yield the constants that given nodes of the main graph compute with: value, tensor, and the producing node."""
    graph = model.ir.graph
    for value in graph.initializers.values():
        if value.const_value is not None and _is_computed_with(value, nodes):
            yield value, value.const_value, None
    for node in graph:
        tensor = constant_tensor(node)
        if tensor is None and node.op_type == "ConstantOfShape" and "value" in node.attributes:
            tensor = node.attributes["value"].as_tensor()
        if tensor is not None and _is_computed_with(node.outputs[0], nodes):
            yield node.outputs[0], tensor, node


def _is_computed_with(value: ir.Value, nodes: Collection[str] | None) -> bool:
    uses = [use for use in value.uses() if use.idx not in _ENDS.get(use.node.op_type, ())]
    return any(nodes is None or use.node.name in nodes for use in uses)


def _clamped(tensor: ir.TensorProtocol | None, limit: float) -> np.ndarray | None:
    if tensor is None or tensor.dtype is not ir.DataType.FLOAT:
        return None
    array = np.asarray(tensor.numpy())
    beyond = np.isfinite(array) & (np.abs(array) > limit)
    if not beyond.any():
        return None
    return np.where(beyond, np.copysign(np.float32(limit / _HEADROOM), array), array).astype(np.float32)


def scale_query(model: Model) -> Model | None:
    """Return the model with the scale of attention scores moved before the MatMul that makes them.

    ``(Q K) * c`` and ``(Q K) / c`` become ``(Q * c) K``: it is the product of the unscaled operands that overflows.
    """
    clone = model.clone()
    graph = clone.ir.graph
    names = Names(graph)
    changed = 0
    for product in tuple(graph):
        scaling = _only_user(product) if is_standard(product, "MatMul") else None
        if not is_standard(scaling, "Mul", "Div") or scaling.inputs[0] is not product.outputs[0]:
            continue
        factor = scaling.inputs[1]
        if _number(factor) is None or any(_number(value) is not None for value in product.inputs):
            continue
        query = product.inputs[0]
        assert query is not None
        before = ir.node(scaling.op_type, [query, factor], name=names.fresh(f"{scaling.name}::before"))
        made = before.outputs[0]
        made.name, made.type = names.fresh(f"scaled::{query.name}"), query.type
        made.shape = None if query.shape is None else query.shape.copy()
        before.metadata_props.update(scaling.metadata_props)
        graph.insert_before(product, before)
        _place_constant(graph, factor, before)
        product.replace_input_with(0, made)
        _bypass(graph, scaling, product.outputs[0])
        changed += 1
    return Model.from_ir(clone.ir) if changed else None


def fuse_layer_norms(model: Model) -> Model | None:
    """Return the model, in opset 17 or later, with normalizations written out in single operators made one operator.

    Inside LayerNormalization engines keep the statistics in float32 (onnx.ai, LayerNormalization: ``stash_type``).
    Only those over the last axis are found.
    """
    try:
        clone = require_opset(model, LAYER_NORM_OPSET).clone()
    except ModelError:
        return None
    graph = clone.ir.graph
    names = Names(graph)
    fused = 0
    for node in tuple(graph):
        norm = _LayerNorm.at(node) if node.graph is graph else None
        fused += norm is not None and norm.fuse(graph, names)
    if not fused:
        return None
    return clean(Model.from_ir(clone.ir))


class _LayerNorm:
    """One normalization: x, x - mean, the division, scale and shift."""

    def __init__(self, x: ir.Value, division: ir.Node, epsilon: float, inner: list[ir.Node]) -> None:
        self._x = x
        self._epsilon = epsilon
        self._inner = inner
        self._last = division
        self._scale: ir.Value | None = None
        self._shift: ir.Value | None = None
        self._absorb("Mul")
        self._absorb("Add")

    @classmethod
    def at(cls, division: ir.Node) -> "_LayerNorm | None":
        """Return the normalization that ends in a division; None when there is none."""
        if not is_standard(division, "Div"):
            return None
        centred, root = (_maker(value) for value in division.inputs)
        added = _maker(root.inputs[0]) if is_standard(root, "Sqrt") else None
        if not is_standard(centred, "Sub") or root is None or not is_standard(added, "Add"):
            return None
        variance = next((m for v in added.inputs if is_standard(m := _maker(v), "ReduceMean")), None)
        epsilon = next((n for v in added.inputs if (n := _number(v)) is not None), None)
        x, mean = centred.inputs[0], _maker(centred.inputs[1])
        if x is None or variance is None or epsilon is None or not is_standard(mean, "ReduceMean"):
            return None
        square = _maker(variance.inputs[0])
        over_last = _over_last_axis(variance) and _over_last_axis(mean)
        if not over_last or mean.inputs[0] is not x or square is None or not _squares(square, centred.outputs[0]):
            return None
        return cls(x, division, epsilon, [mean, centred, square, variance, added, root])

    def _absorb(self, op_type: str) -> None:
        """Take a scale or shift of one dimension that follows."""
        user = _only_user(self._last)
        if not is_standard(user, op_type):
            return
        other = next((v for v in user.inputs if v is not self._last.outputs[0]), None)
        tensor = None if other is None or not other.is_initializer() else other.const_value
        if other is None or tensor is None or len(tensor.shape) != 1:
            return
        self._inner.append(self._last)
        self._last = user
        if op_type == "Mul":
            self._scale = other
        else:
            self._shift = other

    def fuse(self, graph: ir.Graph, names: Names) -> bool:
        """Replace the nodes by one; return whether that was possible."""
        scale = self._scale
        if scale is None:
            size = self._width()
            if size is None:
                return False
            scale = initializer(names.fresh(f"scale::{self._last.name}"), np.ones(size, np.float32))
            graph.register_initializer(scale)
        inputs = [self._x, scale] + ([self._shift] if self._shift is not None else [])
        attributes = {"axis": -1, "epsilon": self._epsilon}
        fused = ir.node("LayerNormalization", inputs, attributes, name=names.fresh(f"{self._last.name}::fused"))
        old = self._last.outputs[0]
        fused.outputs[0].type, fused.outputs[0].shape = old.type, old.shape
        take_over(old, [fused], tuple(old.uses()), name=names.fresh(f"before::{old.name}"))
        for node in reversed([*self._inner, self._last]):
            if not any(value.uses() or value.is_graph_output() for value in node.outputs):
                graph.remove(node, safe=True)
        return True

    def _width(self) -> int | None:
        shape = self._x.shape
        size = shape[-1] if shape is not None and len(shape) else None
        return size if isinstance(size, int) else None


def _maker(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()


def _only_user(node: ir.Node) -> ir.Node | None:
    """Return the one node that reads the result of a node; None when there are others, or it is an output."""
    value = node.outputs[0]
    users = {user for user, _ in value.uses()}
    return users.pop() if len(users) == 1 and not value.is_graph_output() else None


def _number(value: ir.Value | None) -> float | None:
    """Return the number that a constant of one element holds."""
    if value is None:
        return None
    producer = value.producer()
    tensor = value.const_value if producer is None else constant_tensor(producer)
    if tensor is None or tensor.size != 1 or (producer is None and not value.is_initializer()):
        return None
    return float(np.asarray(tensor.numpy()).reshape(()))


def _over_last_axis(mean: ir.Node) -> bool:
    if len(mean.inputs) > 1 and mean.inputs[1] is not None:
        return _number(mean.inputs[1]) == -1
    axes = mean.attributes.get("axes")
    return axes is not None and list(axes.as_ints()) == [-1]


def _squares(node: ir.Node, value: ir.Value) -> bool:
    if is_standard(node, "Pow"):
        return node.inputs[0] is value and _number(node.inputs[1]) == 2.0
    return is_standard(node, "Mul") and node.inputs[0] is value and node.inputs[1] is value


def _bypass(graph: ir.Graph, node: ir.Node, value: ir.Value) -> None:
    """Take a node out: another value takes over its name and readers."""
    old = node.outputs[0]
    name = old.name
    value.type = value.type or old.type
    value.shape = old.shape if value.shape is None else value.shape
    old.replace_all_uses_with(value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    value.name = name


def _place_constant(graph: ir.Graph, value: ir.Value | None, reader: ir.Node) -> None:
    """Move the Constant node that makes a value before a node that reads it now."""
    producer = _maker(value)
    if producer is not None and producer.graph is graph:
        graph.remove(producer)
        graph.insert_before(reader, producer)

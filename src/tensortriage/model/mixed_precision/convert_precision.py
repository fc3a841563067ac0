"""Write a model in fp16 or bf16: typed ONNX, where the Casts say what runs in which precision.

Every node is either lowered (its float32 operands and results become the lower type) or stays as it is; wherever a
value made in one type is used in the other there is one Cast, shared by all its users. Which operand positions may be
lowered is read from the operator's schema at the model's own opset, so the result is valid by construction.

The code is our own: onnx_ir has no such pass, and onnxconverter-common's works on the protobuf (no weights above 2 GB),
leaves bodies of If and Loop alone, goes by lists of operator names, clamps constants, and adds a Cast per use.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.ir.attributes import bodies, constant_tensor
from tensortriage.model.ir.messages import DTYPE_ATTRIBUTES
from tensortriage.model.mixed_precision.lowerable_nodes import Lowering, decide, is_exempt_operand
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.schemas import parameter, signature
from tensortriage.model.shape_inference.type_inference import DEFAULT_TYPES
from tensortriage.model.transforms.opset_upgrade import require_opset, retyped
from tensortriage.model.transforms.rewrite_helpers import STANDARD_DOMAINS, Names, is_standard
from tensortriage.values.dtype import Precision
from tensortriage.values.spec import ValueSpec

_OPSETS = {Precision.FP16: 6, Precision.BF16: 13}
"""Precisions a model can be written in, and the opset from which Cast knows them."""

_NEVER = frozenset({"BitCast", "MeanVarianceNormalization"})
"""Operators that stay float32 though their schema says otherwise: one means the bits, the other is a function whose
body in the ONNX standard adds a float32 constant to its operand (onnx.ai, MeanVarianceNormalization)."""

_WIDE = ir.DataType.FLOAT
_EITHER = frozenset({"Cast", "CastLike", "Shape", "Size"})
"""Operators that take an operand of any type and whose result does not depend on which: no Cast is made for them."""


@frozen_dataclass
class _Positions:
    """Operands and results of a lowered node with the lower type."""

    inputs: frozenset[int]
    outputs: frozenset[int]


def convert(
    model: Model,
    precision: Precision,
    *,
    specs: Mapping[str, ValueSpec],
    kept_nodes: Collection[str] = (),
    kept_op_types: Collection[str] = (),
    keep_io_types: bool = True,
) -> Model:
    """Return the model in fp16 or bf16.

    float32 becomes the lower type; float64 and other types are left alone. What stays float32: kept nodes (with their
    bodies), nodes that only compute shapes, quantizers, operators whose schema does not accept the lower type at the
    model's opset (for bf16 that is Conv before opset 22), operators outside the ONNX standard, and the operands of If,
    Loop and Scan themselves; inside their bodies nodes are lowered. A constant beyond the range of the type becomes an
    infinity. Names of nodes and values do not change; where a value exists in both types, the second is named
    ``fp16::V``, ``bf16::V`` or ``fp32::V``.

    Args:
        model: The model; it is not changed, its weights are read when the result is saved.
        precision: fp16 or bf16.
        specs: Types of values; see `tensortriage.model.shape_inference.value_specs.value_specs`.
        kept_nodes: Names of nodes of the main graph that stay float32.
        kept_op_types: Operators of which every node stays float32.
        keep_io_types: Whether graph inputs and outputs stay float32, with Casts behind and before them.

    Raises:
        UsageError: For another precision (``precision-not-typed``) or an unknown node (``node-unknown``).
        ModelError: When a model of an older opset cannot be upgraded (``opset-too-old``) or a function cannot be
            inlined (``function-not-inlined``).
    """
    upgraded = require_opset(model, _opset_needed(precision))
    lowering = decide(upgraded, specs=retyped(upgraded, specs), kept_nodes=kept_nodes, kept_op_types=kept_op_types)
    _Conversion(lowering, precision, keep_io_types=keep_io_types).apply()
    return Model.from_ir(lowering.model)


def convertible(model: Model, precision: Precision, *, specs: Mapping[str, ValueSpec]) -> frozenset[str]:
    """Return the nodes of the main graph that `convert` lowers, wholly or in a part of their bodies.

    Raises:
        UsageError: For another precision (``precision-not-typed``).
        ModelError: As `convert`.
    """
    upgraded = require_opset(model, _opset_needed(precision))
    lowering = decide(upgraded, specs=retyped(upgraded, specs))
    found = _Conversion(lowering, precision, keep_io_types=True).lowered
    return frozenset(
        node.name or ""
        for node in lowering.model.graph
        if node in found
        or any(inner in found for body in bodies(node) for inner in ir.traversal.RecursiveGraphIterator(body))
    )


def _opset_needed(precision: Precision) -> int:
    if precision not in _OPSETS:
        raise UsageError(
            f"a model cannot be written in {precision.value}",
            slug="precision-not-typed",
            cure="use one of: " + ", ".join(p.value for p in _OPSETS),
        )
    return _OPSETS[precision]


class _Conversion:
    """One edit of one model."""

    def __init__(self, lowering: Lowering, precision: Precision, *, keep_io_types: bool) -> None:
        self._lowering = lowering
        self._low = ir.DataType(precision.dtype.value)
        self._low_word = precision.value
        self._keep_io_types = keep_io_types
        self._names = Names(lowering.model.graph)
        self._graph = lowering.model.graph
        self._positions = {node: found for node in lowering.lowered() if (found := self._lowerable(node))}
        self._is_low: set[ir.Value] = set()
        self._other: dict[ir.Value, ir.Value] = {}

    @property
    def lowered(self) -> frozenset[ir.Node]:
        """Nodes with operands or results of the lower type."""
        return frozenset(self._positions)

    def apply(self) -> None:
        """Edit the model in place."""
        everything = tuple(ir.traversal.RecursiveGraphIterator(self._graph))
        self._lower_results()
        self._lower_constants(everything)
        for node in everything:
            for index, value in enumerate(node.inputs):
                if value is not None and self._is_float(value) and not self._takes_either(node, index):
                    node.replace_input_with(index, self._as(value, low=self._wants_low(node, index)))
        for node in everything:
            for body in bodies(node):
                self._fix_outputs(body, low=False)
        self._fix_outputs(self._graph, low=not self._keep_io_types)

    def _lowerable(self, node: ir.Node) -> _Positions | None:
        """Return the positions of a node that its schema lets have the lower type, or None when there are none."""
        if bodies(node) or any(
            not isinstance(self._lowering.types.get(value, _TENSOR), ir.TensorType)
            for value in (*node.inputs, *node.outputs)
            if value is not None
        ):
            return None
        version = node.version or self._lowering.model.opset_imports.get("", 1)
        schema = signature("", node.op_type, version) if node.domain in STANDARD_DOMAINS else None
        if schema is None or node.op_type in _NEVER:
            return None
        low = ir.TensorType(self._low)

        def allows(formals: Any, index: int, value: ir.Value | None) -> bool:
            formal = parameter(formals, index)
            if value is None or formal is None or not self._is_float(value):
                return False
            return low in formal.type_constraint.allowed_types

        inputs = frozenset(
            index
            for index, value in enumerate(node.inputs)
            if allows(schema.inputs, index, value) and not is_exempt_operand(node, index)
        )
        outputs = frozenset(index for index, v in enumerate(node.outputs) if allows(schema.outputs, index, v))
        outputs -= _fixed_outputs(node)
        return _Positions(inputs, outputs) if inputs or outputs else None

    def _is_float(self, value: ir.Value) -> bool:
        return self._lowering.tensor(value) is _WIDE

    def _wants_low(self, node: ir.Node, index: int) -> bool:
        positions = self._positions.get(node)
        return positions is not None and index in positions.inputs

    def _takes_either(self, node: ir.Node, index: int) -> bool:
        return index == 0 and is_standard(node, *_EITHER)

    def _lower_results(self) -> None:
        """Give the lower type to results of lowered nodes, and to graph inputs on request."""
        for node, positions in self._positions.items():
            for index in positions.outputs:
                self._set_low(node.outputs[index])
            if positions.outputs:
                _retarget(node, self._low)
        if not self._keep_io_types:
            for value in self._graph.inputs:
                if self._is_float(value) and not value.is_initializer():
                    self._set_low(value)

    def _set_low(self, value: ir.Value) -> None:
        value.type = ir.TensorType(self._low)
        self._is_low.add(value)

    def _lower_constants(self, everything: Collection[ir.Node]) -> None:
        """Convert the constants that only lowered nodes use in place, so that they keep their names."""
        graphs = [self._graph, *(body for node in everything for body in bodies(node))]
        outputs = {value for graph in graphs for value in graph.outputs}
        for value in [v for graph in graphs for v in graph.initializers.values()]:
            if self._only_low_uses(value) and value not in outputs and value.const_value is not None:
                value.const_value = self._converted(value.const_value, value.name or "")
                self._set_low(value)
        for node in everything:
            tensor = constant_tensor(node)
            if tensor is not None and self._only_low_uses(node.outputs[0]) and node.outputs[0] not in outputs:
                node.attributes.clear()
                node.attributes.add(ir.AttrTensor("value", self._converted(tensor, tensor.name or "")))
                self._set_low(node.outputs[0])

    def _only_low_uses(self, value: ir.Value) -> bool:
        if not self._is_float(value) or (value.is_graph_input() and self._keep_io_types and not value.is_initializer()):
            return False
        uses = value.uses()
        return bool(uses) and all(self._wants_low(user, index) for user, index in uses)

    def _converted(self, tensor: Any, name: str) -> ir.LazyTensor:
        """Return a tensor in the lower type, computed when it is written."""
        low = self._low

        def compute() -> ir.Tensor[Any]:
            with np.errstate(over="ignore", invalid="ignore"):
                array = tensor.numpy().astype(low.numpy())
            return ir.Tensor(array, dtype=low, name=name)

        return ir.LazyTensor(compute, low, tensor.shape, name=name)

    def _as(self, value: ir.Value, *, low: bool) -> ir.Value:
        """Return the version of a value in the wanted type, made once."""
        if (value in self._is_low) == low:
            return value
        if value not in self._other:
            self._other[value] = self._constant(value, low=low) or self._cast(value, low=low)
        return self._other[value]

    def _constant(self, value: ir.Value, *, low: bool) -> ir.Value | None:
        """Return a second copy of an initializer that is needed in both types; None for other values."""
        tensor, graph = value.const_value, value.graph
        if not low or not value.is_initializer() or value.is_graph_input() or tensor is None or graph is None:
            return None
        name = self._names.fresh(f"{self._low_word}::{value.name}")
        converted = self._converted(tensor, name)
        copy = ir.Value(name=name, type=ir.TensorType(self._low), shape=value.shape, const_value=converted)
        graph.register_initializer(copy)
        return copy

    def _cast(self, value: ir.Value, *, low: bool) -> ir.Value:
        """Put a Cast right behind a value, and return its result."""
        dtype, word = (self._low, self._low_word) if low else (_WIDE, "fp32")
        graph, producer = value.graph, value.producer()
        assert graph is not None
        name = self._names.fresh(f"{word}::{value.name}")
        node = ir.node("Cast", [value], {"to": int(dtype)}, name=f"cast::{name}")
        made = node.outputs[0]
        made.name, made.type = name, ir.TensorType(dtype)
        made.shape = None if value.shape is None else value.shape.copy()
        if producer is None:
            graph.insert_before(graph[0], node)
        else:
            node.metadata_props.update(producer.metadata_props)  # it belongs to the same module
            graph.insert_after(producer, node)
        return made

    def _fix_outputs(self, graph: ir.Graph, *, low: bool) -> None:
        """Make the outputs of a graph have the type they must have, under the names they had."""
        for index, value in enumerate(tuple(graph.outputs)):
            if not self._is_float(value) or (value in self._is_low) == low or value.producer() is None:
                continue
            made = self._as(value, low=low)
            word = self._low_word if value in self._is_low else "fp32"
            name, value.name = value.name, self._names.fresh(f"{word}::{value.name}")
            made.name = name
            graph.outputs[index] = made


_TENSOR = ir.TensorType(ir.DataType.UNDEFINED)


def _fixed_outputs(node: ir.Node) -> frozenset[int]:
    """Return outputs that keep their type for any type of the operands.

    LayerNormalization computes mean and inverse deviation in the type that stash_type names, float32 by default
    (onnx.ai, LayerNormalization).
    """
    return frozenset({1, 2}) if is_standard(node, "LayerNormalization") else frozenset()


def _retarget(node: ir.Node, low: ir.DataType) -> None:
    """Point the attributes that name the type of a node's result at the lower type."""
    if is_standard(node, "ConstantOfShape"):
        attr = node.attributes.get("value")
        fill = np.zeros(1, np.float32) if attr is None else attr.as_tensor().numpy()
        with np.errstate(over="ignore"):
            node.attributes.add(ir.AttrTensor("value", ir.Tensor(fill.astype(low.numpy()), dtype=low)))
    elif is_standard(node, *DTYPE_ATTRIBUTES):
        word = DTYPE_ATTRIBUTES[node.op_type]
        if word in node.attributes or node.op_type in DEFAULT_TYPES:
            node.attributes.add(ir.AttrInt64(word, int(low)))

"""Round every result to a narrow format and compute on in the wide one: what a number format alone costs.

A healthy fp16 kernel computes inside in float32 and stores fp16; the stored numbers are what all kernels agree on. So
after every node, input and constant the value goes through a Cast to the format and back, which is exact emulation of
storage without needing one kernel in that format. The pairs must not be optimized away: run the result with all graph
optimizations off.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.model.attributes import bodies
from tensortriage.model.lowering import Lowering, decide, is_exempt_operand
from tensortriage.model.model import Model
from tensortriage.model.opset import require_opset, retyped
from tensortriage.model.surgery import Names, initializer, is_standard
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.spec import ValueSpec

MOVES_DATA = frozenset(
    {
        "Abs", "Compress", "Concat", "ConcatFromSequence", "DepthToSpace", "Expand", "Flatten", "Gather",
        "GatherElements", "GatherND", "GlobalMaxPool", "Identity", "Max", "MaxPool", "Min", "Neg", "Optional",
        "OptionalGetElement", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence", "SequenceAt",
        "SequenceConstruct", "SequenceErase", "SequenceInsert", "Slice", "SpaceToDepth", "Split", "SplitToSequence",
        "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where",
    }
)  # fmt: skip
"""Operators whose results are elements of their operands, up to sign: exact when those are rounded."""

_PICKS = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that take few of many elements: of a constant table, what they pick is rounded, not the table."""

_PAIRS = {
    Precision.FP16: 6,
    Precision.BF16: 13,
    Precision.FP8E4M3: 19,
    Precision.FP8E5M2: 19,
    Precision.INT8: 11,
}
"""Formats that can be emulated, and the opset from which their rounding can be written."""

_FP8_OVERFLOW = {
    Precision.FP8E4M3: float(np.nextafter(np.float32(464), np.float32(np.inf))),
    Precision.FP8E5M2: 61440.0,
}
"""Smallest magnitude that rounds to beyond the range, to nearest, ties to even: 448 + 32/2 and 57344 + 8192/2."""

_FLOATS = frozenset(ir.DataType(dtype.value) for dtype in DType if dtype.is_float)


def round_results(
    model: Model, precision: Precision, *, specs: Mapping[str, ValueSpec], kept: Collection[str] = ()
) -> Model:
    """Return the model with every floating-point result rounded to a format.

    Rounded are graph inputs, initializers and constants where they are used, and what every node makes, inside the
    bodies of If, Loop and Scan as well; results of operators that only move data are not rounded again. Values no
    wider than the format are left alone, and so are shape computations, Resize scales and quantizers. A value beyond
    the range of the format becomes an infinity, or NaN where the format has none (fp8e4m3). Names of values do not
    change; the unrounded result of the node that makes V is named ``exact::V``.

    Args:
        model: The model; it is not changed. `tensortriage.model.explode.Exploded.model` works as well.
        precision: fp16, bf16, fp8e4m3, fp8e5m2 or int8. For int8 each tensor gets the 8-bit grid between its own
            extremes, as ONNX's DynamicQuantizeLinear defines it.
        specs: Types of values; see `tensortriage.model.shapes.value_specs`.
        kept: Names of nodes that compute and store in the wide format, on constants that are not rounded; what they
            make is rounded where another node uses it.

    Raises:
        UsageError: For another precision (``precision-not-emulated``) or an unknown node (``node-unknown``).
        ModelError: When the type of a value is not known (``value-type-unknown``) or the opset cannot express the
            format and the model cannot be upgraded (``opset-too-old``).
    """
    if precision not in _PAIRS:
        raise UsageError(
            f"rounding to {precision.value} cannot be emulated",
            slug="precision-not-emulated",
            cure="use one of: " + ", ".join(p.value for p in _PAIRS),
        )
    upgraded = require_opset(model, _PAIRS[precision])
    lowering = decide(upgraded, specs=retyped(upgraded, specs), kept_nodes=kept)
    _Rounding(lowering, precision).apply()
    return Model.from_ir(lowering.model)


class _Rounding:
    """One edit of one model: inserts the rounding nodes, sharing those of values that several nodes use."""

    def __init__(self, lowering: Lowering, precision: Precision) -> None:
        self._lowering = lowering
        self._precision = precision
        self._names = Names(lowering.model.graph)
        self._at_use: dict[ir.Value, ir.Value] = {}
        self._body_inputs: set[ir.Value] = set()
        self._scalars: dict[str, ir.Value] = {}

    def apply(self) -> None:
        """Edit the model in place."""
        nodes = tuple(self._lowering.lowered())
        for node in nodes:
            for body in bodies(node):
                self._body_inputs.update(body.inputs)
        results = [value for node in nodes for value in node.outputs if self._rounds_result(node, value)]
        for node in nodes:
            for index, value in enumerate(node.inputs):
                if value is not None and self._rounds_operand(node, index, value):
                    node.replace_input_with(index, self._rounded_for_use(value))
            for body in bodies(node):
                self._round_body_outputs(body)
        for value in results:
            self._round_result(value)

    def _is_wide(self, value: ir.Value) -> bool:
        """Say whether a value is a float tensor with more bits than the format."""
        dtype = self._lowering.tensor(value)
        return dtype in _FLOATS and DType(dtype.value).bits > self._precision.dtype.bits

    def _rounds_result(self, node: ir.Node, value: ir.Value) -> bool:
        if not value.name or bodies(node):
            return False
        moves = is_standard(node, *MOVES_DATA) and not self._picks_constant(node)
        return self._is_wide(value) and not moves

    def _picks_constant(self, node: ir.Node) -> bool:
        return is_standard(node, *_PICKS) and node.inputs[0] is not None and _is_constant(node.inputs[0])

    def _rounds_operand(self, node: ir.Node, index: int, value: ir.Value) -> bool:
        if not self._is_wide(value) or is_exempt_operand(node, index):
            return False
        if index == 0 and self._picks_constant(node):
            return False
        return not self._is_rounded(value)

    def _is_rounded(self, value: ir.Value) -> bool:
        """Say whether a value holds rounded numbers already, by who makes it."""
        producer = value.producer()
        if producer is None:
            return value in self._body_inputs
        return producer not in self._lowering.kept

    def _rounded_for_use(self, value: ir.Value) -> ir.Value:
        """Return the rounded version of an input, a constant or the result of a kept node, made once."""
        if value not in self._at_use:
            nodes = self._nodes(value)
            nodes[-1].outputs[0].name = self._names.fresh(f"rounded::{value.name}")
            _insert(value, nodes)
            self._at_use[value] = nodes[-1].outputs[0]
        return self._at_use[value]

    def _round_body_outputs(self, body: ir.Graph) -> None:
        for index, value in enumerate(body.outputs):
            if self._is_wide(value) and not self._is_rounded(value):
                nodes = self._nodes(value)
                nodes[-1].outputs[0].name = self._names.fresh(f"rounded::{value.name}")
                body.extend(nodes)
                body.outputs[index] = nodes[-1].outputs[0]

    def _round_result(self, value: ir.Value) -> None:
        """Put the rounding nodes behind a node; what they make takes over the name and all uses."""
        users = tuple(value.uses())
        nodes = self._nodes(value)
        rounded = nodes[-1].outputs[0]
        for user, index in users:
            user.replace_input_with(index, rounded)
        graph = value.graph
        if graph is not None and value.is_graph_output():
            for index, output in enumerate(graph.outputs):
                if output is value:
                    graph.outputs[index] = rounded
        rounded.name, value.name = value.name, self._names.fresh(f"exact::{value.name}")
        _insert(value, nodes)

    def _nodes(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes that round a value to the format and bring it back to its own type."""
        wide = self._lowering.tensor(value)
        assert wide is not None
        chain = _Chain(value, wide, self._names)
        if self._precision is Precision.INT8:
            chain.cast(ir.DataType.FLOAT)
            chain.add("DynamicQuantizeLinear", outputs=3)
            chain.add("DequantizeLinear", *chain.nodes[-1].outputs[1:])
            chain.dtype = ir.DataType.FLOAT
        else:
            if self._precision in _FP8_OVERFLOW:
                self._guard(chain)
            chain.cast(ir.DataType(self._precision.dtype.value))
        chain.cast(wide)
        last = chain.last
        last.type = ir.TensorType(wide)
        last.shape = None if value.shape is None else value.shape.copy()
        return chain.nodes

    def _guard(self, chain: "_Chain") -> None:
        """Send what fp8 cannot hold to infinity before the Cast: times infinity there and times one elsewhere.

        ONNX Runtime 1.31 gets the first values beyond the range wrong with saturate=0: it returns 448 for 480 to 496
        (fp8e4m3, where the ONNX standard says NaN) and NaN for 61440 to 65536 (fp8e5m2, where it says infinity).
        """
        if chain.dtype is not ir.DataType.DOUBLE:
            chain.cast(ir.DataType.FLOAT)
        value, array_type = chain.last, chain.dtype.numpy()
        chain.add("Abs")
        chain.add("GreaterOrEqual", self._scalar("limit", _FP8_OVERFLOW[self._precision], array_type))
        chain.add("Where", self._scalar("infinity", np.inf, array_type), self._scalar("one", 1.0, array_type))
        chain.add("Mul", value)

    def _scalar(self, word: str, number: float, array_type: np.dtype) -> ir.Value:
        """Return a scalar initializer of the main graph, which bodies see as well."""
        name = f"{word}::{array_type}"
        if name not in self._scalars:
            self._scalars[name] = initializer(self._names.fresh(name), np.array(number, dtype=array_type))
            self._lowering.model.graph.register_initializer(self._scalars[name])
        return self._scalars[name]


class _Chain:
    """Nodes that follow one another from a value on, named after it."""

    def __init__(self, value: ir.Value, dtype: ir.DataType, names: Names) -> None:
        self.nodes: list[ir.Node] = []
        self.last = value
        self.dtype = dtype
        self._names = names
        self._stem = value.name

    def add(self, op_type: str, *operands: ir.Value, outputs: int = 1, **attributes: int) -> None:
        """Append a node that takes the last value and more operands."""
        name = self._names.fresh(f"{op_type.lower()}::{self._stem}")
        node = ir.node(op_type, [self.last, *operands], attributes, num_outputs=outputs, name=name)
        for index, made in enumerate(node.outputs):
            made.name = name if index == 0 else self._names.fresh(f"{name}::{index}")
        self.nodes.append(node)
        self.last = node.outputs[0]

    def cast(self, dtype: ir.DataType) -> None:
        """Append a Cast unless the last value has the type already; beyond the range of fp8 it never saturates."""
        if dtype is self.dtype:
            return
        fp8 = dtype in (ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E5M2)
        self.add("Cast", to=int(dtype), **({"saturate": 0} if fp8 else {}))
        self.dtype = dtype


def _is_constant(value: ir.Value) -> bool:
    producer = value.producer()
    return value.is_initializer() if producer is None else is_standard(producer, "Constant")


def _insert(value: ir.Value, nodes: Sequence[ir.Node]) -> None:
    """Insert nodes right behind a value: after the node that makes it, or at the start of the graph that holds it."""
    producer = value.producer()
    graph = value.graph
    assert graph is not None
    if producer is None:
        graph.insert_before(graph[0], nodes)
    else:
        graph.insert_after(producer, nodes)

"""The nodes that round one value to a number format and bring it back, and which values of a node need them.

What is decided here is the same whether a model is rounded once and for all or node by node at run time.
"""

import numpy as np
import onnx_ir as ir

from tensortriage.errors import UsageError
from tensortriage.model.ir.attributes import bodies
from tensortriage.model.mixed_precision.lowerable_nodes import Lowering, is_exempt_operand
from tensortriage.model.transforms.rewrite_helpers import Names, initializer, is_standard
from tensortriage.values.dtype import DType, Precision

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
"""Operators that pick few of many elements: of a constant table the picked ones are rounded, not the table."""

EMULATED = {
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


def opset_needed(precision: Precision) -> int:
    """Return the opset from which rounding to a format can be written.

    Raises:
        UsageError: When the format cannot be emulated (``precision-not-emulated``).
    """
    if precision not in EMULATED:
        raise UsageError(
            f"rounding to {precision.value} cannot be emulated",
            slug="precision-not-emulated",
            cure="use one of: " + ", ".join(p.value for p in EMULATED),
        )
    return EMULATED[precision]


class Rounder:
    """Makes rounding nodes for the values of one model.

    Args:
        lowering: The model and which of its nodes compute in the format.
        precision: The format.
    """

    def __init__(self, lowering: Lowering, precision: Precision) -> None:
        self.names = Names(lowering.model.graph)
        self._lowering = lowering
        self._precision = precision
        self._scalars: dict[str, ir.Value] = {}

    def is_wide(self, value: ir.Value) -> bool:
        """Return whether a value is a float tensor that the format narrows."""
        dtype = self._lowering.tensor(value)
        return dtype in _FLOATS and self._precision.narrows(DType(dtype.value))

    def rounds_result(self, node: ir.Node, value: ir.Value) -> bool:
        """Return whether a node that computes in the format rounds one of its results."""
        if not value.name or bodies(node):
            return False
        moves = is_standard(node, *MOVES_DATA) and not picks_constant(node)
        return self.is_wide(value) and not moves

    def rounds_operand(self, node: ir.Node, index: int, value: ir.Value) -> bool:
        """Return whether a node that computes in the format takes one of its operands rounded."""
        if not self.is_wide(value) or is_exempt_operand(node, index):
            return False
        return not (index == 0 and picks_constant(node))

    def nodes(self, value: ir.Value) -> list[ir.Node]:
        """Return the nodes that round a value to the format and bring it back to its own type."""
        wide = self._lowering.tensor(value)
        assert wide is not None
        chain = _Chain(value, wide, self.names)
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
        """Turn numbers beyond fp8 into infinity before the Cast: times infinity there and times one elsewhere.

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
            self._scalars[name] = initializer(self.names.fresh(name), np.array(number, dtype=array_type))
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


def picks_constant(node: ir.Node) -> bool:
    """Return whether a node picks elements of a constant."""
    return is_standard(node, *_PICKS) and node.inputs[0] is not None and is_constant(node.inputs[0])


def is_constant(value: ir.Value) -> bool:
    """Return whether a value is an initializer or the output of a Constant node."""
    producer = value.producer()
    return value.is_initializer() if producer is None else is_standard(producer, "Constant")

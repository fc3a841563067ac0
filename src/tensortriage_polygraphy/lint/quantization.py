"""Scales of quantizers and quantized operators: impossible, along a wrong axis, or for ranges that are never reached.

Source for axes: TensorRT quantizes weights per output channel only; ONNX Runtime simulates whatever it is given, which
is how a model that is right there goes wrong elsewhere (TensorRT issues 2103, 4079; Model-Optimizer issue 869).
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.model.sdk import LintSubject, Node
from tensortriage.sdk import DType, LintFinding, Severity, magnitude, percent

SLUGS: Mapping[str, str] = {
    "scale-not-positive": "A quantization scale that is zero, negative, infinite or NaN",
    "scale-shape": "A quantization scale whose shape does not fit the axis it is for",
    "scale-axis": "A weight quantized along an axis that is not its output channels",
    "scale-too-large": "A scale so large that the quantized weights use a small part of their range",
    "scale-too-small": "A scale so small that many quantized weights are cut off at the end of their range",
    "quantizer-unreached": "A quantizer whose result leads to no output, or is never dequantized",
}

LEAST_RANGE_USED = 0.25
"""Share of the integer range that a quantized weight should reach: two of eight bits below it are wasted."""

MOST_CUT_OFF = 0.01
"""Share of a weight's numbers that may lie at the ends of the range."""

_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")
_WEIGHT_AXES = {"Conv": (1, 0), "ConvTranspose": (1, 1), "MatMul": (1, -1), "Gemm": (1, 1)}
"""Operator to the position of its weight and the axis of the output channels (Gemm: unless it transposes)."""

_INTEGER_USERS = frozenset(
    {"ConvInteger", "MatMulInteger", "MatMulIntegerToFloat", "DequantizeLinear", "QGemm", "QAttention"}
)

_SCALES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"), (1, 4, 6)),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QLinearReduceMean"), (1, 3)),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), (1, 3)),
    "QLinearWhere": (2, 5, 7),
    "QGemm": (1, 4, 7),
    "QAttention": (3, 4),
    "DynamicQuantizeMatMul": (2,),
    "MatMulIntegerToFloat": (2, 3),
    "DynamicQuantizeLSTM": (8, 10),
}
"""Operators that work on quantized numbers to the positions of their scales, by the operators' schemas."""

_BLOCK_SCALES: Mapping[str, tuple[int, ...]] = {"MatMulNBits": (2,), "GatherBlockQuantized": (2,)}
"""Likewise for blocks of a weight, whose scales may be negative, since ONNX Runtime's quantizer lets the largest number
of a block be the lowest integer, and zero where a block is."""

_DOMAINS = ("", "ai.onnx", "com.microsoft")


def check(subject: LintSubject) -> Iterator[LintFinding]:
    """Yield the defects of the quantizers of a graph."""
    for node in _quantizers(subject, *_QUANTIZERS):
        if len(node.inputs) < 2:
            continue
        scale = subject.constant(node.inputs[1])
        if scale is not None:
            yield from _scale(subject, node, scale.astype(np.float64))
        yield from _weight(subject, node, scale)
        yield from _axis(subject, node)
    yield from _operators(subject)
    yield from _unreached(subject)


def _quantizers(subject: LintSubject, *op_types: str) -> Iterator[Node]:
    """Yield the nodes of given operators: of the standard, or ONNX Runtime's of these names."""
    return (node for node in subject.graph.nodes if node.op_type in op_types and node.domain in _DOMAINS)


def _operators(subject: LintSubject) -> Iterator[LintFinding]:
    """Look at the scales of operators that work on quantized numbers themselves."""
    for node in _quantizers(subject, "QLinearConcat", *_SCALES, *_BLOCK_SCALES):
        blocks = node.op_type in _BLOCK_SCALES
        places: Sequence[int] = _BLOCK_SCALES[node.op_type] if blocks else _SCALES.get(node.op_type, ())
        if node.op_type == "QLinearConcat":  # scale and zero point of the result, then three for each operand
            places = (0, *range(3, len(node.inputs), 3))
        for name in dict.fromkeys(node.inputs[place] for place in places if place < len(node.inputs)):
            scale = subject.constant(name) if name else None
            if scale is not None:
                yield from _impossible(subject, node, name, scale.astype(np.float64), blocks=blocks)


def _impossible(
    subject: LintSubject, node: Node, name: str, scale: np.ndarray, *, blocks: bool = False
) -> Iterator[LintFinding]:
    bad = ~np.isfinite(scale) if blocks else ~(np.isfinite(scale) & (scale > 0))
    if bad.any():
        what = "finite" if blocks else "positive and finite"
        yield subject.finding(
            "scale-not-positive",
            node,
            f"{int(bad.sum())} of {scale.size} scales are not {what}, e.g. {magnitude(scale[bad].ravel()[0])}",
            "quantize the weight again"
            if blocks
            else "calibrate again; a channel that is always zero needs a scale of 1",
            severity=Severity.PROBLEM,
            value=name,
        )


def _scale(subject: LintSubject, node: Node, scale: np.ndarray) -> Iterator[LintFinding]:
    yield from _impossible(subject, node, node.inputs[1], scale)
    shape = subject.shape(node.inputs[0])
    axis = _axis_of(node, shape)
    if shape is None or axis is None or node.attributes.get("block_size") or scale.ndim != 1 or scale.size == 1:
        return
    if isinstance(shape[axis], int) and shape[axis] != scale.size:
        fits = [number for number, dim in enumerate(shape) if dim == scale.size]
        hint = f"; axis {fits[0]} would fit" if fits else ""
        yield subject.finding(
            "scale-shape",
            node,
            f"{scale.size} scales for axis {axis} of {list(shape)}, which has {shape[axis]}{hint}",
            "set the attribute axis to the one that was calibrated",
            severity=Severity.PROBLEM,
            value=node.inputs[1],
        )


def _axis_of(node: Node, shape: tuple[int | str | None, ...] | None) -> int | None:
    axis = node.attributes.get("axis", 1)
    if shape is None or not isinstance(axis, int):
        return None
    axis = axis + len(shape) if axis < 0 else axis
    return axis if 0 <= axis < len(shape) else None


def _weight(subject: LintSubject, node: Node, scale: np.ndarray | None) -> Iterator[LintFinding]:
    """Look at the integers of a quantized weight: do they use their range, are they cut off."""
    if node.op_type != "DequantizeLinear":
        return
    spec = subject.graph.constants.get(node.inputs[0])
    array = subject.constant(node.inputs[0])
    if spec is None or array is None or spec.dtype not in (DType.INT8, DType.UINT8) or array.size < 64:
        return
    low, high = (-128, 127) if spec.dtype is DType.INT8 else (0, 255)
    reached = max(
        (int(array.max()) - int(array.min())) / (high - low), abs(int(array.max())) / high if low < 0 else 0.0
    )
    cut_off = _cut_off(array, None if scale is None or scale.size == 1 else _axis_of(node, array.shape), low, high)
    if reached < LEAST_RANGE_USED and scale is not None and scale.size == 1:
        yield subject.finding(
            "scale-too-large",
            node,
            f"the weights reach {percent(reached)} of the range of {spec.dtype.label}",
            "calibrate again: the scale of a weight is its largest magnitude over 127",
            value=node.inputs[1],
        )
    if cut_off > MOST_CUT_OFF:
        yield subject.finding(
            "scale-too-small",
            node,
            f"{percent(cut_off)} of the weights lie at the ends of the range of {spec.dtype.label}",
            "calibrate again with the largest magnitude, or clip less",
            value=node.inputs[1],
        )


def _cut_off(array: np.ndarray, axis: int | None, low: int, high: int) -> float:
    """Return the share of integers at the ends of a range, without the numbers that define the range.

    Of each group with a scale of its own one number at either end may be, and all where they are the same.
    """
    groups = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    ends = [np.maximum((groups == end).sum(axis=1) - 1, 0) for end in (low, high)]
    varied = groups.min(axis=1) != groups.max(axis=1)
    return float((ends[0] + ends[1])[varied].sum()) / array.size


def _axis(subject: LintSubject, node: Node) -> Iterator[LintFinding]:
    """Compare the axis of a dequantized weight with the output channels of its users."""
    scale_shape, shape = subject.shape(node.inputs[1]), subject.shape(node.inputs[0])
    axis = _axis_of(node, shape)
    per_axis = scale_shape is not None and len(scale_shape) == 1 and scale_shape[0] != 1
    if node.op_type != "DequantizeLinear" or not per_axis or shape is None or axis is None:
        return
    if node.attributes.get("block_size"):
        return
    for user in subject.graph.consumers(node.outputs[0]):
        position, wanted = _WEIGHT_AXES.get(user.op_type, (-1, 0)) if not user.domain else (-1, 0)
        if position < 0 or position >= len(user.inputs) or user.inputs[position] != node.outputs[0]:
            continue
        if user.op_type == "Gemm" and user.attributes.get("transB"):
            wanted = 0
        wanted = wanted + len(shape) if wanted < 0 else wanted
        if axis != wanted:
            yield subject.finding(
                "scale-axis",
                node,
                f"the weight of {user.op_type} '{user.name}' is quantized along axis {axis}, its output channels are "
                f"axis {wanted}: integer kernels cannot apply such scales, so engines refuse or dequantize first",
                f"quantize the weight along axis {wanted}",
                value=node.inputs[1],
            )


def _unreached(subject: LintSubject) -> Iterator[LintFinding]:
    for node in _quantizers(subject, "QuantizeLinear", "DynamicQuantizeLinear"):
        users = subject.graph.consumers(node.outputs[0])
        if not users or node.op_type == "DynamicQuantizeLinear" or subject.is_output(node.outputs[0]):
            continue
        reached = {user.op_type for user in subject.graph.descendants([node.outputs[0]])}
        if not any(op in _INTEGER_USERS or op.startswith("QLinear") or op in ("If", "Loop", "Scan") for op in reached):
            yield subject.finding(
                "quantizer-unreached",
                node,
                "its result is never dequantized: no integer kernel and no DequantizeLinear follows",
                "remove it, or dequantize behind it",
            )
    for node in _quantizers(subject, *_QUANTIZERS):
        if not any(subject.graph.consumers(value) or subject.is_output(value) for value in node.outputs if value):
            yield subject.finding(
                "quantizer-unreached",
                node,
                "nothing uses its result",
                "remove it, or connect it: the operation that it was calibrated for stays in floating point",
            )

"""Differences of quantizers: other readings of their scales."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from tensortriage.diagnose.sdk import enumeration
from tensortriage.model.sdk import array_of
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_WORDS = (
    "its pair cut real numbers to whole ones, not to steps of its scale (OpenVINO does so with int8 numbers that pass "
    "a Concat into a Conv, on processors without AMX, and not with uint8 ones)"
)
_CURE = "leave the file as it is; to be right there, quantize activations to uint8 (activation_type=QUInt8)"
PAIR = ("QuantizeLinear", "DequantizeLinear")
_INT8 = np.array([-128.0, 127.0])


def _interval_in_whole_numbers(site: MeantNode) -> Iterator[Meaning]:
    """Yield both nodes of an int8 pair whose interval of real numbers is read as one of integers.

    So does OpenVINO 2026.4.1 where it moves signed numbers to uint8 as they pass a Concat into a Conv, on processors
    without AMX: within 3e-7 of this for scales of 0.02 to 0.4 (bench/RESULTS.md, Processors without VNNI).
    """
    scale, zero, begins = site.constant(1), site.constant(2), site.op_type == "QuantizeLinear"
    pair = site.constant(0) is None and (begins or site.made_by("QuantizeLinear") is not None)
    if not pair or scale is None or zero is None or zero.dtype != np.int8 or scale.size != 1 or zero.size != 1:
        return
    low, high = (float(end) for end in (_INT8 - float(zero.reshape(-1)[0])) * float(scale.reshape(-1)[0]))
    first, last = (float(end) for end in np.rint([low, high]))
    if not _INT8[0] <= first < last <= _INT8[1]:
        return
    if not begins:
        operands = {1: np.ones_like(scale), 2: np.zeros_like(zero)}
        yield Meaning(_WORDS, operands=operands, cure=_CURE, group=_WORDS)
        return
    slope = (last - first) / (high - low)
    lines = [f"{name} = Constant<value_float={value!r}>()" for name, value in
             (("a", low), ("b", high), ("k", slope), ("o", first - low * slope))]  # fmt: skip
    lines += ["c = Clip(x, a, b)", "m = Mul(c, k)", "r = Add(m, o)", "w = Round(r)", "q = Cast<to=3>(w)"]
    yield Meaning(_WORDS, body=f"(x, s, z) => (q) {{ {' '.join(lines)} }}", cure=_CURE, group=_WORDS)


def _of_a_neighbour(site: MeantNode) -> Iterator[Meaning]:
    """Yield scale and zero point of a quantizer next to a node: of an operand of the same op, of its result.

    So do kernels that compute with the integers of several tensors as if all had one scale (Maximum, Concat, Add of
    TensorFlow Lite's kind).
    """
    scale, zero = site.constant(1), site.constant(2)
    told = set[tuple[float, ...]]()
    for node in _next_to(site.node) if scale is not None else ():
        theirs = [array_of(value) for value in node.inputs[1:3]]
        mine = [each for each in (scale, zero) if each is not None]
        if not _comparable(mine, theirs):
            continue
        numbers, own = (tuple(float(each.item()) for each in pair if each is not None) for pair in (theirs, mine))
        if numbers == own or numbers in told:
            continue
        told.add(numbers)
        operands = {at: other.reshape(each.shape) for at, (other, each) in enumerate(zip(theirs, mine, strict=True), 1)
                    if other is not None}  # fmt: skip
        point = f" and zero point {own[1]:g}" if len(own) > 1 else ""
        yield Meaning(
            f"scale {own[0]:.4g}{point} were those of {node.op_type} '{node.name}' "
            f"({', '.join(f'{each:.4g}' for each in numbers)}): integers of two scales taken for those of one",
            operands=operands,
            cure="give the tensors that meet there one scale and zero point, or keep that op in float",
        )


def _comparable(mine: Sequence[np.ndarray], theirs: Sequence[np.ndarray | None]) -> bool:
    """Return whether two quantizers have one number each of the same types."""
    return len(mine) == len(theirs) and all(
        other is not None and own.size == other.size == 1 and own.dtype == other.dtype
        for own, other in zip(mine, theirs, strict=True)
    )


def _next_to(node: ir.Node) -> Iterator[ir.Node]:
    """Yield other quantizers of the op that takes a node's result or makes its operand: of its operands and results."""
    ops = [use.node for use in node.outputs[0].uses()]
    maker = None if node.inputs[0] is None else node.inputs[0].producer()
    for op in [*ops, *([] if maker is None else [maker])]:
        around = [value.producer() for value in op.inputs if value is not None]
        around += [use.node for value in op.outputs for use in value.uses()]
        for other in (op, *around):
            if other is not None and other is not node and other.op_type in PAIR:
                yield other


def _zero_points(site: MeantNode) -> Iterator[Meaning]:
    """Yield zero points of 0, each and all of them: an engine that knows symmetric quantization alone.

    Those of a pair are measured (`grids`).
    """
    if site.op_type in PAIR:
        return
    places = [index for index in range(len(site.node.inputs)) if "zero_point" in site.input_name(index)]
    zeros = {index: zero for index in places if (zero := _nothing(site, index)) is not None}
    for chosen in ([*zeros], *([each] for each in zeros if len(zeros) > 1)):
        if chosen:
            names = enumeration([site.input_name(index) for index in chosen])
            yield Meaning(
                f"its zero point{'s' * (len(chosen) > 1)} ({names}) were 0",
                operands={index: zeros[index] for index in chosen},
                cure="quantize symmetrically (int8, zero points of 0), which needs none",
            )


def _nothing(site: MeantNode, index: int) -> np.ndarray | None:
    """Return zeros in the place of an operand; None where it is 0 as it stands, or of an unknown type or shape."""
    value, given, shape = site.node.inputs[index], site.constant(index), site.shape(index)
    dtype = None if value is None else site.dtype(value)
    if dtype is None or shape is None or (given is not None and not given.any()):
        return None
    return np.zeros(shape, dtype)


_BIAS, _NBITS = 8, 3
"""Index of QLinearConv's bias, and of the zero points of MatMulNBits, two in a byte."""
_INT32 = np.iinfo(np.int32)


def _units_of_a_bias(site: MeantNode) -> Iterator[Meaning]:
    """Yield a bias whose integers count another unit than the product of the operand's and the weight's scale."""
    bias, x, w, y = (site.constant(index) for index in (_BIAS, 1, 4, 6))
    if bias is None or x is None or w is None or y is None or not bias.any():
        return
    right = x.astype(np.float64) * w.astype(np.float64)
    units: dict[str, np.ndarray] = {
        "its bias were added as the integers that it is stored in, not by the scale of x times that of w": np.ones(1),
        "its bias were in the scale of x alone, not times that of w": x,
        "its bias were in the scale of w alone, not times that of x": w,
        "its bias were in the scale of the result, not that of x times that of w": y,
    }
    for words, unit in units.items():
        other = np.clip(np.rint(bias * (unit / right)), _INT32.min, _INT32.max)
        if not np.array_equal(other, bias):
            cure = "dequantize it by the product of both scales"
            yield Meaning(words, operands={_BIAS: other.astype(np.int32)}, cure=cure)


def _one_off(site: MeantNode) -> Iterator[Meaning]:
    """Yield zero points of several scales, one larger and one smaller: formats of 4 bits keep them less 1 (GPTQ)."""
    index = _NBITS if site.op_type == "MatMulNBits" else 2
    given = site.constant(index)
    if (
        given is None
        or given.size < 2
        or (index == _NBITS and (given.dtype != np.uint8 or site.attribute("bits") != 4))
    ):
        return
    for by, words in ((1, "larger"), (-1, "smaller")):
        if index == _NBITS:
            low, high = (np.clip((given >> shift & 15).astype(int) + by, 0, 15) for shift in (0, 4))
            moved = (low | high << 4).astype(np.uint8)
        else:
            ends: Any = ml_dtypes.iinfo(given.dtype)  # type: ignore[no-untyped-call] # its constructor is not annotated
            moved = np.clip(given.astype(int) + by, int(ends.min), int(ends.max)).astype(given.dtype)
        yield Meaning(
            f"its zero points were one {words}",
            operands={index: moved},
            cure="store them as the format that the engine reads has them (GPTQ's is one less)",
        )


def _first_block(site: MeantNode) -> Iterator[Meaning]:
    """Yield a weight of 4 or 8 bits whose scale of a row's first block stands for all of its blocks."""
    scales, rows = site.constant(2), site.attribute("N")
    if scales is None or not rows or scales.size % rows or scales.size == rows:
        return
    blocks = scales.reshape(rows, -1)
    first = np.repeat(blocks[:, :1], blocks.shape[1], 1).reshape(scales.shape)
    yield Meaning("the scale of a row's first block stood for all of its blocks", operands={2: first})


QUANTIZERS = (
    MeaningRow((), _zero_points),
    MeaningRow(("QLinearConv",), _units_of_a_bias),
    MeaningRow((*PAIR, "MatMulNBits"), _one_off),
    MeaningRow(("MatMulNBits",), _first_block),
    MeaningRow(PAIR, _interval_in_whole_numbers),
    MeaningRow(PAIR, _of_a_neighbour),
)

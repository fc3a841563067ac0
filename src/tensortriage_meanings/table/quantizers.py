"""Differences of quantizers: other readings of their scales."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

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


QUANTIZERS = (
    MeaningRow(PAIR, _interval_in_whole_numbers),
    MeaningRow(PAIR, _of_a_neighbour),
)

"""Differences of quantizers: other readings of their scales."""

from collections.abc import Iterator

import numpy as np

from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode

_WORDS = (
    "its pair cut real numbers to whole ones, not to steps of its scale (OpenVINO does so with int8 numbers that pass "
    "a Concat into a Conv, on processors without AMX, and not with uint8 ones)"
)
_CURE = "leave the file as it is; to be right there, quantize activations to uint8 (activation_type=QUInt8)"
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
        yield Meaning(_WORDS, operands={1: np.ones_like(scale), 2: np.zeros_like(zero)}, cure=_CURE)
        return
    slope = (last - first) / (high - low)
    lines = [f"{name} = Constant<value_float={value!r}>()" for name, value in
             (("a", low), ("b", high), ("k", slope), ("o", first - low * slope))]  # fmt: skip
    lines += ["c = Clip(x, a, b)", "m = Mul(c, k)", "r = Add(m, o)", "w = Round(r)", "q = Cast<to=3>(w)"]
    yield Meaning(_WORDS, body=f"(x, s, z) => (q) {{ {' '.join(lines)} }}", cure=_CURE)


QUANTIZERS = (MeaningRow(("QuantizeLinear", "DequantizeLinear"), _interval_in_whole_numbers, together=True),)

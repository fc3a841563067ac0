"""Differences at the ends of a type: numbers that it does not hold, NaN, and what a conversion cuts off."""

from collections.abc import Iterator

import numpy as np

from tensortriage_meanings.calls import call, formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.bodies import body

_PASSING = ("Max", "Min", "Relu", "Clip", "ReduceMax", "ReduceMin", "MaxPool", "Sign", "LeakyRelu")
"""Operators that kernels write by comparisons, and that pass NaN on by ONNX."""
_LEAST = -3.0e38
"""Near the smallest float32: what a maximum begins with."""
_CURE = "keep the numbers within the type's range (Clip before it), or use a wider type"


def _to_bytes(site: MeantNode) -> bool:
    return site.kind() == "f" and site.dtype(site.node.outputs[0]) in (np.uint8, np.int8)


def _to_wide(site: MeantNode) -> bool:
    return site.kind() == "f" and site.dtype(site.node.outputs[0]) == np.int64


def _with_zero_point(site: MeantNode) -> bool:
    return len(site.node.inputs) > 2 and site.dtype(site.node.outputs[0]) in (np.uint8, np.int8)


def _signed(site: MeantNode) -> bool:
    return site.dtype(site.node.outputs[0]) == np.int8


def _nan(site: MeantNode) -> Iterator[Meaning]:
    """Yield an operator that passes NaN on, as if one among its operands were a number: ``a > b ? a : b`` is no NaN."""
    floats = [index for index in range(len(site.node.inputs)) if site.kind(index) == "f"]
    for words, value in (("0", 0.0), ("the smallest number", _LEAST), ("the largest number", -_LEAST)):
        steps = "".join(f"n{i} = IsNaN(i{i}) k{i} = CastLike(v, i{i}) w{i} = Where(n{i}, k{i}, i{i}) " for i in floats)
        yield Meaning(
            f"a NaN counted as {words}, where ONNX's {site.op_type} passes it on",
            body=f"{formal(site)} => (y) {{ v = Constant<value_float={value!r}>() {steps}"
            f"y = {call(site, {index: f'w{index}' for index in floats})} }}",
            cure="keep NaN out of its inputs, or replace it before (IsNaN and Where)",
        )


def _rounded_otherwise(site: MeantNode) -> Iterator[Meaning]:
    """Yield a quantizer of one scale that rounds otherwise than to the even neighbour."""
    scale = site.shape(1)
    if scale is None or np.prod(scale) != 1:
        return
    for words, steps in {
        "ties were rounded away from zero": "a = Abs(q) b = Add(a, h) f = Floor(b) g = Sign(q) w = Mul(f, g)",
        "ties were rounded up": "b = Add(q, h) w = Floor(b)",
        "numbers were cut off toward zero": "a = Abs(q) f = Floor(a) g = Sign(q) w = Mul(f, g)",
        "numbers were rounded down": "w = Floor(q)",
    }.items():
        yield Meaning(
            f"{words}, not to the nearest, ties to the even neighbour",
            body=f"{formal(site)} => (y) {{ q = Div(i0, i1) h0 = Constant<value_float=0.5>() "
            f"h = CastLike(h0, q) {steps} m = Mul(w, i1) y = {call(site, {0: 'm'})} }}",
            cure="add half a step before it, or let the file's quantizer be that of the device",
        )


def _to_bool(site: MeantNode) -> bool:
    return site.kind() == "f" and site.dtype(site.node.outputs[0]) == np.bool_


ENDS: tuple[MeaningRow, ...] = (
    body(
        "QuantizeLinear",
        "values beyond the type's range wrapped around (256 became 0), where ONNX's saturates",
        "(x, s, z) => (y) { d = Div(x, s) r = Round(d) f = CastLike(z, r) m = Add(r, f) w = Cast<to=7>(m) "
        "y = Cast<to=$type>(w) }",
        _CURE,
        when=_with_zero_point,
    ),
    body(
        "QuantizeLinear",
        "int8 ended at -127, not at -128 as ONNX's does",
        "(x, s, z) => (y) { q = QuantizeLinear(x, s, z) w = Cast<to=6>(q) l0 = Constant<value_int=-127>() "
        "l = CastLike(l0, w) m = Max(w, l) y = Cast<to=3>(m) }",
        "let quantizers of the file end at -127 as well (a narrow range)",
        when=lambda site: _with_zero_point(site) and _signed(site),
    ),
    body(
        "Cast",
        "values beyond the type's range wrapped around (256 became 0)",
        "(x) => (y) { w = Cast<to=7>(x) y = Cast<to=$to>(w) }",
        _CURE,
        when=_to_bytes,
    ),
    body(
        "Cast",
        "values beyond the type's range became its largest or smallest number (it saturated)",
        "(x) => (y) { l0 = Constant<value_float=-128.0>() "
        "h0 = Constant<value_float=127.0>() l = CastLike(l0, x) h = CastLike(h0, x) a = Max(x, l) b = Min(a, h) "
        "y = Cast<to=$to>(b) }",
        _CURE,
        when=lambda site: _to_bytes(site) and _signed(site),
    ),
    body(
        "Cast",
        "values beyond the type's range became its largest or smallest number (it saturated)",
        "(x) => (y) { l0 = Constant<value_float=0.0>() h0 = Constant<value_float=255.0>() l = CastLike(l0, x) "
        "h = CastLike(h0, x) a = Max(x, l) b = Min(a, h) y = Cast<to=$to>(b) }",
        _CURE,
        when=lambda site: _to_bytes(site) and not _signed(site),
    ),
    body(
        "Cast",
        "numbers beyond 32 bits (int32) became -2147483648, as a cast to int32 makes them on x86",
        "(x) => (y) { l0 = Constant<value_float=-2147483648.0>() l = CastLike(l0, x) h = Neg(l) a = Less(x, l) "
        "b = Less(x, h) c = Not(b) d = Or(a, c) e = Where(d, l, x) y = Cast<to=$to>(e) }",
        _CURE,
        when=_to_wide,
    ),
    body(
        "Cast",
        "numbers ended at the ends of 32 bits (int32)",
        "(x) => (y) { l0 = Constant<value_float=-2147483648.0>() l = CastLike(l0, x) h0 = "
        "Constant<value_float=2147483520.0>() h = CastLike(h0, x) o0 = Constant<value_float=2147483648.0>() "
        "o = CastLike(o0, x) a = Max(x, l) b = Min(a, h) w = Cast<to=$to>(b) g = Less(x, o) n = Not(g) "
        "k = Constant<value_int=2147483647>() y = Where(n, k, w) }",
        _CURE,
        when=_to_wide,
    ),
    body(
        "Cast",
        "fractions were cut off first, so that numbers between -1 and 1 are false, where ONNX's are true unless 0",
        "(x) => (y) { i = Cast<to=7>(x) y = Cast<to=9>(i) }",
        "compare with 0 (Equal and Not) instead of a Cast to bool",
        when=_to_bool,
    ),
    body(
        "Clip",
        "where min is greater than max all became min, not max as ONNX's Clip gives",
        "(x, a, b) => (y) { m = Min(x, b) y = Max(m, a) }",
        "keep min below max",
        when=lambda site: len(site.node.inputs) == 3 and None not in site.node.inputs,
        since=13,
    ),
    MeaningRow(("QuantizeLinear",), _rounded_otherwise, since=13),
    MeaningRow(_PASSING, _nan, since=13),
)
"""The ends of types, and NaN."""

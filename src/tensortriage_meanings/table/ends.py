"""Differences at the ends of a type: the conversion of numbers that it does not hold."""

import numpy as np

from tensortriage_meanings.site import MeaningRow, MeantNode
from tensortriage_meanings.table.bodies import body

_CURE = "keep the numbers within the type's range (Clip before it), or use a wider type"


def _to_bytes(site: MeantNode) -> bool:
    return site.kind() == "f" and site.dtype(site.node.outputs[0]) in (np.uint8, np.int8)


def _to_wide(site: MeantNode) -> bool:
    return site.kind() == "f" and site.dtype(site.node.outputs[0]) == np.int64


def _with_zero_point(site: MeantNode) -> bool:
    return len(site.node.inputs) > 2 and site.dtype(site.node.outputs[0]) in (np.uint8, np.int8)


def _signed(site: MeantNode) -> bool:
    return site.dtype(site.node.outputs[0]) == np.int8


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
)

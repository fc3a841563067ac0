"""Differences that only other nodes can express: each is written as the body of a function, in ONNX's text syntax.

In a body ``$name`` is an attribute of the node, and ``$type`` the type of its result. Constants take the type of an
operand (CastLike), so that one body serves every type.
"""

from collections.abc import Callable, Iterator

import numpy as np
import onnx

from tensortriage.model.sdk import array_of
from tensortriage_meanings.calls import formal
from tensortriage_meanings.site import Meaning, MeaningRow, MeantNode
from tensortriage_meanings.table.integers import IN_FLOAT32, IN_RANGE, INTEGERS
from tensortriage_meanings.variances import unbiased

Condition = Callable[[MeantNode], bool]


def _always(_: MeantNode) -> bool:
    return True


def _whole(site: MeantNode) -> bool:
    return site.kind() == "i"


def _wide(site: MeantNode) -> bool:
    value = site.node.inputs[0]
    return value is not None and site.dtype(value) == np.int64


def _floating(site: MeantNode) -> bool:
    return site.kind() == "f"


def _to_whole(site: MeantNode) -> bool:
    made = site.dtype(site.node.outputs[0])
    return made is not None and made.kind in "iu" and site.kind() == "f"


def body(ops: str, words: str, text: str, cure: str = "", *, when: Condition = _always, since: int = 0) -> MeaningRow:
    """Return a row of one other body.

    Args:
        ops: The operators, with spaces between.
        words: As of `Meaning`.
        text: As ``body`` of `Meaning`, with ``$`` before names of the node.
        cure: As of `Meaning`.
        when: Whether a node is one that the row is about.
        since: As of `Meaning`.
    """

    def ways(site: MeantNode) -> Iterator[Meaning]:
        if when(site):
            yield Meaning(words, body=_filled(text, site), since=since, cure=cure)

    return MeaningRow(tuple(ops.split()), ways)


def _filled(text: str, site: MeantNode) -> str:
    """Return a body with attributes of the node, and the type of its result, in their places."""
    for name in ("axis", "to", "fmod"):
        if f"${name}" in text:
            text = text.replace(f"${name}", str(site.attribute(name)))
    dtype = site.dtype(site.node.outputs[0])
    return text.replace("$type", str(7 if dtype is None else onnx.helper.np_dtype_to_tensor_dtype(dtype)))


def _flattened(site: MeantNode) -> Iterator[Meaning]:
    """Yield the Softmax of before opset 13 where it is a later one, and the later one where it is that of before."""
    axis, rank = site.attribute("axis"), site.rank()
    if rank is None or axis is None:
        return
    axis %= rank
    op, last = site.op_type, rank - 1
    upgrade = "raise the opset with onnx.version_converter, not by its number alone"
    if site.opset >= 13 and axis < last:
        yield Meaning(
            f"all axes from axis {axis} on were one, as before opset 13, not axis {axis} alone",
            body=f"(x) => (y) {{ s = Shape(x) f = Flatten<axis={axis}>(x) r = {op}<axis=1>(f) y = Reshape(r, s) }}",
            cure=upgrade,
        )
    elif site.opset < 13 and axis < last:
        perm = [*(each for each in range(rank) if each != axis), axis]
        back = np.argsort(perm).tolist()
        yield Meaning(
            f"it ran along axis {axis} alone, as from opset 13 on, not along all axes from axis {axis} on flattened "
            "into one",
            body=f"(x) => (y) {{ t = Transpose<perm={perm}>(x) r = {op}<axis={last}>(t) "
            f"y = Transpose<perm={back}>(r) }}",
            cure=upgrade,
        )


def _by_batch(site: MeantNode) -> Iterator[Meaning]:
    """Yield a normalization by the statistics of the whole batch."""
    rank, epsilon = site.rank(), site.attribute("epsilon")
    if rank is None or site.attribute("training_mode") or len(site.node.outputs) > 1:
        return
    stored = site.op_type == "BatchNormalization"
    axes = [0, *range(2, rank)]
    column = [1, -1, *[1] * (rank - 2)]
    yield Meaning(
        "it took mean and variance of its own batch, "
        + ("as in training, not those that are stored" if stored else "not of each sample"),
        body=f"{formal(site)} => (y) {{ a = Constant<value_ints={axes}>() c = Constant<value_ints={column}>() "
        "mean = ReduceMean(i0, a) d = Sub(i0, mean) q = Mul(d, d) var = ReduceMean(q, a) "
        f"e0 = Constant<value_float={epsilon}>() e = CastLike(e0, i0) w = Add(var, e) s = Sqrt(w) n = Div(d, s) "
        "gg = Reshape(i1, c) bb = Reshape(i2, c) r = Mul(n, gg) y = Add(r, bb) }",
        since=18,
        cure="put the network into evaluation mode (model.eval()) before it is run or exported" if stored else "",
    )


def _tanh_of_gelu(site: MeantNode) -> bool:
    """Whether a Tanh is that of a GELU's approximation: 1 is added to it."""
    follower = site.feeds("Add")
    arrays = () if follower is None else (array_of(value) for value in follower.inputs)
    return any(array is not None and array.size == 1 and float(array.reshape(-1)[0]) == 1.0 for array in arrays)


def _erf_of_gelu(site: MeantNode) -> bool:
    return site.feeds("Add") is not None


ROUNDED = "write the rounding that is meant with Floor, Ceil, Round or Sign"

BODIES: tuple[MeaningRow, ...] = (
    body(
        "Div",
        "quotients of negative whole numbers were rounded down (floor), not cut off toward zero as ONNX's Div is",
        "(a, b) => (y) { q = Div(a, b) p = Mul(q, b) r = Sub(a, p) z = Sub(a, a) n = Less(r, z) m = Less(b, z) "
        "x = Xor(n, m) e = Equal(r, z) k = Not(e) w = And(x, k) d = CastLike(w, q) y = Sub(q, d) }",
        "subtract 1 from the quotient where the remainder is not 0 and its sign differs from the divisor's, "
        "or divide with rounding toward zero on both sides",
        when=_whole,
    ),
    body(
        "Mod",
        "remainders had the sign of the divisor, as Python's % has, not of the dividend as with fmod=1",
        "(a, b) => (y) { r = Mod<fmod=1>(a, b) s = Add(r, b) y = Mod<fmod=1>(s, b) }",
        "write a - Floor(a / b) * b",
        when=lambda site: _floating(site),
    ),
    *INTEGERS,
    body(
        "Mod",
        IN_FLOAT32,
        "(a, b) => (y) { f = Cast<to=1>(a) g = Cast<to=1>(b) q = Div(f, g) t = Floor(q) p = Mul(t, g) r = Sub(f, p) "
        "y = Cast<to=$type>(r) }",
        IN_RANGE,
        when=_whole,
    ),
    MeaningRow(("Softmax", "LogSoftmax", "Hardmax"), _flattened),
    body(
        "Softmax",
        "a row that is masked everywhere (all -Inf) gave 0, where Softmax by ONNX gives NaN",
        "(x) => (y) { s = Softmax<axis=$axis>(x) n = IsNaN(s) z0 = Constant<value_float=0.0>() z = CastLike(z0, x) "
        "y = Where(n, z, s) }",
        "mask with a finite number, or put 0 in the place of NaN behind the Softmax; newer exporters do",
        when=lambda site: site.opset >= 13 or site.attribute("axis") in (-1, (site.rank() or 0) - 1),
    ),
    body(
        "Softmax",
        "a row that is masked everywhere (all -Inf) were uniform, where Softmax by ONNX gives NaN",
        "(x) => (y) { l0 = Constant<value_float=-65504.0>() l = CastLike(l0, x) m = Max(x, l) "
        "y = Softmax<axis=$axis>(m) }",
        "mask with a finite number on both sides",
        when=lambda site: site.opset >= 13 or site.attribute("axis") in (-1, (site.rank() or 0) - 1),
    ),
    body(
        "Round",
        "ties were rounded up (floor(x + 0.5)), not to the even neighbour",
        "(x) => (y) { h0 = Constant<value_float=0.5>() h = CastLike(h0, x) s = Add(x, h) y = Floor(s) }",
        "write Floor(x + 0.5), or round half to even on both sides",
    ),
    body(
        "Round",
        "ties were rounded away from zero, not to the even neighbour",
        "(x) => (y) { h0 = Constant<value_float=0.5>() h = CastLike(h0, x) a = Abs(x) s = Add(a, h) f = Floor(s) "
        "g = Sign(x) y = Mul(f, g) }",
        "write Sign(x) * Floor(Abs(x) + 0.5), or round half to even on both sides",
    ),
    body(
        "Cast",
        "numbers were rounded to the nearest whole one, not cut off toward zero as ONNX's Cast does",
        "(x) => (y) { r = Round(x) y = Cast<to=$to>(r) }",
        "put a Round before the Cast",
        when=_to_whole,
    ),
    body(
        "Cast",
        "numbers were rounded down (floor), not cut off toward zero as ONNX's Cast does",
        "(x) => (y) { r = Floor(x) y = Cast<to=$to>(r) }",
        "put a Floor before the Cast",
        when=_to_whole,
    ),
    body(
        "Cast",
        "numbers were rounded to the nearest whole one, ties away from zero, not cut off toward zero",
        "(x) => (y) { h0 = Constant<value_float=0.5>() h = CastLike(h0, x) a = Abs(x) s = Add(a, h) f = Floor(s) "
        "g = Sign(x) r = Mul(f, g) y = Cast<to=$to>(r) }",
        "write the rounding before the Cast",
        when=_to_whole,
    ),
    body(
        "Floor",
        "numbers were cut off toward zero, not rounded down",
        "(x) => (y) { a = Abs(x) f = Floor(a) g = Sign(x) y = Mul(f, g) }",
        ROUNDED,
    ),
    body(
        "Ceil",
        "numbers were cut off toward zero, not rounded up",
        "(x) => (y) { a = Abs(x) f = Floor(a) g = Sign(x) y = Mul(f, g) }",
        ROUNDED,
    ),
    body("Floor", "numbers were rounded to the nearest whole one, not down", "(x) => (y) { y = Round(x) }", ROUNDED),
    body(
        "Erf",
        "GELU were its tanh approximation, not the exact one with Erf",
        "(z) => (y) { r0 = Constant<value_float=1.4142135>() r = CastLike(r0, z) x = Mul(z, r) x2 = Mul(x, x) "
        "x3 = Mul(x2, x) c0 = Constant<value_float=0.044715>() c = CastLike(c0, z) k = Mul(x3, c) s = Add(x, k) "
        "t0 = Constant<value_float=0.7978845608>() t = CastLike(t0, z) u = Mul(s, t) y = Tanh(u) }",
        "take the same form of GELU on both sides (approximate)",
        when=_erf_of_gelu,
    ),
    body(
        "Erf",
        "GELU were x * Sigmoid(1.702 x), not the exact one with Erf",
        "(z) => (y) { r0 = Constant<value_float=2.4069914>() r = CastLike(r0, z) x = Mul(z, r) g = Sigmoid(x) "
        "h = Add(g, g) o0 = Constant<value_float=1.0>() o = CastLike(o0, z) y = Sub(h, o) }",
        "take the same form of GELU on both sides (approximate)",
        when=_erf_of_gelu,
    ),
    body(
        "Gelu",
        "GELU were x * Sigmoid(1.702 x), not the form that the attribute approximate selects",
        "(x) => (y) { r0 = Constant<value_float=1.702>() r = CastLike(r0, x) m = Mul(x, r) g = Sigmoid(m) "
        "y = Mul(x, g) }",
        "take the same form of GELU on both sides (approximate)",
    ),
    body(  # the cubic x + 0.044715 x^3 = u / 0.79788456 solved for x: x = 5.46067 sinh(asinh(0.6885547 u) / 3)
        "Tanh",
        "GELU were the exact one with Erf, not its tanh approximation",
        "(u) => (y) { a0 = Constant<value_float=0.68855469>() a = CastLike(a0, u) p = Mul(u, a) q = Asinh(p) "
        "t0 = Constant<value_float=0.33333333>() t = CastLike(t0, u) w = Mul(q, t) h = Sinh(w) "
        "c0 = Constant<value_float=3.8612485>() c = CastLike(c0, u) z = Mul(h, c) y = Erf(z) }",
        "take the same form of GELU on both sides (approximate)",
        when=_tanh_of_gelu,
    ),
    body(
        "HardSwish",
        "it were x * HardSigmoid(x) with alpha 0.2, not 1/6",
        "(x) => (y) { s = HardSigmoid<alpha=0.2, beta=0.5>(x) y = Mul(x, s) }",
        "write x * HardSigmoid(x) with the alpha that is meant",
    ),
    body(
        "Relu",
        "it ended at 6 (ReLU6)",
        "(x) => (y) { s0 = Constant<value_float=6.0>() s = CastLike(s0, x) r = Relu(x) y = Min(r, s) }",
        "write a Clip from 0 to 6 where ReLU6 is meant",
    ),
    body(
        "Div",
        "a division by 0 gave 0, where ONNX's gives NaN or Inf",
        "(a, b) => (y) { q = Div(a, b) z = Sub(b, b) e = Equal(b, z) o = CastLike(z, q) y = Where(e, o, q) }",
        "keep the divisor away from 0",
        when=_floating,
    ),
    MeaningRow(("BatchNormalization", "InstanceNormalization"), _by_batch),
    MeaningRow(("ReduceMean", "Div", "Mul", "Sub"), unbiased),
)

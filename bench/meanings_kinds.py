"""Kinds of differences over the operators: attributes and inputs that are not read, operands elsewhere, other ones.

Each pair is a model and the same one with another node. Those of `built` were at hand when rows for such kinds were
made; those of `unbuilt` were written down before and not looked at while they were made. `unrelated` are pairs that no
operator means.
"""

from collections.abc import Sequence

import numpy as np
from meanings_cases import MeaningCase, T, X, picture, tokens
from reports import normal

Pair = tuple[str, str, str, dict[str, np.ndarray], int, Sequence[str]]

LAYER = """k = Transpose<perm=[1,0,2]>(c)
        h, last = {op}<hidden_size=16{more}>(k, gw, gr, gb{inputs})
        j = Squeeze(h, one)
        d = Transpose<perm=[1,0,2]>(j)"""
PEEP = """k = Transpose<perm=[1,0,2]>(c)
        h, last, cell = LSTM<hidden_size=16>(k, gw, gr, gb{inputs})
        j = Squeeze(h, one)
        d = Transpose<perm=[1,0,2]>(j)"""
HOT = """i = ArgMax<axis=-1, keepdims=0>(c)
        o = OneHot(i, depth, {values})
        d = Add(o, c)"""
ATTENTION = "d, pk, pv, qk = Attention<q_num_heads=4, kv_num_heads=4{more}>(c, c, c{mask})"
SLICES = "p = Slice(c, zero, six, two)\n p1 = Tanh(p)\n q = Softplus(p)\n "
EDGES = {"zero": np.array([0]), "six": np.array([6]), "two": np.array([2])}
HALVES = "h2 = Mul(c, two)\n h1 = Round(h2)\n h = Mul(h1, half)\n "
GROUPED = """k1 = Slice(c, zero, eight, axis)
        k2 = Tanh(k1)
        v2 = Softplus(k1)
        kt = Concat<axis=2>(k2, k2)
        vt = Concat<axis=2>(v2, v2)
        d, pk, pv, qk = Attention<q_num_heads=4, kv_num_heads={n}>(c, {k}, {v})"""
ROUND_3 = "r3 = Mul(c, three)\n r = Round(r3)\n"
SELECTED = ROUND_3 + "z = {op}(r, one)\n m = Sub(c, one)\n d = Where(z, c, m)"
UNEVEN = "e = Exp(c)\n ct = Transpose<perm=[0,2,1]>(e)\n s0 = MatMul(c, ct)\n s = Sin(s0)\n "
SQUARE = "ct = Transpose<perm=[0,2,1]>(c)\n s = MatMul(c, ct)\n "


def _one(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _layer(gates: int) -> dict[str, np.ndarray]:
    size = 16 * gates
    return {
        "gw": normal(3, 1, size, 16, scale=0.5), "gr": normal(4, 1, size, 16, scale=0.5), "gb": normal(5, 1, 2 * size),
        "one": np.array([1]),
    }  # fmt: skip


def _other(op: str, other: str) -> tuple[str, str]:
    return SELECTED.format(op=op), SELECTED.format(op=other)


CHANNELS = {"s": np.exp2(normal(3, 16)) * np.float32(0.02), "z": np.zeros(16, np.int8)}
CHANNELS |= {"s1": np.full(16, CHANNELS["s"][0]), "z1": CHANNELS["z"]}
QUANTIZED = "q = QuantizeLinear<axis=2>(c, s, z)\n d = DequantizeLinear<axis=2>(q, {s}, z)"
SHIFTED = {"s": _one(0.05), "z": np.array(37, np.uint8), "z0": np.array(0, np.uint8)}
U = {"u": normal(7, 8, 8, 3, 3, scale=0.3), "b2": normal(8, 8)}
NORMED = {"g": 1 + normal(3, 16, scale=0.4), "s": normal(4, 16)}
BOUNDS = {"lo": _one(-0.7), "hi": _one(0.9)}
CHOSEN = {"one": _one(1), "three": _one(3)}

BUILT_TOKENS: Sequence[Pair] = (
    ("axes of ReduceL1 not read", "k = ReduceL1<axes=[1]>(c)\n d = Div(c, k)", "k = ReduceL1(c)\n d = Div(c, k)", {},
     13, ("ReduceL1", "axes")),
    ("operands of Sub exchanged", "k = Exp(c)\n e = Sub(c, k)\n d = Sigmoid(e)",
     "k = Exp(c)\n e = Sub(k, c)\n d = Sigmoid(e)", {}, 17, ("Sub", "exchanged")),
    ("upper bound of Clip left out", "d = Clip(c, lo, hi)", "d = Clip(c, lo)", BOUNDS, 17, ("Clip", "max.* left out")),
    ("scale of the first channel for all", QUANTIZED.format(s="s"), QUANTIZED.format(s="s1"), CHANNELS, 17,
     ("DequantizeLinear", "first")),
    ("Less that includes equal ones", *_other("Less", "LessOrEqual"), CHOSEN, 17, ("Less", "LessOrEqual")),
    ("branches of Where exchanged", SELECTED.format(op="Less"), SELECTED.format(op="Less").replace("c, m)", "m, c)"),
     CHOSEN, 17, ("Where", "exchanged")),
    ("alpha of Elu 0", "d = Elu<alpha=1.0>(c)", "d = Elu<alpha=0.0>(c)", {}, 17, ("Elu", "alpha", "0")),
    ("k of Trilu left out", SQUARE + "t = Trilu(s, k)\n d = MatMul(t, c)", SQUARE + "t = Trilu(s)\n d = MatMul(t, c)",
     {"k": np.array(-2)}, 17, ("Trilu", "k.* left out")),
    ("CumSum along another axis", "d = CumSum(c, two)", "d = CumSum(c, one)",
     {"one": np.array(1), "two": np.array(2)}, 17, ("CumSum", "axis")),
    ("exponent of Pow cut", "a = Abs(c)\n d = Pow(a, e)", "a = Abs(c)\n d = Pow(a, e1)",
     {"e": _one(1.5), "e1": _one(1)}, 17, ("Pow", "whole")),
    ("bool by way of an integer", "b = Cast<to=9>(c)\n d = Where(b, c, one)",
     "i = Cast<to=6>(c)\n b = Cast<to=9>(i)\n d = Where(b, c, one)", CHOSEN, 17, ("Cast", "truncated|cut")),
    ("first operand transposed", UNEVEN + "t = Tanh(s)\n p = MatMul(s, t)\n d = MatMul(p, c)",
     UNEVEN + "t = Tanh(s)\n v2 = Transpose<perm=[0,2,1]>(s)\n p = MatMul(v2, t)\n d = MatMul(p, c)", {}, 17,
     ("MatMul", "transposed")),
    ("activations of a GRU not read", LAYER.format(op="GRU", inputs="", more=', activations=["HardSigmoid","Relu"]'),
     LAYER.format(op="GRU", inputs="", more=""), _layer(3), 17, ("GRU", "activations")),
    ("values of OneHot exchanged", HOT.format(values="values"), HOT.format(values="other"),
     {"depth": np.array(16), "values": np.array([0, 1], np.float32), "other": np.array([1, 0], np.float32)}, 17,
     ("OneHot", "values|revers|exchanged")),
    ("rows repeated in turn", "a = Tile(c, reps)\n d = Slice(a, zero, six, one)",
     "a = Gather<axis=1>(c, turns)\n d = Slice(a, zero, six, one)",
     {"reps": np.array([1, 2, 1]), "turns": np.arange(12) // 2, "zero": np.array([0]), "six": np.array([6]),
      "one": np.array([1])}, 17, ("Tile", "each")),
    ("negative indices of GatherElements as 0", "d = GatherElements<axis=2>(c, i)", "d = GatherElements<axis=2>(c, j)",
     {"i": np.arange(192).reshape(2, 6, 16) % 21 - 5, "j": np.maximum(np.arange(192).reshape(2, 6, 16) % 21 - 5, 0)},
     17, ("GatherElements", "negative")),
    ("NaN of Max dropped", "n = Sqrt(c)\n m = Max(n, one)\n b = IsNaN(m)\n d = Where(b, c, m)",
     "n = Sqrt(c)\n b0 = IsNaN(n)\n n0 = Where(b0, one, n)\n d = Max(n0, one)", CHOSEN, 17, ("Max", "NaN")),
    ("NaN of Relu as 0", "n = Log(c)\n m = Relu(n)\n b = IsNaN(m)\n d = Where(b, c, m)",
     "n = Log(c)\n b0 = IsNaN(n)\n z = Sub(one, one)\n n0 = Where(b0, z, n)\n d = Relu(n0)", CHOSEN, 17,
     ("Relu", "NaN")),
)  # fmt: skip
BUILT_PICTURES: Sequence[Pair] = (
    ("slope of PRelu at another axis", "d = PRelu(c, slope)", "d = PRelu(c, column)",
     {"slope": normal(3, 12), "column": normal(3, 12, 1)}, 17, ("PRelu", "axis")),
    ("bias of a Conv left out", "d = Conv<kernel_shape=[3,3]>(c, u, b2)", "d = Conv<kernel_shape=[3,3]>(c, u)", U, 17,
     ("Conv_d", "B.* left out")),
    ("alpha of LRN by the size", "k = Mul(c, three)\n d = LRN<size=5, alpha=0.1, beta=0.75>(k)",
     "k = Mul(c, three)\n d = LRN<size=5, alpha=0.5, beta=0.75>(k)", CHOSEN, 17, ("LRN", "alpha")),
    ("activation left out", "k = Conv<kernel_shape=[3,3]>(c, u, b2)\n t = Tanh(k)\n d = Conv<kernel_shape=[3,3]>(t, u)",
     "k = Conv<kernel_shape=[3,3]>(c, u, b2)\n d = Conv<kernel_shape=[3,3]>(k, u)", U, 17, ("Tanh", "left out")),
)  # fmt: skip
UNBUILT_TOKENS: Sequence[Pair] = (
    ("other axis of ReduceLogSumExp", "k = ReduceLogSumExp(c, two)\n d = Sub(c, k)",
     "k = ReduceLogSumExp(c, one)\n d = Sub(c, k)", {"one": np.array([1]), "two": np.array([2])}, 18,
     ("ReduceLogSumExp", "axes")),
    ("alpha of Celu not read", "d = Celu<alpha=0.37>(c)", "d = Celu(c)", {}, 17, ("Celu", "alpha")),
    ("lambd of Shrink not read", "d = Shrink<lambd=0.2, bias=0.1>(c)", "d = Shrink<bias=0.1>(c)", {}, 17,
     ("Shrink", "lambd")),
    ("gamma of Selu not read", "d = Selu<gamma=1.3>(c)", "d = Selu(c)", {}, 17, ("Selu", "gamma")),
    ("beta of HardSigmoid not read", "d = HardSigmoid<alpha=0.2, beta=0.3>(c)", "d = HardSigmoid<alpha=0.2>(c)", {}, 17,
     ("HardSigmoid", "beta")),
    ("softcap not read", ATTENTION.format(more=", softcap=1.5", mask=""), ATTENTION.format(more="", mask=""), {}, 23,
     ("Attention", "softcap")),
    ("scale of attention not read", ATTENTION.format(more=", scale=0.9", mask=""), ATTENTION.format(more="", mask=""),
     {}, 23, ("Attention", "scale")),
    ("mask of attention left out", ATTENTION.format(more="", mask=", mask"), ATTENTION.format(more="", mask=""),
     {"mask": np.where(normal(8, 6, 6) > 0.6, -9.0, 0.0).astype(np.float32)}, 23,
     ("Attention", "attn_mask.* left out")),
    ("clip of an RNN not read", LAYER.format(op="RNN", inputs="", more=", clip=0.4"),
     LAYER.format(op="RNN", inputs="", more=""), _layer(1), 17, ("RNN", "clip")),
    ("peepholes left out", PEEP.format(inputs=", , , , peep"), PEEP.format(inputs=""),
     _layer(4) | {"peep": normal(8, 1, 48)}, 17, ("LSTM", "P.* left out")),
    ("bias of a LayerNormalization left out", "d = LayerNormalization(c, g, s)", "d = LayerNormalization(c, g)", NORMED,
     17, ("LayerNormalization", "B.* left out")),
    ("slice that is not reversed", "d = Slice(c, last, least, one, back)", "d = Identity(c)",
     {"last": np.array([-1]), "least": np.array([-99]), "one": np.array([1]), "back": np.array([-1])}, 17,
     ("Slice", "step|reverse|left out")),
    ("parts of a Concat exchanged", "t = Tanh(c)\n b = Concat<axis=-1>(c, t)\n d = MatMul(b, m)",
     "t = Tanh(c)\n b = Concat<axis=-1>(t, c)\n d = MatMul(b, m)", {"m": normal(8, 32, 16, scale=0.3)}, 17,
     ("Concat", "exchanged")),
    ("operands of Div exchanged", "t = Exp(c)\n e = Sigmoid(c)\n d = Div(e, t)",
     "t = Exp(c)\n e = Sigmoid(c)\n d = Div(t, e)", {}, 17, ("Div", "exchanged")),
    ("Greater that includes equal ones", *_other("GreaterOrEqual", "Greater"), CHOSEN, 17, ("Greater",)),
    ("ReduceSum for a mean", "k = ReduceMean<axes=[1]>(c)\n d = Sub(c, k)",
     "a = Constant<value_ints=[1]>()\n k = ReduceSum(c, a)\n d = Sub(c, k)", {}, 17, ("ReduceMean", "ReduceSum")),
    ("zero point left out", "q = QuantizeLinear(c, s, z)\n d = DequantizeLinear(q, s, z)",
     "q = QuantizeLinear(c, s, z)\n d = DequantizeLinear(q, s, z0)", SHIFTED, 17, ("DequantizeLinear", "zero_point")),
    ("last of three operands left out", "a = Tanh(c)\n b = Exp(a)\n d = Max(c, a, b)", "a = Tanh(c)\n d = Max(c, a)",
     {}, 17, ("Max", "left out")),
    ("scale of a Softmax left out", SQUARE + "k = Mul(s, f)\n t = Softmax(k)\n d = MatMul(t, c)",
     SQUARE + "t = Softmax(s)\n d = MatMul(t, c)", {"f": _one(0.25)}, 17, ("Mul", "left out")),
    ("largest of TopK not read", "t, i = TopK<axis=-1, largest=0, sorted=1>(c, k)\n d = Concat<axis=-1>(t, t)",
     "t, i = TopK<axis=-1, sorted=1>(c, k)\n d = Concat<axis=-1>(t, t)", {"k": np.array([8])}, 17,
     ("TopK", "largest")),
    ("equation of an Einsum transposed", SLICES + 'm = Einsum<equation="bij,bkj->bik">(p, q)\n d = MatMul(m, c)',
     SLICES + 'm = Einsum<equation="bij,bjk->bik">(p, q)\n d = MatMul(m, c)', EDGES, 17,
     ("Einsum", "transposed|equation")),
    ("lengths of ReverseSequence not read", "d = ReverseSequence<batch_axis=0, time_axis=1>(c, lens)",
     "d = ReverseSequence<batch_axis=0, time_axis=1>(c, full)",
     {"lens": np.array([3, 5]), "full": np.array([6, 6])}, 17, ("ReverseSequence", "sequence_lens|length")),
    ("halves of a Split exchanged", "p, q = Split<axis=2>(c)\n e = Exp(p)\n d = Concat<axis=2>(e, q)",
     "q, p = Split<axis=2>(c)\n e = Exp(p)\n d = Concat<axis=2>(e, q)", {}, 13, ("Split", "exchanged|order")),
    ("weight of a Gemm not transposed", "f = Reshape(c, flat)\n g = Gemm<transB=1>(f, m)\n d = Reshape(g, back)",
     "f = Reshape(c, flat)\n g = Gemm(f, m)\n d = Reshape(g, back)",
     {"flat": np.array([12, 16]), "back": np.array([2, 6, 16]), "m": normal(8, 16, 16, scale=0.3)}, 17,
     ("Gemm", "transB|transposed")),
    ("epsilon outside of the root", "d = LayerNormalization<epsilon=0.1>(c, g, s)",
     "m = ReduceMean<axes=[2]>(c)\n z = Sub(c, m)\n z2 = Mul(z, z)\n v1 = ReduceMean<axes=[2]>(z2)\n r = Sqrt(v1)\n"
     " r1 = Add(r, tenth)\n n = Div(z, r1)\n n1 = Mul(n, g)\n d = Add(n1, s)", NORMED | {"tenth": _one(0.1)}, 17,
     ("LayerNormalization", "epsilon")),
    ("ties of a quantizer away from zero", HALVES + "q = QuantizeLinear(h, one, z)\n d = DequantizeLinear(q, one, z)",
     HALVES + "a = Abs(h)\n a1 = Add(a, half)\n f = Floor(a1)\n n = Sign(h)\n d = Mul(f, n)",
     {"two": _one(2), "half": _one(0.5), "one": _one(1), "z": np.array(0, np.int8)}, 17, ("QuantizeLinear", "ties")),
    ("bounds of Clip as whole numbers", "d = Clip(c, lo, hi)", "d = Clip(c, zero, one)",
     {"lo": _one(-0.7), "hi": _one(1.6), "zero": _one(0), "one": _one(1)}, 17, ("Clip", "whole|integer")),
    ("first of the batch alone", "d = MatMul(c, m)", "p = MatMul(c, m)\n d = Mul(p, first)",
     {"m": normal(8, 16, 16, scale=0.3), "first": np.array([1, 0], np.float32).reshape(2, 1, 1)}, 17,
     ("axis 0|batch", "first|index|row|indices")),
    ("exclusive of CumSum not read", "d = CumSum<exclusive=1>(c, one)", "d = CumSum(c, one)", {"one": np.array(1)}, 17,
     ("CumSum", "exclusive")),
    ("reduction of a ScatterElements not read", 'd = ScatterElements<axis=1, reduction="max">(c, i, u2)',
     "d = ScatterElements<axis=1>(c, i, u2)",
     {"i": np.zeros((2, 1, 16), np.int64), "u2": normal(8, 2, 1, 16)}, 18, ("ScatterElements", "reduction")),
    ("negative start of a Slice as 0", "p = Slice(c, start, end, one)\n d = Concat<axis=1>(p, p)",
     "p = Slice(c, start0, end0, one)\n d = Concat<axis=1>(p, p)",
     {"start": np.array([-3]), "end": np.array([99]), "start0": np.array([0]), "end0": np.array([3]),
      "one": np.array([1])}, 17, ("Slice", "start|negative")),
    ("heads of keys in turn", GROUPED.format(n=2, k="k2", v="v2"),
     GROUPED.format(n=4, k="kt", v="vt"),
     {"zero": np.array([0]), "eight": np.array([8]), "axis": np.array([2])}, 23,
     ("Attention", "heads")),
)  # fmt: skip
UNBUILT_PICTURES: Sequence[Pair] = (
    ("scale and shift exchanged", "d = InstanceNormalization(c, g, s)", "d = InstanceNormalization(c, s, g)",
     {"g": 1 + normal(3, 8, scale=0.3), "s": normal(4, 8)}, 17, ("InstanceNormalization", "exchanged")),
    ("value of a Pad left out", "k = Pad(c, pads, three)\n d = MaxPool<kernel_shape=[3,3]>(k)",
     "k = Pad(c, pads)\n d = MaxPool<kernel_shape=[3,3]>(k)",
     {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "three": _one(3)}, 17, ("Pad", "constant_value.* left out")),
    ("p of LpPool not read", "d = LpPool<kernel_shape=[2,2], p=1>(c)", "d = LpPool<kernel_shape=[2,2]>(c)", {}, 17,
     ("LpPool", "p were")),
    ("axes of a normalization not read", "d = MeanVarianceNormalization<axes=[2,3]>(c)",
     "d = MeanVarianceNormalization(c)", {}, 17, ("MeanVarianceNormalization", "axes")),
    ("strides of height and width exchanged", "d = Conv<kernel_shape=[3,3], strides=[1,2]>(c, u)",
     "d = Conv<kernel_shape=[3,3], strides=[2,1]>(c, u)", {"u": U["u"]}, 17, ("Conv_d", "strides")),
    ("dilations not read", "d = Conv<kernel_shape=[3,3], dilations=[2,2], pads=[2,2,2,2]>(c, u)",
     "d = Conv<kernel_shape=[3,3], pads=[2,2,2,2]>(c, u)", {"u": U["u"]}, 17, ("Conv_d", "dilations")),
    ("bias along another axis", "d = Add(c, row)", "d = Add(c, column)", {"row": normal(3, 12),
     "column": normal(3, 12, 1)}, 17, ("Add", "axis")),
    ("factor of the first channel for all", "d = Mul(c, f)", "d = Mul(c, f1)",
     {"f": normal(3, 8, 1, 1), "f1": np.full((8, 1, 1), normal(3, 8, 1, 1)[0, 0, 0])}, 17, ("Mul", "first")),
    ("groups of a normalization", "d = GroupNormalization<num_groups=4>(c, g, s)",
     "d = GroupNormalization<num_groups=1>(c, g, s)", {"g": 1 + normal(3, 8, scale=0.3), "s": normal(4, 8)}, 21,
     ("GroupNormalization", "num_groups")),
    ("end of the padding not counted", "d = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(c)",
     "l = Pad(c, begin)\n d = AveragePool<kernel_shape=[3,3], pads=[0,0,1,1]>(l)",
     {"begin": np.array([0, 0, 1, 1, 0, 0, 0, 0])}, 17, ("AveragePool", "pad")),
    ("mean and variance exchanged", "d = BatchNormalization(c, g, s, m, v)", "d = BatchNormalization(c, g, s, v, m)",
     {"g": 1 + normal(3, 8, scale=0.2), "s": normal(4, 8), "m": np.abs(normal(5, 8)), "v": np.abs(normal(6, 8))}, 15,
     ("BatchNormalization", "exchanged")),
    ("statistics of the whole batch", "d = InstanceNormalization(c, g, s)",
     "m = ReduceMean<axes=[0,2,3]>(c)\n z = Sub(c, m)\n z2 = Mul(z, z)\n v1 = ReduceMean<axes=[0,2,3]>(z2)\n"
     " e = Add(v1, eps)\n rt = Sqrt(e)\n n = Div(z, rt)\n gg = Reshape(g, col)\n ss = Reshape(s, col)\n"
     " n1 = Mul(n, gg)\n d = Add(n1, ss)",
     {"g": 1 + normal(3, 8, scale=0.2), "s": normal(4, 8), "eps": _one(1e-5), "col": np.array([1, 8, 1, 1])}, 17,
     ("InstanceNormalization", "batch")),
    ("ceil_mode not read", "d = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(c)",
     "d = MaxPool<kernel_shape=[3,3], strides=[2,2]>(c)", {}, 17, ("MaxPool", "ceil_mode")),
)  # fmt: skip


def _cases(rows: Sequence[Pair], pictures: Sequence[Pair]) -> list[MeaningCase]:
    return [
        *(MeaningCase(n, tokens(a, opset=o, **w), tokens(b, opset=o, **w), T, s) for n, a, b, w, o, s in rows),
        *(MeaningCase(n, picture(a, opset=o, **w), picture(b, opset=o, **w), X, s) for n, a, b, w, o, s in pictures),
    ]


def built() -> list[MeaningCase]:
    """Return pairs that were at hand when rows of their kinds were made."""
    return _cases(BUILT_TOKENS, BUILT_PICTURES)


def unbuilt() -> list[MeaningCase]:
    """Return pairs of other operators, and of kinds that no row was made for."""
    return _cases(UNBUILT_TOKENS, UNBUILT_PICTURES)


BLOCK = "k = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, u, b2)\n t = {act}(k)\n n = InstanceNormalization(t, g, s)\n "
BLOCK += "l = PRelu(n, slope)\n d = {last}"
WEIGHTS = U | {"g": 1 + normal(3, 8, scale=0.3), "s": normal(4, 8), "slope": normal(6, 8, 1, 1)}
ROWS = "n = LayerNormalization(c, g, s)\n k = Clip(n, lo, hi)\n e = Mul(k, f)\n t = {act}(e)\n d = Sub({last}, c)"
FACTORS = NORMED | BOUNDS | {"f": 1 + normal(6, 16, scale=0.5)}


def unrelated() -> list[MeaningCase]:
    """Return pairs that agree or differ in what no operator means: nothing may be said of meanings."""
    plain, rows = (form.format(act="Tanh", last=last) for form, last in ((BLOCK, "Relu(l)"), (ROWS, "t")))
    scaled = "e5 = Mul(l, f5)\n d = Relu(e5)"
    cut = "h = Constant<value_float=0.6>()\n q = Min(l, h)\n d = Relu(q)"
    edits = {
        "another kernel": {"u": normal(77, 8, 8, 3, 3, scale=0.3)},
        "a kernel with noise": {"u": U["u"] + normal(78, 8, 8, 3, 3, scale=0.02)},
        "other biases": {"b2": normal(79, 8)},
        "a scale that is 5 % off": {"g": WEIGHTS["g"] * np.float32(1.05)},
        "slopes in another order": {"slope": WEIGHTS["slope"][[3, 0, 6, 1, 7, 2, 5, 4]]},
        "one slope off": {"slope": WEIGHTS["slope"] - np.float32(2.0) * (np.arange(8) == 5).reshape(8, 1, 1)},
    }
    others = {
        "other factors": {"f": 1 + normal(80, 16, scale=0.5)},
        "another upper bound": {"hi": _one(0.55)},
        "shifts with noise": {"s": NORMED["s"] + normal(81, 16, scale=0.05)},
        "a scale of bfloat16": {"g": (NORMED["g"].view(np.uint32) & 0xFFFF0000).view(np.float32)},
    }
    base, lines = picture(plain, **WEIGHTS), tokens(rows, **FACTORS)
    return [
        MeaningCase("a block, the same", base, base, X),
        MeaningCase("rows, the same", lines, lines, T, (), "reference"),
        *(MeaningCase(name, base, picture(plain, **WEIGHTS | edit), X) for name, edit in edits.items()),
        *(MeaningCase(n, lines, tokens(rows, **FACTORS | edit), T, (), "reference") for n, edit in others.items()),
        MeaningCase("Softsign for Tanh", base, picture(BLOCK.format(act="Softsign", last="Relu(l)"), **WEIGHTS), X),
        MeaningCase("results 5 % larger", base, picture(plain.replace("d = Relu(l)", scaled), **WEIGHTS, f5=_one(1.05)),
                    X),
        MeaningCase("results cut off at 0.6", base, picture(plain.replace("d = Relu(l)", cut), **WEIGHTS), X),
        MeaningCase("an Exp for Tanh", lines, tokens(ROWS.format(act="Exp", last="t"), **FACTORS), T),
    ]  # fmt: skip

"""The small networks of `agreement_small.py`: every type, data that say little, several outputs, targets of users.

The table was written before anything was asked. The exit codes are those of both commands; where several stand, the
commands must give the same one all the same. Data are the user's, but for networks whose name begins with ``made-up``.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

FP16, BF16 = "emulate:precision=fp16", "emulate:precision=bf16"
ORT, ORT16 = "onnxruntime", "onnxruntime:precision=fp16"
OV, OV_BF16, OV_FP16 = (f"openvino:precision={word}" for word in ("fp32", "bf16", "fp16"))
SAME = "script: "
Draw = Callable[[np.random.Generator], np.ndarray]


def normal(*shape: int, scale: float = 1.0, dtype: object = np.float32) -> Draw:
    return lambda rng: (rng.standard_normal(shape) * scale).astype(dtype)


def whole(*shape: int, low: int = -40, high: int = 40, dtype: object = np.int64) -> Draw:
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def filled(value: object, *shape: int) -> Draw:
    return lambda _: np.full(shape, value)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network and what is asked about it.

    Attributes:
        body: Nodes, as ONNX's text has them.
        outputs: Types and names.
        asked: Targets, each with the exit codes of which both commands must give the same one. ``script: CHANGE`` is
            ONNX Runtime behind a script that changes ``c``, its outputs by name; ``saved: CHANGE`` such outputs, saved;
            ``file: CHANGE`` a file in which ``m`` was changed, run by ONNX Runtime; ``faulty:...`` a planted fault.
        inputs: By name.
        weights: By name.
        reference: The reference, as the targets.
    """

    body: str
    outputs: str
    asked: Mapping[str, Sequence[int]]
    inputs: Mapping[str, Draw] = dataclasses.field(default_factory=lambda: {"x": normal(16, 32)})
    weights: Mapping[str, Draw] = dataclasses.field(default_factory=dict)
    reference: str = ""


GOOD, TOLD, OPEN = (0,), (1,), (4,)
NOT_GOOD = (1, 2, 4)
W, V = {"w": normal(32, 16, scale=0.2)}, {"v": normal(16, 16, scale=0.25)}
MLP = "h = MatMul(x, w)\na = Tanh(h)\ny = MatMul(a, v)"
TWO = "h = MatMul(x, w)\ny = Tanh(h)\nz = MatMul(y, v)"
INTS = "a = Add(i, k)\ny = Mul(a, k)"
NET = "float[16, 16] y"

NETWORKS: Mapping[str, Network] = {
    # integers and bools
    "int64": Network(INTS, "int64[8, 9] y", {ORT: GOOD, OV: GOOD, BF16: GOOD}, {"i": whole(8, 9)}, {"k": whole(9)}),
    "int64-large": Network(
        INTS, "int64[8, 9] y", {ORT: GOOD, OV: TOLD},
        {"i": whole(8, 9, low=2**40, high=2**41)}, {"k": whole(9, low=3, high=900)},
    ),
    "int32-mod": Network(
        "a = Add(i, k)\ny = Mod(a, k)", "int32[8, 9] y", {ORT: GOOD, OV: GOOD},
        {"i": whole(8, 9, dtype=np.int32)}, {"k": whole(9, low=2, high=9, dtype=np.int32)},
    ),
    "int32-wrong": Network(
        "a = Add(i, k)\ny = Mod(a, k)", "int32[8, 9] y",
        {"script: c['y'] = c['y'] + (c['y'] == 1)": TOLD, "saved: c['y'] = c['y'] + (c['y'] == 1)": TOLD},
        {"i": whole(8, 9, dtype=np.int32)}, {"k": whole(9, low=2, high=9, dtype=np.int32)},
    ),
    "bool": Network(
        "a = And(p, q)\nb = Not(p)\ny = Or(a, b)", "bool[8, 9] y",
        {ORT: GOOD, OV: GOOD, FP16: GOOD, "script: c['y'] = ~c['y']": TOLD},
        {"p": whole(8, 9, low=0, high=2, dtype=bool), "q": whole(8, 9, low=0, high=2, dtype=bool)},
    ),
    "bool-of-scores": Network(
        "h = MatMul(x, w)\ng = MatMul(x, u)\ny = Greater(h, g)", "bool[16, 16] y",
        {BF16: GOOD, FP16: GOOD, OV_BF16: GOOD, ORT16: GOOD}, weights={**W, "u": normal(32, 16, scale=0.2)},
    ),
    "bytes": Network(
        "h = MatMul(x, w)\na = Abs(h)\nb = Mul(a, s)\nf = Round(b)\nl = Min(f, s)\ny = Cast<to = 2>(l)",
        "uint8[16, 16] y",
        {ORT: GOOD, OV: GOOD, FP16: GOOD, OV_BF16: GOOD}, weights={**W, "s": filled(np.float32(60))},
    ),
    "one-integer": Network(
        "h = MatMul(x, w)\ns = ReduceSum<keepdims = 0>(h)\nt = Mul(s, k)\ny = Cast<to = 7>(t)", "int64 y",
        {BF16: GOOD, FP16: GOOD, OV_BF16: GOOD, ORT: GOOD, "script: c['y'] = c['y'] + 1": TOLD},
        weights={**W, "k": filled(np.float32(3))},
    ),
    "one-integer-of-much": Network(
        "h = MatMul(x, w)\na = Abs(h)\ns = ReduceSum<keepdims = 0>(a)\ny = Cast<to = 6>(s)", "int32 y",
        {BF16: GOOD, OV_BF16: GOOD, "script: c['y'] = c['y'] * 2": TOLD}, weights=W,
    ),
    "class": Network(
        "h = MatMul(x, w)\ny = ArgMax<axis = 1, keepdims = 0>(h)", "int64[16] y",
        {BF16: GOOD, OV_BF16: GOOD, "saved: c['y'] = (c['y'] + 3) % 16": TOLD}, weights=W,
    ),
    # narrow and wide floats
    "half": Network(
        MLP, "float16[16, 16] y", {ORT: GOOD, OV: GOOD, OV_FP16: GOOD, OV_BF16: GOOD},
        {"x": normal(16, 32, dtype=np.float16)},
        {"w": normal(32, 16, scale=0.2, dtype=np.float16), "v": normal(16, 16, scale=0.25, dtype=np.float16)},
    ),
    "half-cancels": Network(
        "h = MatMul(x, w)\na = Add(h, o)\ny = Sub(a, o)", "float16[16, 16] y", {ORT: (0, 1), OV: (0, 1)},
        {"x": normal(16, 32, dtype=np.float16)},
        {"w": normal(32, 16, scale=0.2, dtype=np.float16), "o": filled(np.float16(512))},
    ),
    "half-overflows": Network(
        "h = MatMul(x, w)\ne = Exp(h)\ns = Mul(e, k)\ny = Log(s)", "float[16, 16] y", {FP16: TOLD, BF16: GOOD},
        weights={**W, "k": filled(np.float32(1e6))},
    ),
    "double": Network(
        MLP, "double[16, 16] y", {ORT: GOOD, OV: GOOD}, {"x": normal(16, 32, dtype=np.float64)},
        {"w": normal(32, 16, scale=0.2, dtype=np.float64), "v": normal(16, 16, scale=0.25, dtype=np.float64)},
    ),
    "large": Network(
        "h = MatMul(x, w)\ny = Mul(h, k)", NET, {FP16: TOLD, BF16: GOOD, ORT16: TOLD, OV: GOOD},
        weights={**W, "k": filled(np.float32(1e30))},
    ),
    "tiny": Network(
        "h = MatMul(x, w)\ny = Mul(h, k)", NET, {FP16: TOLD, BF16: GOOD, OV: GOOD},
        weights={**W, "k": filled(np.float32(1e-30))},
    ),
    "scalar": Network(
        "h = MatMul(x, w)\na = Tanh(h)\ny = ReduceMean<keepdims = 0>(a)", "float y",
        {ORT: GOOD, OV: GOOD, FP16: (0, 1)},
        weights=W,
    ),
    "lost": Network(
        "h = MatMul(x, w)\na = Add(h, o)\ny = Sub(a, o)", NET, {FP16: TOLD, BF16: TOLD, OV: GOOD},
        weights={**W, "o": filled(np.float32(9000))},
    ),
    # data and networks that say little
    "empty": Network(
        "h = MatMul(x, w)\nc = Greater(h, o)\ny = NonZero(c)", "int64[2, N] y", {ORT: NOT_GOOD, OV: NOT_GOOD},
        weights={**W, "o": filled(np.float32(1e9))},
    ),
    "empty-beside": Network(
        "h = MatMul(x, w)\nc = Greater(h, o)\ny = NonZero(c)\nz = Tanh(h)", "int64[2, N] y, float[16, 16] z",
        {ORT: GOOD, BF16: GOOD, "script: c['z'] = c['z'] * np.float32(1.1)": TOLD},
        weights={**W, "o": filled(np.float32(1e9))},
    ),
    "zeros": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\ny = Relu(a)", NET, {ORT: OPEN, OV: OPEN, FP16: OPEN, BF16: OPEN},
        weights={**W, "o": filled(np.float32(900))},
    ),
    "zeros-wrong": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\ny = Relu(a)", NET,
        {"script: c['y'] = c['y'] + np.float32(0.5)": TOLD, "saved: c['y'] = c['y'] + np.float32(0.5)": TOLD},
        weights={**W, "o": filled(np.float32(900))},
    ),
    "zeros-beside": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\ny = Relu(a)\nz = Tanh(h)", "float[16, 16] y, float[16, 16] z",
        {ORT: GOOD, FP16: GOOD, OV_BF16: GOOD}, weights={**W, "o": filled(np.float32(900))},
    ),
    "zero-inputs": Network(
        MLP, NET, {ORT: OPEN, OV: OPEN, FP16: OPEN}, {"x": filled(np.float32(0), 16, 32)}, {**W, **V}
    ),
    "one-answer": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\nr = Relu(a)\ny = Add(r, t)", NET, {ORT: OPEN, BF16: OPEN, SAME: OPEN},
        weights={**W, "o": filled(np.float32(900)), "t": filled(np.float32(0.3))},
    ),
    "one-class": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\nr = Relu(a)\ny = ArgMax<axis = 1, keepdims = 0>(r)", "int64[16] y",
        {ORT: OPEN, BF16: OPEN}, weights={**W, "o": filled(np.float32(900))},
    ),
    "made-up-zeros": Network(
        "h = MatMul(x, w)\na = Sub(h, o)\ny = Relu(a)", NET, {ORT: OPEN, FP16: OPEN},
        weights={**W, "o": filled(np.float32(1e30))},
    ),
    "made-up-mlp": Network(MLP, NET, {ORT: GOOD, OV_BF16: GOOD, ORT16: GOOD}, weights={**W, **V}),
    "made-up-table": Network(
        "e = Gather(t, i)\nm = Cast<to = 1>(k)\nu = Unsqueeze(m, ax)\ng = Mul(e, u)\ny = MatMul(g, v)",
        "float[2, 9, 16] y",
        {ORT: GOOD, OV: GOOD, FP16: GOOD}, {"i": whole(2, 9, low=0, high=30), "k": whole(2, 9, low=0, high=2)},
        {"t": normal(30, 16), "ax": filled(2, 1), **V},
    ),
    "made-up-noise": Network(
        "h = MatMul(x, w)\na = Add(h, o)\ny = Sub(a, o)", NET, {ORT: (0, 4), OV: (0, 4)},
        weights={**W, "o": filled(np.float32(3e7))},
    ),
    "noise": Network(
        "h = MatMul(x, w)\na = Add(h, o)\ny = Sub(a, o)", NET, {ORT: (0, 1, 4), OV: (0, 1, 4)},
        weights={**W, "o": filled(np.float32(3e7))},
    ),
    # NaN and Inf
    "nan": Network("h = MatMul(x, w)\na = Abs(h)\nb = Neg(a)\ny = Sqrt(b)", NET, {ORT: TOLD, OV: TOLD}, weights=W),
    "nan-some": Network("h = MatMul(x, w)\ny = Log(h)", NET, {ORT: TOLD, BF16: TOLD, SAME: TOLD}, weights=W),
    "made-up-nan": Network("h = MatMul(x, w)\na = Sub(h, o)\ny = Log(a)", NET, {ORT: (1, 2, 4)},
                           weights={**W, "o": filled(np.float32(1e30))}),
    "nan-of-target": Network(
        MLP, NET, {"script: c['y'].flat[3] = np.nan": TOLD, "saved: c['y'].flat[3] = np.nan": TOLD}, weights={**W, **V}
    ),
    "inf-some": Network(
        "h = MatMul(x, w)\nr = Relu(h)\ny = Reciprocal(r)", NET,
        {ORT: GOOD, OV: GOOD, "script: c['y'][np.isinf(c['y'])] = 3e38": TOLD}, weights=W,
    ),
    "inf-all": Network(
        "h = MatMul(x, w)\na = Abs(h)\nb = Add(a, o)\ny = Exp(b)", NET, {ORT: OPEN, OV: OPEN},
        weights={**W, "o": filled(np.float32(900))},
    ),
    "nan-of-input": Network(
        MLP, NET, {ORT: TOLD, BF16: TOLD},
        {"x": lambda rng: np.where(rng.random((16, 32)) < 0.01, np.float32("nan"), normal(16, 32)(rng))},
        {**W, **V},
    ),
    # several outputs
    "two": Network(
        TWO, "float[16, 16] y, float[16, 16] z",
        {
            ORT: GOOD, OV_BF16: GOOD,
            "script: c['z'] = c['z'] * np.float32(1.03)": TOLD,
            "script: c['y'], c['z'] = c['z'], c['y']": TOLD,
            "saved: c['y'], c['z'] = c['z'], c['y']": TOLD,
            "saved: c = {n: a.astype(np.float16).astype(np.float32) for n, a in c.items()}": TOLD,
            "saved: c = {n: a * np.float32(1.0000001) for n, a in c.items()}": GOOD,
        },
        weights={**W, **V},
    ),
    "of-all-types": Network(
        "h = MatMul(x, w)\ny = Tanh(h)\nz = ArgMax<axis = 1>(h)\nb = Greater(h, o)\nn = Cast<to = 10>(y)",
        "float[16, 16] y, int64[16, 1] z, bool[16, 16] b, float16[16, 16] n",
        {ORT: GOOD, OV: GOOD, BF16: GOOD, OV_BF16: GOOD, "script: c['b'] = ~c['b']": TOLD},
        weights={**W, "o": filled(np.float32(0))},
    ),
    "best": Network(
        "h = MatMul(x, w)\ny, z = TopK<axis = 1>(h, k)", "float[16, 4] y, int64[16, 4] z",
        {ORT: GOOD, OV: GOOD, BF16: GOOD, "script: c['z'] = c['z'][:, ::-1]": TOLD}, weights={**W, "k": filled(4, 1)},
    ),
    # what users bring
    "program": Network(
        MLP, NET,
        {
            SAME: GOOD, "script: c['y'] = c['y'].astype(np.float64)": GOOD, "script: c['y'] = c['y'].T.copy()": TOLD,
            "script: c['y'] = c['y'][:, :15]": TOLD, "script: c = {}": TOLD, "script: raise ValueError('no')": TOLD,
            "script: c['y'] = c['y'].astype(np.int32)": TOLD, "script: c['y'] = c['y'][None]": TOLD,
            "script: c['y'] = np.zeros_like(c['y'])": TOLD,
        },
        weights={**W, **V},
    ),
    "results": Network(
        MLP, NET,
        {
            "saved: c = {'other': c['y']}": GOOD, "saved: c['y'] = c['y'].ravel()": TOLD,
            "saved: c['y'] = np.zeros_like(c['y'])": TOLD, "saved: c['y'] = c['y'][::-1]": TOLD,
        },
        weights={**W, **V},
    ),
    "of-another": Network(
        MLP, NET, {ORT: TOLD, OV: TOLD}, weights={**W, **V}, reference="script: c['y'] = c['y'] * np.float32(1.02)"
    ),
    "golden": Network(MLP, NET, {ORT: GOOD, OV_BF16: GOOD}, weights={**W, **V}, reference=SAME),
    "file": Network(
        MLP, NET,
        {
            "file: ": GOOD, "file: m['w'] = m['w'] * np.float32(1.1)": TOLD,
            "file: m['w'] = m['w'].astype(np.float16).astype(np.float32)": TOLD,
        },
        weights={**W, **V},
    ),
    "eight-bits": Network(
        MLP, NET,
        {"int8: ": GOOD, "int8: m['v_scale'] = m['v_scale'] * np.float32(2)": TOLD,
         "int8: m['a_scale'] = m['a_scale'] / np.float32(8)": TOLD},
        weights={**W, **V},
    ),
    # the same question with two answers
    "race-of-target": Network(
        MLP, NET, {"faulty:kind=nondeterministic,node=a,amount=0.05": TOLD}, weights={**W, **V}
    ),
    "race-of-reference": Network(
        MLP, NET, {ORT: GOOD, OV: GOOD, BF16: GOOD}, weights={**W, **V},
        reference="faulty:kind=nondeterministic,node=a,amount=0.05",
    ),
    "race-within": Network(
        MLP, NET, {ORT: GOOD}, weights={**W, **V}, reference="faulty:kind=nondeterministic,node=a,amount=1e-8"
    ),
    "random-op": Network(
        "r = RandomNormalLike(x)\na = Add(x, r)\ny = MatMul(a, w)", NET, {ORT: TOLD, OV: TOLD}, weights=W
    ),
    "scatter": Network(
        'h = MatMul(x, w)\ny = ScatterND<reduction = "add">(h, i, u)', NET, {ORT: GOOD, OV: GOOD},
        weights={**W, "i": whole(40, 1, low=0, high=16), "u": normal(40, 16)},
    ),
}  # fmt: skip

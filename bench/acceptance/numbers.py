"""Point 1: what a number format makes of a network, and what is allowed to pass."""

from pathlib import Path

import numpy as np

from acceptance.case import Case, fine
from acceptance.networks import data, saved

FP16 = ("--target", "emulate:precision=fp16")
BF16 = ("--target", "emulate:precision=bf16")
LOST = ("range-overflow",)
TOLD = ("range-overflow", "rounding")


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _f32(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, np.float32)


def tiny_layer_norm(folder: Path) -> list[str]:
    text = """norm (float[b,64] x) => (float[b,16] y) {
        mean = ReduceMean<axes=[1], keepdims=1>(x)
        centred = Sub(x, mean)
        square = Mul(centred, centred)
        var = ReduceMean<axes=[1], keepdims=1>(square)
        safe = Add(var, eps)
        deviation = Sqrt(safe)
        normed = Div(centred, deviation)
        y = MatMul(normed, w)
    }"""
    r = _random(1)
    model = saved(folder, text, {"eps": np.float32(1e-12), "w": r.normal(0, 0.1, (64, 16))})
    return [model, *data(folder, x=_f32(r.normal(0, 2e-5, (3, 64)))), *FP16]


def tiny_weights(folder: Path) -> list[str]:
    text = """tiny (float[b,32] x) => (float[b,8] y) {
        h = MatMul(x, w_tiny)
        up = Mul(h, gain1)
        back = Mul(up, gain2)
        y = MatMul(back, w)
    }"""
    r = _random(2)
    arrays = {"w_tiny": r.normal(0, 1e-9, (32, 24)), "gain1": np.float32(3e4), "gain2": np.float32(3e4)}
    model = saved(folder, text, arrays | {"w": r.normal(0, 0.2, (24, 8))})
    return [model, *data(folder, x=_f32(r.normal(0, 1, (4, 32)))), *FP16]


def subnormal_weights(folder: Path) -> list[str]:
    text = """faint (float[b,32] x) => (float[b,8] y) {
        h = MatMul(x, w_faint)
        up = Mul(h, gain)
        t = Tanh(up)
        y = MatMul(t, w)
    }"""
    r = _random(3)
    arrays = {"w_faint": r.normal(0, 2.5e-8, (32, 24)), "gain": np.float32(5e4), "w": r.normal(0, 0.2, (24, 8))}
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 100, (4, 32)))), *FP16]


def divided_by_large(folder: Path) -> list[str]:
    text = """depth (float[b,1,16,16] millimetres) => (float[b,4,16,16] y) {
        part = Div(millimetres, largest)
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(part, w, bias)
        y = Relu(c)
    }"""
    r = _random(4)
    arrays = {"largest": np.float32(1e5), "w": r.normal(0, 1, (4, 1, 3, 3)), "bias": np.full(4, 0.01)}
    return [saved(folder, text, arrays), *data(folder, millimetres=_f32(r.uniform(500, 6e4, (1, 1, 16, 16)))), *FP16]


ATTENTION = """attention (float[b,12,32] x, float[b,12] seen) => (float[b,12,32] y) {
    q = MatMul(x, wq)
    k = MatMul(x, wk)
    v = MatMul(x, wv)
    kt = Transpose<perm=[0,2,1]>(k)
    dots = MatMul(q, kt)
    hidden = Sub(one, seen)
    row = Unsqueeze(hidden, axis)
    bias = Mul(row, far)
    masked = Add(dots, bias)
    p = Softmax<axis=-1>(masked)
    y = MatMul(p, v)
}"""


CHOSEN = ATTENTION.replace("bias = Mul(row, far)", "blocked = Greater(row, half)")
CHOSEN = CHOSEN.replace("masked = Add(dots, bias)", "masked = Where(blocked, far, dots)")


def _attention(folder: Path, far: float, *, empty_row: bool, text: str = CHOSEN) -> list[str]:
    r = _random(5)
    arrays = {name: r.normal(0, 0.15, (32, 32)) for name in ("wq", "wk", "wv")}
    arrays |= {"one": np.float32(1), "axis": np.array([1]), "far": np.float32(far), "half": np.float32(0.5)}
    if text is ATTENTION:
        del arrays["half"]
    seen = np.ones((2, 12))
    seen[0, 9:] = 0
    seen[1, 0 if empty_row else 5 :] = 0
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 1, (2, 12, 32))), seen=_f32(seen)), *FP16]


def naive_logsumexp(folder: Path) -> list[str]:
    text = """lse (float[b,40] x) => (float[b,1] energy) {
        h = MatMul(x, w)
        e = Exp(h)
        s = ReduceSum<keepdims=1>(e, axis)
        energy = Log(s)
    }"""
    r = _random(6)
    arrays = {"w": r.normal(0, 0.6, (40, 200)), "axis": np.array([1])}
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 1.5, (5, 40)))), *FP16]


def norm_becomes_zero(folder: Path) -> list[str]:
    text = """unit (float[b,2048] x) => (float[b,16] y) {
        size = ReduceL2<axes=[1], keepdims=1>(x)
        unit = Div(x, size)
        y = MatMul(unit, w)
    }"""
    r = _random(7)
    arrays = {"w": r.normal(0, 1, (2048, 16))}
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 2500, (3, 2048)))), *FP16]


def large_rms_norm(folder: Path) -> list[str]:
    text = """rms (float[b,64] x) => (float[b,64] y) {
        wide = MatMul(x, w1)
        square = Pow(wide, two)
        mean = ReduceMean<axes=[-1], keepdims=1>(square)
        safe = Add(mean, eps)
        root = Sqrt(safe)
        inverse = Reciprocal(root)
        normed = Mul(wide, inverse)
        scaled = Mul(normed, gamma)
        y = MatMul(scaled, w2)
    }"""
    r = _random(8)
    arrays = {"w1": r.normal(0, 8, (64, 64)), "w2": r.normal(0, 0.1, (64, 64)), "gamma": r.uniform(0.5, 1.5, 64)}
    arrays |= {"two": np.float32(2), "eps": np.float32(1e-6)}
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 10, (2, 64)))), *FP16]


def infinite_variance(folder: Path) -> list[str]:
    text = """stem (float[b,3,12,12] image) => (float[b,5,12,12] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w1)
        n = BatchNormalization(c, gamma, beta, mean, running_variance)
        a = Relu(n)
        y = Conv<kernel_shape=[1,1]>(a, w2)
    }"""
    r = _random(9)
    w1, gamma, variance = r.normal(0, 0.3, (6, 3, 3, 3)), r.uniform(0.5, 1.5, 6), r.uniform(0.5, 2, 6)
    w1[:4] *= 400
    variance[:4] *= 400**2 * 1.5
    arrays = {"w1": w1, "gamma": gamma, "beta": r.normal(0, 0.02, 6), "mean": np.zeros(6)}
    arrays |= {"running_variance": variance, "w2": r.normal(0, 0.5, (5, 6, 1, 1))}
    return [saved(folder, text, arrays), *data(folder, image=_f32(r.uniform(0, 1, (1, 3, 12, 12)))), *FP16]


POSITIONS = """positions (float[1,length,16] x) => (float[1,length,16] y) {
    shape = Shape(x)
    length = Gather(shape, first)
    ids = Range(zero, length, step)
    place = Cast<to=1>(ids)
    column = Unsqueeze(place, last)
    angle = Mul(column, frequencies)
    wave = Sin(angle)
    y = Mul(x, wave)
}"""


def _positions(folder: Path, length: int, target: tuple[str, str]) -> list[str]:
    r = _random(10)
    arrays = {"first": np.array(1), "zero": np.array(0), "step": np.array(1), "last": np.array([1])}
    arrays |= {"frequencies": np.linspace(0.6, 1.0, 16)}
    x = _f32(r.uniform(0.5, 1, (1, length, 16)))
    return [saved(folder, POSITIONS, arrays), *data(folder, x=x), *target]


def cancelled_variance(folder: Path) -> list[str]:
    text = """variance (float[b,128] x) => (float[b,1] deviation) {
        mean = ReduceMean<axes=[1], keepdims=1>(x)
        squares = Mul(x, x)
        of_squares = ReduceMean<axes=[1], keepdims=1>(squares)
        of_mean = Mul(mean, mean)
        raw = Sub(of_squares, of_mean)
        positive = Abs(raw)
        deviation = Sqrt(positive)
    }"""
    return [saved(folder, text, {}), *data(folder, x=_f32(_random(11).normal(180, 0.7, (12, 128)))), *FP16]


JOINED = """joined (float[b,24] x) => (float[b,12] found) {
    h = MatMul(x, wb)
    s = Sigmoid(h)
    boxes = Mul(s, width)
    energy = MatMul(x, wc)
    away = Sub(energy, offset)
    likelihood = {last}(away)
    found = Concat<axis=1>(boxes, likelihood)
}"""


def _joined(folder: Path, last: str, offset: float) -> list[str]:
    r = _random(12)
    arrays = {"wb": r.normal(0, 0.3, (24, 4)), "wc": r.normal(0, 0.3, (24, 8))}
    arrays |= {"width": np.float32(640), "offset": np.float32(offset)}
    text = JOINED.replace("{last}", last)
    return [saved(folder, text, arrays), *data(folder, x=_f32(r.normal(0, 1, (6, 24)))), *FP16]


def silent_logs(folder: Path) -> list[str]:
    text = """notes (float[b,64] sound) => (float[b,8] onset, float[b,8] note) {
        power = Mul(sound, sound)
        safe = Add(power, floor)
        loud = Log(safe)
        onset = MatMul(loud, w1)
        note = MatMul(loud, w2)
    }"""
    r = _random(13)
    sound = r.normal(0, 0.3, (2, 64))
    sound[:, 40:] = 0
    arrays = {"floor": np.float32(1e-10), "w1": r.normal(0, 0.1, (64, 8)), "w2": r.normal(0, 0.1, (64, 8))}
    return [saved(folder, text, arrays), *data(folder, sound=_f32(sound)), *FP16]


def _chaos(folder: Path, rounds: int, *, real: bool) -> list[str]:
    lines = ["s0 = Sigmoid(x)"]
    for i in range(rounds):
        lines += [f"m{i} = Sub(one, s{i})", f"t{i} = Mul(s{i}, m{i})", f"s{i + 1} = Mul(t{i}, rate)"]
    text = f"chaos (float[b,256] x) => (float[b,256] s{rounds}) {{ {chr(10).join(lines)} }}"
    model = saved(folder, text, {"one": np.float32(1), "rate": np.float32(3.93)})
    feed = data(folder, x=_f32(_random(14).normal(0, 1, (1, 256)))) if real else ()
    return [model, *feed, "--target", "openvino:precision=fp32"]


CASES = (
    Case("tiny-layer-norm", 1, tiny_layer_norm, LOST, 1, ("eps|var|safe|square|Div|Add|Mul",), ("another order",)),
    Case("tiny-weights", 1, tiny_weights, LOST, 1, ("w_tiny|MatMul_h",)),
    Case("subnormal-weights", 1, subnormal_weights, LOST, 1, ("w_faint",)),
    Case("divided-by-large", 1, divided_by_large, LOST, 1, ("largest",)),
    fine("mask-1e9", 1, lambda f: _attention(f, -1e9, empty_row=False)),
    Case(
        "mask-1e9-empty-row",
        1,
        lambda f: _attention(f, -1e9, empty_row=True),
        LOST,
        1,
        ("far|-1e.?0?9|1000000000|mask|bias",),
    ),
    Case(
        "mask-1e9-product",
        1,
        lambda f: _attention(f, -1e9, empty_row=False, text=ATTENTION),
        LOST,
        1,
        ("far|-1e.?0?9|1000000000|mask|bias",),
    ),
    fine("mask-60000-product", 1, lambda f: _attention(f, -60000, empty_row=False, text=ATTENTION)),
    Case("naive-logsumexp", 1, naive_logsumexp, LOST, 1, ("Exp|ReduceSum",), culprit="Exp|ReduceSum"),
    Case("norm-becomes-zero", 1, norm_becomes_zero, LOST, 1, ("ReduceL2",), culprit="ReduceL2"),
    Case("large-rms-norm", 1, large_rms_norm, LOST, 1, ("Pow|ReduceMean",), culprit="Pow|ReduceMean"),
    Case("infinite-variance", 1, infinite_variance, LOST, 1, ("running_variance",)),
    Case(
        "positions-bf16",
        1,
        lambda f: _positions(f, 3000, BF16),
        ("rounding",),
        1,
        ("Cast|Mul|Range|position|angle|place",),
    ),
    fine("positions-fp16", 1, lambda f: _positions(f, 60, FP16)),
    Case("cancelled-variance", 1, cancelled_variance, ("rounding",), 1, ("Mul|Sub|ReduceMean",)),
    Case("joined-likelihoods", 1, lambda f: _joined(f, "Exp", 21), TOLD, 1, ("likelihood|Exp",)),
    fine("joined-scores", 1, lambda f: _joined(f, "Sigmoid", 1)),
    Case("silent-logs", 1, silent_logs, LOST, 1, ("floor|Log|1e-10",), ("another order",)),
    Case("chaos-made-up", 1, lambda f: _chaos(f, 70, real=False), ("inconclusive",), 4, ("noise|real|data",)),
    Case("chaos-real", 1, lambda f: _chaos(f, 29, real=True), ("rounding",), None, ("amplif",)),
)

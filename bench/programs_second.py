"""A second draw of programs around a network, on other networks: what `bench/programs.py --draw second` asks about.

Mistakes are those of public threads: Java's signed bytes, ARGB integers, a buffer that every picture of a batch shares,
loops over x before y, black bands of a letterbox, another bank of mel filters, a voice detector without its context or
state, BOS twice, an additive mask, frames before channels, a softmax too much, classes sorted as words. Written, and
committed, before any was asked about. A half of them (`held`) was never read when answers were mended.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from programs_cases import DEVIATION, MEAN, Change, Program, built, on, raw, sigmoid, softmax
from programs_data import boxed, jpeg, mels, moving, noisy, nv21, recording, scenes, shrunk

NETWORKS = {
    "camera": """g (float[2,3,56,40] photo) => (float[2,12] logits, float[2,12] probs) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(photo, w1_16x3x3x3, b1_16)
        r1 = Clip(c1, k_zero, k_six)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=16>(r1, w2_16x1x3x3, b2_16)
        r2 = Clip(c2, k_zero, k_six)
        c3 = Conv<kernel_shape=[1,1]>(r2, w3_28x16x1x1, b3_28)
        s3 = PRelu(c3, k_slopes)
        p3 = AveragePool<kernel_shape=[7,5], strides=[7,5]>(s3)
        f = Flatten(p3)
        logits = Gemm(f, w4_448x12, b4_12)
        probs = Softmax<axis=-1>(logits) }""",
    "yolo": """g (float[1,3,64,96] images) => (float[1,9,96] output0) {
        c1 = Conv<kernel_shape=[6,6], strides=[2,2], pads=[2,2,2,2]>(images, w1_16x3x6x6, b1_16)
        g1 = Sigmoid(c1)
        s1 = Mul(c1, g1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(s1, w2_24x16x3x3, b2_24)
        g2 = Sigmoid(c2)
        s2 = Mul(c2, g2)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(s2, w3_24x24x3x3, b3_24)
        g3 = Tanh(c3)
        a3 = Add(s2, g3)
        c4 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a3, w4_32x24x3x3, b4_32)
        g4 = Sigmoid(c4)
        s4 = Mul(c4, g4)
        b5 = Conv<kernel_shape=[1,1]>(s4, w5_4x32x1x1, b5_4)
        b6 = Sigmoid(b5)
        b7 = Mul(b6, k_sizes)
        c5 = Conv<kernel_shape=[1,1]>(s4, w6_5x32x1x1, b6_5)
        c6 = Sigmoid(c5)
        all = Concat<axis=1>(b7, c6)
        output0 = Reshape(all, s_cells) }""",
    "scene": """g (uint8[1,48,64,3] frame) => (float[1,4,48,64] areas) {
        x = Cast<to=1>(frame)
        d = Div(x, k_half)
        m = Sub(d, k_one)
        t = Transpose<perm=[0,3,1,2]>(m)
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(t, w1_12x3x3x3, b1_12)
        r1 = Elu(c1)
        c2 = Conv<kernel_shape=[4,4], strides=[2,2], pads=[1,1,1,1]>(r1, w2_20x12x4x4, b2_20)
        r2 = Elu(c2)
        u = ConvTranspose<kernel_shape=[4,4], strides=[2,2], pads=[1,1,1,1]>(r2, w3_20x12x4x4, b3_12)
        both = Concat<axis=1>(u, r1)
        areas = Conv<kernel_shape=[1,1]>(both, w4_4x24x1x1, b4_4) }""",
    "keyword": """g (float[1,64,24] feats) => (float[1,64,7] states) {
        t = Transpose<perm=[1,0,2]>(feats)
        y, last = GRU<hidden_size=20>(t, w1_1x60x24, w2_1x60x20, k_gates)
        q = Squeeze(y, s_one)
        b = Transpose<perm=[1,0,2]>(q)
        z = MatMul(b, w3_20x7)
        states = LogSoftmax<axis=-1>(z) }""",
    "vad": """g (float[1,576] wave, float[1,1,16] h, float[1,1,16] c, int64[1] sr)
              => (float[1,1] speech, float[1,1,16] hn, float[1,1,16] cn) {
        rate = Cast<to=1>(sr)
        ratio = Div(rate, k_rate)
        u = Unsqueeze(wave, s_one)
        f = Conv<kernel_shape=[64], strides=[64]>(u, w1_20x1x64, b1_20)
        e = Mul(f, ratio)
        r = Softplus(e)
        t = Transpose<perm=[2,0,1]>(r)
        y, hn, cn = LSTM<hidden_size=16>(t, w2_1x64x20, w3_1x64x16, k_biases, "", h, c)
        q = Squeeze(hn, s_zero)
        z = Gemm(q, w4_16x1, b4_1)
        speech = Sigmoid(z) }""",
    "text": """g (int64[2,24] input_ids, int64[2,24] attention_mask) => (float[2,24,24] hidden, float[2,24] embedding) {
        e = Gather(w1_120x24, input_ids)
        h = Add(e, k_places)
        n = LayerNormalization<axis=-1>(h, k_ones24, b1_24)
        q = MatMul(n, w2_24x24)
        k = MatMul(n, w3_24x24)
        v = MatMul(n, w4_24x24)
        kt = Transpose<perm=[0,2,1]>(k)
        a = MatMul(q, kt)
        am = Cast<to=1>(attention_mask)
        less = Sub(am, k_one)
        far = Mul(less, k_far)
        fu = Unsqueeze(far, s_one)
        masked = Add(a, fu)
        w = Softmax<axis=-1>(masked)
        o = MatMul(w, v)
        r = Add(h, o)
        hidden = LayerNormalization<axis=-1>(r, k_ones24, b2_24)
        mu = Unsqueeze(am, s_last)
        shown = Mul(hidden, mu)
        mean = ReduceMean<axes=[1], keepdims=0>(shown)
        embedding = LpNormalization<axis=-1>(mean) }""",
    "video": """g (float[1,3,8,32,32] clip) => (float[1,32] embedding, float[1,10] actions) {
        c1 = Conv<kernel_shape=[3,5,5], strides=[1,2,2], pads=[1,2,2,1,2,2]>(clip, w1_12x3x3x5x5, b1_12)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[2,4,4], strides=[2,4,4]>(r1, w2_16x12x2x4x4, b2_16)
        r2 = Selu(c2)
        f = Flatten(r2)
        embedding = Gemm(f, w3_1024x32, b3_32)
        t = Tanh(embedding)
        actions = Gemm(t, w4_32x10, b4_10) }""",
    "loans": """g (float[24,6] numbers, int64[24,2] kinds) => (float[24,1] chance, float[24,4] segments) {
        e = Gather(w1_9x5, kinds)
        f = Reshape(e, s_rows)
        x = Concat<axis=1>(numbers, f)
        z1 = Gemm(x, w2_16x24, b2_24)
        r1 = Elu(z1)
        z2 = Gemm(r1, w3_24x24, b3_24)
        r2 = Softsign(z2)
        z3 = Gemm(r2, w4_24x1, b4_1)
        chance = Sigmoid(z3)
        segments = Gemm(r2, w5_24x4, b5_4) }""",
}  # fmt: skip
SHAPES = {"s_cells": [1, 9, 96], "s_one": [1], "s_zero": [0], "s_last": [2], "s_rows": [24, 10]}
SOME = np.random.default_rng(5)
FIXED = {
    "k_zero": np.array(0), "k_six": np.array(6), "k_slopes": np.full((28, 1, 1), 0.25), "k_half": np.array(127.5),
    "k_one": np.array(1), "k_sizes": np.reshape([96, 64, 40, 40], (1, 4, 1, 1)), "k_gates": np.zeros((1, 120)),
    "k_rate": np.array(16000), "k_biases": np.zeros((1, 128)), "k_ones24": np.ones(24), "k_far": np.array(1e4),
    "k_places": SOME.normal(0, 0.6, (1, 24, 24)),
}  # fmt: skip
BAND_MEAN, BAND_DEVIATION = 2 - 7 * np.linspace(0.2, 1, 24) ** 2, 1.5 + np.linspace(0, 1, 24)


def made(folder: Path, network: str, seed: int = 0) -> tuple[Path, dict[str, np.ndarray]]:
    """Write a network with weights of a seed; return it and its right inputs."""
    path = folder / f"{network}-{seed}.onnx"
    onnx.save(built(network, NETWORKS[network], SHAPES, FIXED, seed), path)
    return path, inputs(network)


def inputs(network: str, seed: int = 0, **changes: object) -> dict[str, np.ndarray]:
    """Return what a right program feeds a network; `changes` are those of a wrong one in what it starts from."""
    rng = np.random.default_rng([seed, *map(ord, network)])
    if network == "camera":
        photo = shrunk(scenes(rng, 2, 168, 120), **changes)
        return {"photo": ((photo / 255 - MEAN) / DEVIATION).astype(np.float32)}
    if network == "yolo":
        return {"images": (boxed(shrunk(scenes(rng, 1, 132, 288), **changes)) / 255).astype(np.float32)}
    if network == "scene":
        return {"frame": np.moveaxis(shrunk(scenes(rng, 1, 144, 192), **changes), 1, -1).astype(np.uint8)}
    if network == "keyword":
        return {"feats": ((mels(recording(seed), **changes) - BAND_MEAN) / BAND_DEVIATION)[None].astype(np.float32)}
    if network == "vad":
        state = np.tanh(rng.normal(0, 0.8, (2, 1, 1, 16))).astype(np.float32)
        wave = recording(seed)[3000:3576].astype(np.float32)
        return {"wave": wave[None], "h": state[0], "c": state[1], "sr": np.array([16000], np.int64)}
    if network == "text":
        shown = np.arange(24)[None] < np.array([[20], [14]])
        ids = np.where(shown, rng.integers(8, 118, (2, 24)), 1)
        ids[:, 0], ids[0, 19], ids[1, 13] = 2, 3, 3
        return {"input_ids": ids.astype(np.int64), "attention_mask": shown.astype(np.int64)}
    if network == "video":
        pace = changes.get("pace", 2)
        return {"clip": np.stack([moving(seed, frame * pace) for frame in range(8)], 1)[None].astype(np.float32)}
    age, income, debts = rng.normal(0, 1, 24), np.log1p(rng.lognormal(1.2, 0.9, 24)), rng.integers(0, 6, 24)
    columns = [age, income, np.where(rng.random(24) < 0.3, -1, debts), *rng.normal(0, 1, (2, 24)), rng.random(24)]
    return {"numbers": np.stack(columns, 1).astype(np.float32), "kinds": rng.integers(0, 8, (24, 2)).astype(np.int64)}


# --- mistakes with the inputs


def instead(network: str, name: str, **changes: object) -> Change:
    """Return a program that starts from something else: another hop, another pace."""
    return lambda feed: {**feed, name: inputs(network, **changes)[name]}


def bos_twice(feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    ids, mask = feed["input_ids"], feed["attention_mask"]
    return {"input_ids": np.concatenate([np.full((2, 1), 2), ids[:, :-1]], 1),
            "attention_mask": np.concatenate([np.ones((2, 1), np.int64), mask[:, :-1]], 1)}  # fmt: skip


def missing_as_0(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[x[:, 2] == -1, 2] = 0
    return x


def without_log(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64).copy()
    x[:, 1] = np.expm1(x[:, 1])
    return x


def of_bytes(x: np.ndarray) -> np.ndarray:
    return (((x * DEVIATION + MEAN) * 255).round().astype(np.uint8).astype(np.int8) / 255 - MEAN) / DEVIATION


INPUTS = (
    Program("mean-of-bytes", "camera", on("photo", lambda x: (x * DEVIATION + MEAN - MEAN * 255) / (DEVIATION * 255)),
            kind="scale|normalization", parameters=r"0\.0039|1/255"),
    Program("bgr-mean", "camera", on("photo", lambda x: (x * DEVIATION + MEAN - MEAN[:, ::-1]) / DEVIATION[:, ::-1]),
            kind="normalization|scale", parameters=r"revers|exchang|BGR|0\.98\d|1\.01[78]"),
    Program("signed-bytes", "camera", on("photo", of_bytes), kind="dtype|signed", parameters="signed|int8|12[78]"),
    Program("argb", "camera", on("photo", raw(lambda x: np.concatenate([np.ones_like(x[:, :1]), x[:, :2]], 1))),
            kind="channel|order|unfilled|constant", parameters="ARGB|fourth|alpha|order"),
    Program("x-before-y", "camera", on("photo", lambda x: x.swapaxes(2, 3).reshape(x.shape)),
            kind="layout|shape|transpos", parameters=r"axes|\d"),
    Program("one-buffer", "camera", on("photo", lambda x: x[[1, 1]]), kind="batch|rows?\b|picture|copied",
            parameters=r"1, 1|row 1|last|holds 1|index 1|cop(y|ied)|same"),
    Program("channels-before-batch", "camera", on("photo", lambda x: x.swapaxes(0, 1).reshape(x.shape)),
            kind="layout|shape|batch", parameters=r"axes|\d"),
    Program("black-bands", "yolo", on("images", lambda x: boxed(x[:, :, 10:54], 0)),
            kind="bands|letterbox|pad|constant", parameters=r"\b0\b|0\.447|114"),
    Program("a-row-late", "yolo", on("images", lambda x: boxed(x[:, :, 10:54], 114 / 255, 11)),
            kind="shift|letterbox|crop|bands|padded", parameters=r"\b1\b|\b11\b"),
    Program("nv21-as-nv12", "yolo", on("images", nv21), kind="colour", parameters="matrix|Cb|NV|V and U|U and V"),
    Program("over-255-in-bytes", "scene", on("frame", lambda x: x // 255), kind="dtype|scale|whole numbers",
            parameters="255|whole"),
    Program("minus-128", "scene", on("frame", lambda x: (x.astype(int) - 128).astype(np.int8).view(np.uint8)),
            kind="dtype|wrap|signed|moved|shift|scale", parameters="128"),
    Program("no-global-cmvn", "keyword", on("feats", lambda x: x * BAND_DEVIATION + BAND_MEAN),
            kind="normalization|scale", parameters="axis 2|column|each|index|mean"),
    Program("half-the-hop", "keyword", instead("keyword", "feats", hop=80),
            kind="stretch|resampl|interpol|rate|hop|crop|cut|enlarg|zoom", parameters=r"\b2\b|0\.5|\b32\b"),
    Program("slaney-for-htk", "keyword", instead("keyword", "feats", slaney=True),
            kind="mel|frequenc|resampl|interpol|stretch|mix|warp", parameters="axis|mel|slaney|matrix|ratio"),
    Program("centred", "keyword", instead("keyword", "feats", begin=-160), kind="shift|late|cut|padded|moved",
            parameters=r"\b1\b"),
    Program("stereo-as-mono", "vad", on("wave", lambda x: np.repeat(x, 2, 1)[:, :576]),
            kind="resampl|stretch|rate|stereo|channels|repeat", parameters=r"\b2\b|0\.5|two|block"),
    Program("no-context", "vad", on("wave", lambda x: np.where(np.arange(576) < 64, 0, x)),
            kind=r"unfilled|pad|zero|bands|cut|part|\b0\b", parameters="64"),
    Program("no-state", "vad", lambda feed: {**feed, "h": feed["h"] * 0, "c": feed["c"] * 0},
            kind="unfilled|zero|0 everywhere|constant|state|scale", parameters=r"\bh\b.*\bc\b|\bc\b.*\bh\b"),
    Program("rate-of-8000", "vad", on("sr", lambda x: x // 2), kind="scale|constant|tokens|mapping|number",
            parameters=r"8000|0\.5"),
    Program("bos-twice", "text", bos_twice, kind="tokens|shift", parameters=r"\b[12]\b"),
    Program("additive-mask", "text", on("attention_mask", lambda x: (x - 1) * 10000), kind="mask|scale",
            parameters="10000"),
    Program("mask-of-first", "text", on("attention_mask", lambda x: x[[0, 0]]), kind="mask|row|batch",
            parameters="row|0, 0|axis|first"),
    Program("frames-before-channels", "video", on("clip", lambda x: x.swapaxes(1, 2).reshape(x.shape)),
            kind="layout|shape|transpos", parameters=r"axes|\d"),  # "transpos": since it was asked
    Program("half-the-pace", "video", instead("video", "clip", pace=1),
            kind="stretch|resampl|interpol|rate|frames|crop|cut", parameters=r"\b2\b|0\.5"),
    Program("one-frame", "video", on("clip", lambda x: np.repeat(x[:, :, -1:], 8, 2)),
            kind="frame|repeat|constant|copied|order|row", parameters=r"\b7\b|last|axis 2"),
    Program("missing-as-0", "loans", on("numbers", missing_as_0), kind="mapping|number|value|categor|constant",
            parameters=r"-1.*\b0\b|\b0\b.*-1"),
    Program("no-logarithm", "loans", on("numbers", without_log), kind="exp|log|function", parameters="log|exp"),
)  # fmt: skip


# --- mistakes with the outputs


def of_boxes(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return on("output0", lambda x: np.concatenate([change(x[:, :4].astype(np.float64)), x[:, 4:]], 1))


WORDS = sorted(range(12), key=str)
OUTPUTS = (
    Program("sigmoid-twice-of-scores", "yolo", kind="[Ss]igmoid", parameters="[Ss]igmoid of",
            after=on("output0", lambda x: np.concatenate([x[:, :4], sigmoid(x[:, 4:])], 1))),
    Program("corners-in-rows", "yolo", kind="corners", parameters="x1, y1, x2, y2",
            after=of_boxes(lambda b: np.concatenate([b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2], 1))),
    Program("boxes-of-the-original", "yolo", kind="multiplied|divided|scale|moved|subtracted",
            parameters=r"\b3\b.*30|30.*\b3\b|\b10\b.*\b3\b|\b3\b.*\b10\b",
            after=of_boxes(lambda b: (b - np.reshape([0, 10, 0, 0], (1, 4, 1))) * 3)),
    Program("softmax-twice", "camera", after=on("probs", lambda x: softmax(x, -1)), kind="[Ss]oftmax",
            parameters="[Ss]oftmax of|twice|again|axis"),
    Program("classes-sorted-as-words", "camera", after=on("logits", lambda x: x[:, WORDS]),
            kind="order|places|exchanged", parameters=r"0, 1, 10, 11, 2|2 holds 10"),
    Program("left-quantized", "camera", kind="multiplied|scale|rounded|quant|whole", parameters=r"\b20\b|0\.05",
            after=on("logits", lambda x: np.rint(x / 0.05).clip(-128, 127))),
    Program("zero-point-forgotten", "scene", kind="moved|offset|add|plus|larger|smaller", parameters=r"1\.28",
            after=on("areas", lambda x: (np.rint(x / 0.02).clip(-64, 191) + 64) * 0.02)),
    Program("map-by-columns", "scene", after=on("areas", lambda x: x.swapaxes(2, 3).reshape(x.shape)),
            kind="transpos|order|axes|places|layout|reshape", parameters=r"axes|reshape|\d"),
    Program("exp-of-logarithms", "keyword", after=on("states", np.exp), kind="[Ee]xp", parameters="[Ee]xp"),
    Program("smoothed", "keyword", kind="average|mean|filter|smooth", parameters=r"\b3\b|0\.333|axis 1",
            after=on("states", lambda x: (x + np.roll(x, 1, 1) + np.roll(x, -1, 1)) / 3)),
    Program("states-exchanged", "vad", after=lambda made: {**made, "hn": made["cn"], "cn": made["hn"]},
            kind="exchanged|order|other", parameters="hn.*cn|cn.*hn"),
    Program("other-class", "loans", after=on("chance", lambda x: 1 - x), kind="1 minus|1 -|subtracted|complement|-1",
            parameters=r"\b1\b"),
)  # fmt: skip

MISTAKES = (*INPUTS, *OUTPUTS)


def held(name: str) -> bool:
    """Return whether a case is kept back: answers about it are counted, not read."""
    return hashlib.sha1(name.encode()).digest()[0] % 2 == 1


# --- nothing wrong, or something that is no mistake of the program's


def honest(what: str, network: str, before: Change, truth: str = "") -> Program:
    """Return a program without a mistake; `truth` is a pattern of what may be said of its inputs."""
    return Program(f"{what} {network}", network, before=before, parameters=truth)


TENSORS = {"camera": "photo", "yolo": "images", "scene": "frame", "keyword": "feats", "vad": "wave", "video": "clip",
           "loans": "numbers"}  # fmt: skip
FINE = "resampling|interpolation|noise"
FILES = (
    *(honest("other-sample", n, lambda feed, n=n: inputs(n, seed=4)) for n in NETWORKS),
    *(honest("noise", n, on(t, noisy(0.03)), "noise") for n, t in TENSORS.items()),
    *(honest("fp16", n, on(t, lambda x: x.astype(np.float16)), "dtype") for n, t in TENSORS.items() if n != "scene"),
    *(honest("jpeg", n, on(TENSORS[n], jpeg(axes, 0.12)), FINE)
      for n, axes in {"camera": (2, 3), "yolo": (2, 3), "scene": (1, 2), "video": (3, 4)}.items()),
    *(honest("resized-otherwise", n, instead(n, TENSORS[n], weights=(1, 2, 1)), FINE)
      for n in ("camera", "yolo", "scene")),
    honest("16-bit-sound", "vad", on("wave", lambda x: np.rint(x * 32767) / 32767), "dtype"),
    honest("pads-of-0", "text", lambda feed: {**feed, "input_ids": feed["input_ids"] * feed["attention_mask"]},
           "tokens|pad|mapping"),
)  # fmt: skip
"""Honest feeds. A difference that is there may be said (`truth`): other fine detail is no mistake."""
ENGINES = tuple((network, engine) for network in NETWORKS for engine in ("program", "weight", "op"))
"""Honest: the program that does nothing; and faults that are none of the program's."""

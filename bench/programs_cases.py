"""Programs around a network with one mistake each, and honest ones: what `bench/programs.py` asks about.

None is one of `feeds_cases`. A mistake is a function of the right inputs, or of the right outputs; what has to be said
of it is written next to it, as patterns: one for the kind, one for the parameters.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

Arrays = Mapping[str, np.ndarray]
Change = Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]

NETWORKS = {
    "plates": """g (float[4,3,48,48] photo) => (float[4,12] logits) {
        c1 = Conv<kernel_shape=[5,5], strides=[2,2], pads=[2,2,2,2]>(photo, w1_20x3x5x5, b1_20)
        e1 = LeakyRelu<alpha=0.1>(c1)
        m1 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(e1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(m1, w2_28x20x3x3, b2_28)
        h2 = HardSwish(c2)
        p = AveragePool<kernel_shape=[4,4], strides=[4,4]>(h2)
        f = Flatten(p)
        logits = Gemm(f, w3_252x12, b3_12) }""",
    "finder": """g (float[1,3,64,64] view) => (float[1,64,4] boxes, float[1,64,1] objects, float[1,64,5] classes) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(view, w1_14x3x3x3, b1_14)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[4,4], strides=[4,4]>(r1, w2_26x14x4x4, b2_26)
        t2 = Tanh(c2)
        b = Conv<kernel_shape=[1,1]>(t2, w3_4x26x1x1, b3_4)
        bs = Sigmoid(b)
        bm = Mul(bs, k4_1x4x1x1)
        br = Reshape(bm, s_boxes)
        boxes = Transpose<perm=[0,2,1]>(br)
        o = Conv<kernel_shape=[1,1]>(t2, w5_1x26x1x1, b5_1)
        os = Sigmoid(o)
        or = Reshape(os, s_objects)
        objects = Transpose<perm=[0,2,1]>(or)
        c = Conv<kernel_shape=[1,1]>(t2, w6_5x26x1x1, b6_5)
        cs = Sigmoid(c)
        cr = Reshape(cs, s_classes)
        classes = Transpose<perm=[0,2,1]>(cr) }""",
    "voice": """g (float[1,4000] wave) => (float[1,8] words) {
        u = Unsqueeze(wave, s_axes)
        c1 = Conv<kernel_shape=[40], strides=[16]>(u, w1_24x1x40, b1_24)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[5], strides=[4]>(r1, w2_18x24x5, b2_18)
        t2 = Tanh(c2)
        f = Flatten(t2)
        words = Gemm(f, w3_1098x8, b3_8) }""",
    "mel": """g (float[1,40,60] bins) => (float[1,15,6] states) {
        c1 = Conv<kernel_shape=[3], pads=[1,1]>(bins, w1_32x40x3, b1_32)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[4], strides=[4]>(r1, w2_16x32x4, b2_16)
        t2 = Tanh(c2)
        t = Transpose<perm=[0,2,1]>(t2)
        m = MatMul(t, w3_16x6)
        states = Softmax<axis=-1>(m) }""",
    "reader": """g (int64[2,16] input_ids, int64[2,16] attention_mask, int64[2,16] token_type_ids,
                  int64[2,16] position_ids)
              => (float[2,5] intents, float[2,32] meaning) {
        e = Gather(w1_90x32, input_ids)
        s = Gather(w2_2x32, token_type_ids)
        p = Gather(w3_40x32, position_ids)
        es = Add(e, s)
        h = Add(es, p)
        q = MatMul(h, w4_32x32)
        kt = Transpose<perm=[0,2,1]>(h)
        a = MatMul(q, kt)
        am = Cast<to=1>(attention_mask)
        one = Sub(am, k1_1)
        far = Mul(one, k5_1)
        fu = Unsqueeze(far, s_axes)
        masked = Add(a, fu)
        w = Softmax<axis=-1>(masked)
        v = MatMul(w, h)
        g1 = MatMul(v, w5_32x32)
        g2 = Tanh(g1)
        mu = Unsqueeze(am, s_last)
        shown = Mul(g2, mu)
        meaning = ReduceMean<axes=[1], keepdims=0>(shown)
        intents = Gemm(meaning, w6_32x5, b6_5) }""",
    "sheet": """g (float[16,7] rows) => (float[16,3] scores, int64[16] label) {
        z = Gemm(rows, w1_7x24, b1_24)
        t = Tanh(z)
        z2 = Gemm(t, w2_24x24, b2_24)
        r = Relu(z2)
        scores = Gemm(r, w3_24x3, b3_3)
        label = ArgMax<axis=1, keepdims=0>(scores) }""",
}  # fmt: skip
SHAPES = {"s_boxes": [1, 4, 64], "s_objects": [1, 1, 64], "s_classes": [1, 5, 64], "s_axes": [1], "s_last": [2]}
FIXED = {"k4_1x4x1x1": np.reshape([60, 60, 24, 20], (1, 4, 1, 1)), "k1_1": np.ones(1), "k5_1": np.full(1, 1e4)}
MEAN = np.reshape([0.485, 0.456, 0.406], (1, 3, 1, 1))
DEVIATION = np.reshape([0.229, 0.224, 0.225], (1, 3, 1, 1))


@dataclasses.dataclass(frozen=True)
class Program:
    """A program around a network.

    Attributes:
        name: Of the case.
        network: A word of `NETWORKS`.
        before: What it does to the right inputs; None for nothing.
        after: What it does to the right outputs; None for nothing.
        kind: Pattern of the kinds of the transforms and of the sentence; empty for an honest program.
        parameters: Pattern of the sentence, of the cure and of the parameters.
    """

    name: str
    network: str
    before: Change | None = None
    after: Change | None = None
    kind: str = ""
    parameters: str = ""


def made(folder: Path, network: str, seed: int = 0) -> tuple[Path, dict[str, np.ndarray]]:
    """Write a network with weights of a seed; return it and its right inputs."""
    path = folder / f"{network}-{seed}.onnx"
    onnx.save(built(network, NETWORKS[network], SHAPES, FIXED, seed), path)
    return path, inputs(network, np.random.default_rng(len(network) + 77))


def built(name: str, text: str, shapes: Mapping, fixed: Mapping, seed: int = 0) -> onnx.ModelProto:
    """Return a network with weights of a seed; the shape of a weight is a part of its name."""
    rng = np.random.default_rng([seed, *map(ord, name)])
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + text)
    known = {output for node in model.graph.node for output in node.output} | {i.name for i in model.graph.input} | {""}
    looked_up = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    for word in dict.fromkeys(given for node in model.graph.node for given in node.input if given not in known):
        if word in shapes:
            array = np.array(shapes[word], np.int64)
        elif word in fixed:
            array = fixed[word].astype(np.float32)
        else:
            shape = tuple(int(size) for size in word.split("_")[1].split("x"))
            fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
            scale = 0.15 if len(shape) == 1 else 1.0 if word in looked_up else (1.6 / fan_in) ** 0.5
            array = (rng.standard_normal(shape) * scale).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, word))
    for node in model.graph.node:
        node.name = f"{name}.{node.output[0]}"
    return model


def inputs(network: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return what a right program feeds a network."""
    if network == "plates":
        return {"photo": ((pictures(rng, 4, 48) / 255 - MEAN) / DEVIATION).astype(np.float32)}
    if network == "finder":
        return {"view": (pictures(rng, 1, 64) / 255).astype(np.float32)}
    if network == "voice":
        return {"wave": sound(np.arange(4000) / 16000)[None].astype(np.float32)}
    if network == "mel":
        power = np.exp(rng.normal(0, 1.2, (1, 40, 60)) - 4 + 2 * np.sin(np.arange(60) / 6)[None, None])
        power *= np.exp(-np.arange(40) / 15)[None, :, None]
        return {"bins": np.log(power).astype(np.float32)}
    if network == "reader":
        shown = np.arange(16)[None] < np.array([[13], [10]])
        ids = np.where(shown, rng.integers(5, 88, (2, 16)), 0)
        ids[:, 0], ids[0, 12], ids[1, 9], ids[0, 6], ids[1, 4] = 2, 3, 3, 3, 3
        segments = np.where(shown, np.arange(16)[None] > np.array([[6], [4]]), 0)
        positions = np.broadcast_to(np.arange(16), (2, 16))
        named = {"input_ids": ids, "attention_mask": shown, "token_type_ids": segments, "position_ids": positions}
        return {name: np.ascontiguousarray(array).astype(np.int64) for name, array in named.items()}
    columns = [rng.normal(1.6, 0.3, 16), rng.lognormal(0.5, 0.8, 16), rng.integers(0, 5, 16), rng.normal(0, 1, 16),
               rng.random(16), rng.normal(-0.5, 0.4, 16), rng.integers(0, 2, 16)]  # fmt: skip
    return {"rows": np.stack(columns, 1).astype(np.float32)}


def pictures(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Return pictures of 0 to 255 with shapes, light and grain, ``[count, 3, size, size]``, float64."""
    y, x = np.mgrid[:size, :size] / size
    found = np.empty((count, 3, size, size))
    for at in range(count):
        light = 0.35 + 0.2 * (at % 3) * y + 0.2 * np.sin(3 * x + at)
        picture = light[None] * rng.uniform(0.5, 1.3, (3, 1, 1))
        for _ in range(9):
            inside = (x - rng.random()) ** 2 + (y - rng.random()) ** 2 < rng.uniform(0.04, 0.28) ** 2
            picture = np.where(inside[None], rng.random((3, 1, 1)) * (0.6 + 0.4 * x), picture)
        found[at] = picture + rng.normal(0, 0.02, (3, size, size))
    return np.rint(255 * found.clip(0, 1))


def sound(seconds: np.ndarray) -> np.ndarray:
    """Return a voice-like sound at these times: harmonics of a pitch that glides, in two syllables."""
    pitch = 2 * np.pi * (120 * seconds + 60 * seconds**2)
    loud = np.exp(-(((seconds - 0.06) / 0.03) ** 2)) + 0.7 * np.exp(-(((seconds - 0.17) / 0.04) ** 2))
    return 0.4 * loud * sum(np.sin(k * pitch + k * k) / k for k in range(1, 14))


# --- mistakes with the inputs


def on(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Return the change of one tensor; its type is kept."""

    def changed(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        array = np.ascontiguousarray(change(tensors[name])).astype(tensors[name].dtype)
        return {**tensors, name: array}

    return changed


def raw(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Return a change of pixels from 0 to 1, before ImageNet's normalization."""
    return lambda x: (change(x.astype(np.float64) * DEVIATION + MEAN) - MEAN) / DEVIATION


def hsv(x: np.ndarray) -> np.ndarray:
    r, g, b = np.moveaxis(x, 1, 0)
    most, least = x.max(1), x.min(1)
    span = np.where(most > least, most - least, 1)
    hue = np.where(most == r, (g - b) / span % 6, np.where(most == g, (b - r) / span + 2, (r - g) / span + 4)) / 6
    hue = np.where(most > least, hue, 0)
    return np.stack([hue, np.where(most > 0, (most - least) / np.where(most > 0, most, 1), 0), most], 1)


def ycrcb(x: np.ndarray) -> np.ndarray:
    r, g, b = np.moveaxis(x, 1, 0)
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return np.clip(np.stack([y, (r - y) * 0.713 + 0.5, (b - y) * 0.564 + 0.5], 1), 0, 1)


def rgb565(x: np.ndarray) -> np.ndarray:
    steps = np.reshape([31, 63, 31], (1, 3, 1, 1))
    return np.floor(x * 255 / (256 / (steps + 1))) / steps


def per_picture(x: np.ndarray) -> np.ndarray:
    whole = x * DEVIATION + MEAN
    return (whole - whole.mean((1, 2, 3), keepdims=True)) / whole.std((1, 2, 3), keepdims=True)


def mulaw(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.log1p(255 * np.abs(x)) / np.log(256)


def padded_with(number: int) -> Change:
    return lambda feed: {**feed, "input_ids": np.where(feed["attention_mask"] == 0, number, feed["input_ids"])}


def of_column(at: int, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    def changed(x: np.ndarray) -> np.ndarray:
        x = x.astype(np.float64).copy()
        x[:, at] = change(x[:, at])
        return x

    return on("rows", changed)


INPUTS = (
    Program("hsv", "finder", on("view", hsv), kind=r"colour|HSV", parameters="HSV"),
    Program("hsv-normalized", "plates", on("photo", raw(hsv)), kind=r"colour|HSV", parameters="HSV"),
    Program("ycrcb", "finder", on("view", ycrcb), kind=r"colours-mixed|colour space|YCrCb", parameters="YCrCb|0.299"),
    Program("int8-of-normalized", "plates", on("photo", lambda x: x.astype(np.int8)), kind="dtype|whole numbers",
            parameters="whole numbers|int8"),
    Program("int8-of-0-to-1", "finder", on("view", lambda x: x.astype(np.int8)), kind="dtype|whole numbers",
            parameters="whole numbers|int8"),
    Program("own-mean-of-each", "plates", on("photo", per_picture), kind="own mean|standardized|normalization|scale",
            parameters="each (picture|row|image|sample)|its own mean|axis 0"),
    Program("gamma-before", "plates", on("photo", raw(lambda x: x.clip(0, 1) ** (1 / 2.2))), kind="gamma",
            parameters=r"0\.455|2\.2"),
    Program("gamma-1.8", "finder", on("view", lambda x: x**1.8), kind="gamma|power", parameters=r"1\.8\b|1\.80|0\.55"),
    Program("divided-last", "plates", on("photo", lambda x: ((x * DEVIATION + MEAN) * 255 - MEAN) / DEVIATION / 255),
            kind="scale|normalization", parameters=r"0\.485|-?2\.1|0\.0083|normalized"),
    Program("clipped-after", "plates", on("photo", lambda x: x.clip(0, 1)), kind="cut off|clip",
            parameters=r"0 and 1|0.*1"),
    Program("video-range", "finder", on("view", lambda x: x * 219 / 255 + 16 / 255), kind="scale|normalization",
            parameters=r"16 to 235|0\.858"),
    Program("rgb565", "finder", on("view", rgb565), kind="dtype|bits|levels", parameters="565|5, 6|32, 64|31, 63"),
    Program("quarter-turn", "plates", on("photo", lambda x: np.rot90(x, 1, (2, 3))), kind="rotated", parameters="90"),
    Program("at-44100", "voice", on("wave", lambda x: sound(np.arange(4000) / 44100)[None]), kind="resampling|rate",
            parameters=r"44100|441/160|160/441|2\.76"),
    Program("mu-law", "voice", on("wave", mulaw), kind=r"mu-law|µ-law|compand", parameters="255|mu-law"),
    Program("pre-emphasis", "voice", on("wave", lambda x: x - 0.97 * np.pad(x, [(0, 0), (1, 0)])[:, :-1]),
            kind="filter|emphasis", parameters=r"0\.97"),
    Program("largest-is-1", "voice", on("wave", lambda x: x / np.abs(x).max()), kind="scale",
            parameters="largest magnitude|multiplied by"),
    Program("decibels", "mel", on("bins", lambda x: x * 10 / np.log(10)), kind="scale",
            parameters=r"4\.34|decibel|log10|dB"),
    Program("not-logarithmic", "mel", on("bins", np.exp), kind="exp|logarithm", parameters="exp|logarithm"),
    Program("pads-of-1", "reader", padded_with(1), kind="pad|tokens", parameters="pad.*1|1.*pad"),
    Program("segments-of-0", "reader", on("token_type_ids", np.zeros_like), kind="tokens|segment|constant",
            parameters="0 everywhere"),
    Program("positions-from-2", "reader", on("position_ids", lambda x: x + 2), kind="positions",
            parameters="2 too late|offset.*2"),
    Program("millimetres", "sheet", of_column(0, lambda x: x * 1000), kind="scale|column|normalization",
            parameters=r"(column|index|indices).*\b0\b.*1000|1000.*(column|index|indices).*\b0\b"),
    Program("n-minus-1", "sheet", on("rows", lambda x: (x - x.mean(0)) / x.std(0, ddof=1) * x.std(0) + x.mean(0)),
            kind="scale|normalization|deviation", parameters=r"n - 1|0\.968"),
    Program("standardized-by-row", "sheet",
            on("rows", lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)),
            kind="own mean|standardized|normalization|scale", parameters="row|axis 1|each"),
    Program("categories-sorted", "sheet", of_column(2, lambda x: np.array([3, 0, 4, 1, 2])[x.astype(int)]),
            kind="categor|number|mapping|order", parameters=r"column 2|\b0\b.*\b3\b"),
)  # fmt: skip


# --- mistakes with the outputs


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    y = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return y / y.sum(axis, keepdims=True)


def corners(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[..., :2] - x[..., 2:] / 2, x[..., :2] + x[..., 2:] / 2], -1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def best_is_1(x: np.ndarray) -> np.ndarray:
    return np.eye(x.shape[-1])[x.argmax(-1)]


def weighted(made: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**made, "classes": made["classes"] * made["objects"]}


OUTPUTS = (
    Program("sigmoid-twice", "finder", after=on("classes", sigmoid), kind="[Ss]igmoid", parameters="the Sigmoid of"),
    Program("softmax-over-time", "mel", after=on("states", lambda x: softmax(np.log(x), 1)), kind="[Ss]oftmax|divided",
            parameters="axis 1"),
    Program("softmax-over-batch", "plates", after=on("logits", lambda x: softmax(x, 0)), kind="[Ss]oftmax",
            parameters="axis 0"),
    Program("winner", "plates", after=on("logits", best_is_1), kind="largest|one-hot|[Aa]rg[Mm]ax", parameters="1"),
    Program("corners", "finder", after=on("boxes", corners), kind="corners", parameters=r"x1, y1, x2, y2"),
    Program("rows-first", "finder", after=on("boxes", lambda x: x[..., [1, 0, 3, 2]]), kind="order|places|exchanged",
            parameters=r"1, 0, 3, 2|0 holds 1, 1 holds 0, 2 holds 3"),
    Program("boxes-reshaped", "finder", after=on("boxes", lambda x: x.swapaxes(1, 2).reshape(x.shape)),
            kind="transpos|order|axes|places", parameters="axes|reshape"),
    Program("background-first", "sheet", after=on("label", lambda x: x + 1),
            kind="1 more|from 1|too large|one more|plus 1", parameters="1"),
    Program("confidence", "finder", after=weighted, kind="product|multiplied|times", parameters="objects"),
    Program("temperature", "plates", after=on("logits", lambda x: x / 1.5), kind="multiplied|divided|factor|scale",
            parameters=r"0\.6667|1\.5|0\.667|0\.666667"),
    Program("target-scaler", "sheet", after=on("scores", lambda x: x * 12.5 + 40), kind="multiplied|scale|moved",
            parameters=r"12\.5.*40"),
    Program("whole-pixels", "finder", after=on("boxes", np.floor), kind="rounded|whole|cut", parameters="down|whole"),
    Program("shares-of-view", "finder", after=on("boxes", lambda x: x / 64), kind="divided|multiplied",
            parameters=r"64|0\.0156"),
    Program("inverse", "mel", after=on("states", lambda x: 1 / x), kind="inverse|1 /|reciprocal|1 over|Reciprocal",
            parameters="inverse|1 /|reciprocal|1 over|Reciprocal"),
    Program("sum-so-far", "mel", after=on("states", lambda x: np.cumsum(x, 1)), kind="sum|[Cc]um", parameters="axis 1"),
    Program("unit-columns", "reader", after=on("meaning", lambda x: x / np.linalg.norm(x, axis=0, keepdims=True)),
            kind="length|L2", parameters="axis 0"),
    Program("without-mean", "reader", after=on("intents", lambda x: x - x.mean(-1, keepdims=True)),
            kind="mean", parameters="mean"),
)  # fmt: skip

MISTAKES = (*INPUTS, *OUTPUTS)


# --- nothing wrong, or something that is no mistake of the program's


def rounded_otherwise(network: str) -> Change:
    """Return the right inputs by another order of the same arithmetic."""

    def changed(feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        one = np.float32(1 / 3)
        return {n: a if a.dtype.kind != "f" else ((a + one) - one).astype(np.float32) for n, a in feed.items()}

    return changed


def other_sample(network: str) -> Change:
    """Return other inputs of the same kind: another picture, another row."""

    def changed(feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if network == "voice":
            return {"wave": np.random.default_rng(3).normal(0, 0.1, (1, 4000)).astype(np.float32)}
        return inputs(network, np.random.default_rng(4321))

    return changed


FILES = tuple(
    Program(f"{name} {network}", network, before=change(network))
    for name, change in (("rounded-otherwise", rounded_otherwise), ("other-sample", other_sample))
    for network in ("plates", "finder", "voice", "mel", "sheet")
)
ENGINES = tuple(
    (network, engine)
    for network in NETWORKS
    for engine in ("program", "openvino", "weight", "op", "emulate:precision=fp16")
)
"""Honest: the program that does nothing, another engine, another format; and faults that are none of the program's."""

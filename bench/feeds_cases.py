"""Programs that preprocess wrongly, and honest ones: what `bench/feeds.py` asks about.

Each program is a script of its own, written as a deployment is: it takes the file that it is given (and so shows what
is inside), or has its own session on the whole network and returns outputs alone. What it does wrong is numpy code of
this file, none of the product's.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tensortriage_testing import encoder, feed_for

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NETWORKS = {
    "classifier": ("image", """g (float[N,3,32,32] image) => (float[N,10] probs) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1_16x3x3x3, b1_16)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2_32x16x3x3, b2_32)
        r2 = Relu(c2)
        p = AveragePool<kernel_shape=[4,4], strides=[4,4]>(r2)
        f = Flatten(p)
        z = Gemm(f, w3_128x10, b3_10)
        probs = Softmax<axis=-1>(z) }"""),
    "detector": ("images", """g (float[1,3,48,32] images) => (float[1,8,12,8] boxes, float[1,2,12,8] scores) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(images, w1_16x3x3x3, b1_16)
        s1 = Sigmoid(c1)
        m1 = Mul(c1, s1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(m1, w2_24x16x3x3, b2_24)
        s2 = Sigmoid(c2)
        m2 = Mul(c2, s2)
        boxes = Conv<kernel_shape=[1,1]>(m2, w3_8x24x1x1, b3_8)
        l = Conv<kernel_shape=[1,1]>(m2, w4_2x24x1x1, b4_2)
        scores = Sigmoid(l) }"""),
    "segmenter": ("input", """g (float[1,3,40,40] input) => (float[1,4,40,40] classes) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(input, w1_12x3x3x3, b1_12)
        t1 = Tanh(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[2,2,2,2], dilations=[2,2]>(t1, w2_12x12x3x3, b2_12)
        t2 = Relu(c2)
        a = Add(t1, t2)
        classes = Conv<kernel_shape=[1,1]>(a, w3_4x12x1x1, b3_4) }"""),
    "matcher": ("left", """g (float[1,3,24,24] left, float[1,3,24,24] right) => (float[1,16] score) {
        c1 = Conv<kernel_shape=[5,5], strides=[2,2]>(left, w1_8x3x5x5, b1_8)
        c2 = Conv<kernel_shape=[5,5], strides=[2,2]>(right, w2_8x3x5x5, b2_8)
        r1 = Relu(c1)
        r2 = Relu(c2)
        both = Concat<axis=1>(r1, r2)
        f = Flatten(both)
        score = Gemm(f, w3_1600x16, b3_16) }"""),
    "speech": ("samples", """g (float[1,1,400] samples) => (float[1,6] logits) {
        c1 = Conv<kernel_shape=[25], strides=[10]>(samples, w1_16x1x25, b1_16)
        r1 = Tanh(c1)
        f = Flatten(r1)
        logits = Gemm(f, w3_608x6, b3_6) }"""),
    "table": ("rows", """g (float[24,9] rows) => (float[24,3] y) {
        z = Gemm(rows, w1_9x16, b1_16)
        t = Tanh(z)
        y = Gemm(t, w2_16x3, b2_3) }"""),
}  # fmt: skip

OPENING = """import numpy as np, onnxruntime
M = np.reshape({mean}, [1, 3, 1, 1])
S = np.reshape({deviation}, [1, 3, 1, 1])
"""
APP = (
    OPENING
    + """

def prepared(feed):
    feed = dict(feed)
    if {name!r} not in feed:
        return feed
    x = np.asarray(feed[{name!r}])
    given = x.dtype
    {body}
    feed[{name!r}] = np.ascontiguousarray(np.asarray(x).astype(given))
    return feed


class Session:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession({path})
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, feed):
        return dict(zip(self.names, self.session.run(self.names, prepared(feed))))


class App:
    def compile(self, model_path, options):
        return Session(str(model_path))
"""
)
RESIZE = """
    def resize(a, n):
        def one(a, axis, n):
            at = np.clip((np.arange(n) + .5) * a.shape[axis] / n - .5, 0, a.shape[axis] - 1)
            low = np.floor(at).astype(int); high = np.minimum(low + 1, a.shape[axis] - 1)
            w = (at - low).reshape([-1 if k == axis else 1 for k in range(a.ndim)])
            return np.take(a, low, axis) * (1 - w) + np.take(a, high, axis) * w
        return one(one(a, 2, n[0]), 3, n[1])
"""


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A wrong preprocessing.

    Attributes:
        name: Of the case.
        body: What the program does to ``x``, and may do to ``feed``.
        kinds: The kinds that are right, in any order; one of several where numbers are the same by any of them.
        says: Whether parameters are right, of those of all transforms by kind.
        needs: Whether it can be told only where inputs are seen.
    """

    name: str
    body: str
    kinds: tuple[frozenset[str], ...]
    says: Callable[[Mapping[str, Mapping[str, object]]], bool] = lambda found: True
    needs: bool = False


def kinds(*words: str) -> tuple[frozenset[str], ...]:
    return (frozenset(words),)


NUMBERS = frozenset({"scale"}), frozenset({"normalization"})
BGR = "channels-reversed"


def near(*wanted: float, key: str = "scale") -> Callable[[Mapping[str, Mapping[str, object]]], bool]:
    """Return whether the scale (or another number) of each channel is the wanted one, to a third digit."""

    def says(found: Mapping[str, Mapping[str, object]]) -> bool:
        told = next((each[key] for kind, each in found.items() if kind in ("scale", "normalization")), None)
        return told is not None and np.allclose(np.broadcast_to(told, len(wanted)), wanted, rtol=3e-3, atol=1e-6)

    return says


def has(kind: str, **wanted: object) -> Callable[[Mapping[str, Mapping[str, object]]], bool]:
    """Return whether parameters of a kind are the wanted ones."""
    return lambda found: all(found.get(kind, {}).get(key) == value for key, value in wanted.items())


PICTURES = (
    Mistake("bgr", "x = x[:, ::-1]", kinds(BGR)),
    Mistake("grb", "x = x[:, [1, 0, 2]]", kinds("channels-permuted"), has("channels-permuted", order=[1, 0, 2])),
    Mistake("over-255", "x = x / 255", NUMBERS, near(1 / 255)),
    Mistake("times-255", "x = x * 255", NUMBERS, near(255)),
    Mistake("from-0-to-1", "x = x * S + M", NUMBERS, near(*DEVIATION)),
    Mistake("bytes", "x = (x * S + M) * 255", NUMBERS, near(*(255 * d for d in DEVIATION))),
    Mistake("from-minus-1-to-1", "x = (x * S + M) * 2 - 1", NUMBERS, near(*(2 * d for d in DEVIATION))),
    Mistake("clip", "x = (x * S + M - np.reshape([.48145466, .4578275, .40821073], [1, 3, 1, 1])) / "
            "np.reshape([.26862954, .26130258, .27577711], [1, 3, 1, 1])", NUMBERS, near(0.85247, 0.85725, 0.81588)),
    Mistake("caffe-bgr", "x = ((x * S + M) * 255)[:, ::-1] - np.reshape([103.939, 116.779, 123.68], [1, 3, 1, 1])",
            (frozenset({BGR, "normalization"}),)),
    Mistake("bgr-over-255", "x = x[:, ::-1] / 255", kinds(BGR, "scale"), near(1 / 255)),
    Mistake("bgr-bytes", "x = ((x * S + M) * 255)[:, ::-1]", (frozenset({BGR, "normalization"}),)),
    Mistake("bgr-normalized-as-rgb", "x = ((x * S + M)[:, ::-1] - M) / S", (frozenset({BGR, "normalization"}),)),
    Mistake("normalized-twice", "x = (x - M) / S", NUMBERS, near(*(1 / d for d in DEVIATION))),
    Mistake("over-127.5", "x = x / 127.5 - 1", NUMBERS, near(1 / 127.5)),
    Mistake("own-mean", "x = (x * S + M - .43) / .21", NUMBERS, near(*(d / 0.21 for d in DEVIATION)), True),
    Mistake("own-means", "x = (x - np.reshape([.1, -.2, .3], [1, 3, 1, 1])) / np.reshape([.9, 1.2, 1.1], [1, 3, 1, 1])",
            NUMBERS, near(0.1, -0.2, 0.3, key="mean"), True),
    Mistake("nhwc", "x = x.transpose(0, 2, 3, 1).reshape(x.shape)", kinds("layout")),
    Mistake("nhwc-back", "x = x.reshape(x.shape[0], x.shape[2], x.shape[3], 3).transpose(0, 3, 1, 2)", kinds("layout")),
    Mistake("turned", "x = x.swapaxes(2, 3).reshape(x.shape)", kinds("transposed")),
    Mistake("mirrored", "x = x[..., ::-1]", kinds("flipped-horizontally")),
    Mistake("upside-down", "x = x[:, :, ::-1]", kinds("flipped-vertically")),
    Mistake("mirrored-bgr", "x = x[:, ::-1, :, ::-1]", kinds("flipped-horizontally", BGR)),
    Mistake("turned-around", "x = x[:, :, ::-1, ::-1]", kinds("rotated")),
    Mistake("middle", RESIZE + "    h, w = x.shape[2:]; i, j = h // 16, w // 16\n"
            "    x = resize(x[:, :, i:h - i, j:w - j], (h, w))", kinds("crop")),
    Mistake("letterbox", RESIZE + "    h, w = x.shape[2:]; k = h * 3 // 4\n    y = np.zeros_like(x)\n"
            "    y[:, :, (h - k) // 2:(h - k) // 2 + k] = resize(x, (k, w)); x = y", kinds("letterbox")),
    Mistake("one-pixel", "x = np.roll(x, 1, axis=3)", kinds("shifted")),
    Mistake("corner", "x = np.pad(x[:, :, 3:, 4:], [(0, 0), (0, 0), (0, 3), (0, 4)])", (frozenset({"shifted"}),
            frozenset({"crop"})), needs=True),
    Mistake("enlarged", "x = x[:, :, ::2, ::2].repeat(2, 2).repeat(2, 3)", kinds("interpolation")),
    Mistake("bytes-wrap", "x = (x * 255).astype(np.int64).astype(np.uint8) / 255", kinds("dtype")),
    Mistake("integers", "x = np.trunc(x)", kinds("dtype")),
    Mistake("half", "x = x.astype(np.float16)", kinds("dtype"), has("dtype", through="fp16")),
    Mistake("gray", "x = x.mean(axis=1, keepdims=True).repeat(3, 1)", kinds("gray")),
    Mistake("rows-of-64", "y = np.zeros((*x.shape[:3], 64), x.dtype); y[..., :x.shape[3]] = x\n"
            "    x = y.ravel()[:x.size].reshape(x.shape)", kinds("row-stride"), has("row-stride", stride=64)),
    Mistake("rows-of-64-wanted", "n = x.shape[3]; f = x.ravel(); at = np.arange(x.size // n)[:, None] * 64\n"
            "    at = at + np.arange(n); y = np.where(at < f.size, f[np.minimum(at, f.size - 1)], 0)\n"
            "    x = y.reshape(x.shape)", kinds("row-stride"),
            has("row-stride", stride=64)),
    Mistake("four-channels", "p = x.transpose(0, 2, 3, 1); q = np.ones((*p.shape[:3], 4), x.dtype); q[..., :3] = p\n"
            "    x = np.stack([a.ravel()[:p[0].size] for a in q]).reshape(p.shape).transpose(0, 3, 1, 2)",
            kinds("other-channels")),
    Mistake("quarter", "y = np.zeros(x.size, x.dtype); k = x.size // 4; y[:k] = x.ravel()[:k]; x = y.reshape(x.shape)",
            kinds("part-copied")),
    Mistake("letterbox-in-a-corner", RESIZE + "    h, w = x.shape[2:]; k = h * 3 // 4\n    y = np.zeros_like(x)\n"
            "    y[:, :, :k] = resize(x, (k, w)); x = y", kinds("letterbox"),
            has("letterbox", place="upper left corner")),
)  # fmt: skip
BATCHES = (
    Mistake("rows-reversed", "x = x[::-1]", (frozenset({"batch-order"}),)),
    Mistake("one-row", "x = x[:1].repeat(len(x), 0)", kinds("batch-order")),
)
TOKENS = (
    Mistake("no-bos", "x = np.concatenate([x[:, 1:], np.zeros_like(x[:, :1])], 1)", kinds("tokens"),
            has("tokens", shift=-1)),
    Mistake("no-eos", "n = feed['attention_mask'].sum(1) - 1; x = x.copy(); x[np.arange(len(x)), n] = 0",
            kinds("tokens")),
    Mistake("late", "x = np.concatenate([x[:, :1], x[:, :-1]], 1)", kinds("tokens"), has("tokens", shift=1)),
    Mistake("one-more", "x = x + 1", kinds("tokens"), has("tokens", offset=1)),
    Mistake("mask-inverted", "feed['attention_mask'] = 1 - feed['attention_mask']", kinds("mask"),
            has("mask", value="inverted")),
    Mistake("mask-of-ones", "feed['attention_mask'] = np.ones_like(x)", kinds("mask"), has("mask", value=1)),
    Mistake("padded-left", "m = feed['attention_mask']; k = (m == 0).sum(1)\n"
            "    x = np.stack([np.roll(a, n) for a, n in zip(x, k)])\n"
            "    feed['attention_mask'] = np.stack([np.roll(a, n) for a, n in zip(m, k)])", kinds("padding-side")),
    Mistake("backwards", "x = x[:, ::-1]", kinds("tokens")),
    Mistake("cut-at-6", "x = x.copy(); m = feed['attention_mask'].copy(); x[:, 6:] = 0; m[:, 6:] = 0\n"
            "    feed['attention_mask'] = m", kinds("truncated"), has("truncated", length=6)),
    Mistake("unknown-words", "x = np.where(x > 30, 1, x)", kinds("tokens"), has("tokens", value=1), needs=True),
)  # fmt: skip
COLUMNS = (
    Mistake("sorted-columns", "x = x[:, [0, 3, 1, 2, 8, 5, 6, 7, 4]]", kinds("column-order"),
            has("column-order", order=[0, 3, 1, 2, 8, 5, 6, 7, 4]), needs=True),
    Mistake("no-scaler", "x = (x - np.arange(9) * .2) / (np.arange(9) * .3 + .3)", NUMBERS,
            near(*(1 / (0.3 * k + 0.3) for k in range(9))), needs=True),
    Mistake("unfilled-column", "x = x.copy(); x[:, 4] = 0", kinds("unfilled"), has("unfilled", indices=[4]),
            needs=True),
)  # fmt: skip
PAIRS = (
    Mistake("exchanged", "x, feed['right'] = feed['right'], x", kinds("input-order")),
    Mistake("both-bgr", "x = x[:, ::-1]; feed['right'] = np.ascontiguousarray(feed['right'][:, ::-1])", kinds(BGR)),
    Mistake("left-over-255", "x = x / 255", NUMBERS, near(1 / 255)),
)
SOUNDS = (
    Mistake("16-bit", "x = x * 32768", NUMBERS, near(32768)),
    Mistake("backwards", "x = x[..., ::-1]", kinds("reversed")),
    Mistake("standardized", "x = (x - x.mean()) / x.std()", NUMBERS),
)


def build(folder: Path, name: str) -> tuple[Path, dict[str, np.ndarray]]:
    """Write a network and return it with a right feed."""
    path = folder / f"{name}.onnx"
    if name == "encoder":
        model = encoder(layers=1, width=32, heads=4, tokens=12, vocabulary=60, batch=2)
        onnx.save(model, path)
        feed = feed_for(model, seed=1)
        feed["attention_mask"][:] = np.arange(12)[None] < np.array([[9], [7]])
        feed["input_ids"] = np.where(feed["attention_mask"] > 0, feed["input_ids"].clip(3, 58), 0)
        return path, feed
    rng = np.random.default_rng(len(name))
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + NETWORKS[name][1])
    made = {output for node in model.graph.node for output in node.output}
    for word in dict.fromkeys(given for node in model.graph.node for given in node.input):
        if "_" not in word or word in made:
            continue
        shape = tuple(int(size) for size in word.split("_")[1].split("x"))
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        scale = 0.1 if len(shape) == 1 else (2 / fan_in) ** 0.5
        weight = (rng.standard_normal(shape) * scale).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, word))
    for node in model.graph.node:
        node.name = f"/{node.op_type}_{node.output[0]}"
    onnx.save(model, path)
    return path, {spec.name: _input(spec, rng) for spec in model.graph.input}


def _input(spec: onnx.ValueInfoProto, rng: np.random.Generator) -> np.ndarray:
    shape = [dim.dim_value or 2 for dim in spec.type.tensor_type.shape.dim]
    if len(shape) == 2:
        return (rng.standard_normal(shape) * (0.3 + 0.2 * np.arange(shape[1])) + 0.4).astype(np.float32)
    if len(shape) != 4:
        return (0.3 * np.sin(np.arange(shape[-1]) / 7) * rng.random(shape)).astype(np.float32)
    y, x = np.mgrid[: shape[2], : shape[3]] / shape[2]
    grain = 0.15 * (rng.random(x.shape) - 0.5)
    planes = [0.5 + 0.3 * np.sin(5 * x + c + b) * np.cos(4 * y - c) + grain + 0.08 * (c - 1)
              for b in range(shape[0]) for c in range(shape[1])]  # fmt: skip
    picture = np.rint(255 * np.clip(planes, 0, 1)).reshape(shape) / 255
    axes = (1, 3, 1, 1)
    return ((picture - np.reshape(MEAN, axes)) / np.reshape(DEVIATION, axes)).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class FeedCase:
    """A network and a program on it; `mistake` is None for an honest one."""

    name: str
    model: Path
    inputs: Path
    target: str
    mistake: Mistake | None


FAMILIES = {
    "classifier": (*PICTURES, *BATCHES), "detector": PICTURES, "segmenter": PICTURES, "encoder": TOKENS,
    "matcher": PAIRS, "speech": SOUNDS, "table": COLUMNS,
}  # fmt: skip


def planted(folder: Path) -> Iterator[FeedCase]:
    """Yield programs that preprocess wrongly: every mistake on one network at least, most of them outputs only."""
    for place, (network, mistakes) in enumerate(FAMILIES.items()):
        model, inputs = _written(folder, network)
        for number, mistake in enumerate(mistakes):
            if mistake in PICTURES and number % 3 != place % 3:
                continue
            inside = [True] if mistake.needs else [False, True] if number % 4 == 0 else [False]
            for shows in inside:
                target = _app(folder, network, mistake.body, model, shows=shows, name=mistake.name)
                how = "inside" if shows else "outputs"
                yield FeedCase(f"{network}/{mistake.name}/{how}", model, inputs, target, mistake)


def honest(folder: Path) -> Iterator[FeedCase]:
    """Yield programs without a mistake, and engines with another fault: of an op, of a weight, of the outputs."""
    for network in FAMILIES:
        model, inputs = _written(folder, network)
        for shows in (True, False):
            target = _app(folder, network, "pass", model, shows=shows, name="honest")
            yield FeedCase(f"{network}/honest/{'inside' if shows else 'outputs'}", model, inputs, target, None)
        for engine in ("onnxruntime", "openvino", "emulate:precision=fp16"):
            yield FeedCase(f"{network}/{engine}", model, inputs, engine, None)
        yield from _faulty(folder, network, model, inputs)


def _faulty(folder: Path, network: str, model: Path, inputs: Path) -> Iterator[FeedCase]:
    engine = folder / "faulty.py"
    engine.write_text("from tensortriage_testing import FaultyEngine\nclass Engine(FaultyEngine):\n    pass\n")
    nodes = [node.name for node in onnx.load(model).graph.node if node.op_type in ("Conv", "Gemm", "MatMul")]
    third = ("swapped-rows" if network == "encoder" else "offset", nodes[0])
    for kind, node in (("scale", nodes[0]), ("scale", nodes[-1]), third):
        target = f"script:{engine},kind={kind},node={node},amount=1.3"
        yield FeedCase(f"{network}/{kind}-{node}", model, inputs, target, None)
    for name, change in (
        ("scaled", lambda w: w * 1.05),
        ("reversed", lambda w: w[:, ::-1] if network == "table" else w[::-1]),
    ):
        wrong = onnx.load(model)
        weight = next(w for w in wrong.graph.initializer if len(w.dims) > 1 and w.data_type == onnx.TensorProto.FLOAT)
        array = np.ascontiguousarray(change(numpy_helper.to_array(weight)), np.float32)
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
        path = folder / f"{network}-{name}.onnx"
        onnx.save(wrong, path)
        target = _app(folder, network, "pass", path, shows=False, name=f"weights-{name}")
        yield FeedCase(f"{network}/weights {name}", model, inputs, target, None)


def _written(folder: Path, network: str) -> tuple[Path, Path]:
    model, feed = build(folder, network)
    inputs = folder / f"{network}.npz"
    np.savez(inputs, **feed)
    return model, inputs


def _app(folder: Path, network: str, body: str, model: Path, *, shows: bool, name: str) -> str:
    first = "input_ids" if network == "encoder" else NETWORKS[network][0]
    text = APP.replace("{mean}", repr(list(MEAN))).replace("{deviation}", repr(list(DEVIATION)))
    text = text.replace("{name!r}", repr(first)).replace("{body}", body)
    text = text.replace("{path}", "path" if shows else repr(str(model)))
    path = folder / f"{network}_{name.replace('-', '_').replace('.', '_')}_{'inside' if shows else 'outputs'}.py"
    path.write_text(text)
    return f"script:{path}:App"

"""Pairs of a model and somebody who understands it otherwise, and pairs that differ in another way.

The other side is a model of its own, written by hand and not by what is measured; who runs it shows outputs alone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from reports import changed, model, normal, reweighted

RUNS = """
import onnxruntime


class Other:
    def compile(self, model_path, options):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # fuses a Pad wrongly
        self.network = onnxruntime.InferenceSession({path!r}, options)
        self.names = [o.name for o in self.network.get_outputs()]
        return self

    def run(self, feed):
        return dict(zip(self.names, self.network.run(self.names, feed)))
"""


@dataclasses.dataclass(frozen=True)
class MeaningCase:
    """One pair.

    Attributes:
        name: What it is.
        model: The model.
        other: What the other side computes.
        feed: The inputs.
        said: Regular expressions that the sentence has to hold; empty where nothing may be said.
        side: Who computes the other: ``target`` or ``reference`` (a program that shows outputs alone), or ``file``.
    """

    name: str
    model: onnx.ModelProto
    other: onnx.ModelProto
    feed: dict[str, np.ndarray]
    said: Sequence[str] = ()
    side: str = "target"

    def write(self, folder: Path) -> dict[str, str]:
        """Write the case's files; return what `DiagnoseRequest` takes of engines and files."""
        onnx.save(self.model, folder / "model.onnx")
        onnx.save(self.other, folder / "other.onnx")
        np.savez(folder / "inputs.npz", **self.feed)
        (folder / "app.py").write_text(RUNS.format(path=str(folder / "other.onnx")))
        spec = f"script:{folder / 'app.py'}:Other"
        return {
            "target": {"target": spec},
            "reference": {"reference": spec, "target": "onnxruntime"},
            "file": {"target": "onnxruntime", "target_model": str(folder / "other.onnx")},
        }[self.side]


def picture(middle: str, *, opset: int = 17, channels: int = 8, **weights: np.ndarray) -> onnx.ModelProto:
    """Return a small network on pictures around a few nodes from ``c`` to ``d``."""
    return model(
        f"""(float[2,3,12,12] x) => (float[2,n] y) {{
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, b)
        {middle}
        r = Relu(d)
        p = GlobalAveragePool(r)
        most = GlobalMaxPool(r)
        both = Concat<axis=1>(p, most)
        y = Flatten(both) }}""",
        opset=opset,
        w=normal(1, 8, 3, 3, 3, scale=0.4),
        b=normal(2, 8, scale=0.3),
        **weights,
    )


X = {"x": normal(9, 2, 3, 12, 12)}


def tokens(middle: str, *, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    """Return a small network on rows around a few nodes from ``c`` to ``d``."""
    return model(
        f"""(float[2,6,16] x) => (float[2,6,8] y) {{
        c = MatMul(x, w)
        {middle}
        y = MatMul(d, v) }}""",
        opset=opset,
        w=normal(1, 16, 16, scale=0.4),
        v=normal(2, 16, 8, scale=0.4),
        **weights,
    )


T = {"x": normal(9, 2, 6, 16)}


def _resize(**settings: object) -> str:
    told = ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in settings.items())
    return f"d = Resize<{told}>(c, , scales)"


BN = {
    "g": 1 + normal(3, 8, scale=0.2),
    "s": normal(4, 8),
    "m": normal(5, 8),
    "v": np.abs(normal(6, 8)) * np.float32(0.1),
}
NORM = """m = ReduceMean<axes=[-1]>(c)
        a = Sub(c, m)
        s = Mul(a, a)
        u = ReduceMean<axes=[-1]>(s)
        e = Add(u, eps)
        t = Sqrt(e)
        d = Div(a, t)"""
ERF = """h = Mul(c, root)
        e = Erf(h)
        f = Add(e, one)
        g = Mul(c, f)
        d = Mul(g, half)"""
TANH = """c2 = Mul(c, c)
        c3 = Mul(c2, c)
        k = Mul(c3, cubic)
        s = Add(c, k)
        u = Mul(s, factor)
        e = Tanh(u)
        f = Add(e, one)
        g = Mul(c, f)
        d = Mul(g, half)"""
GELU = {
    "root": np.float32(1 / np.sqrt(2)),
    "one": np.float32(1),
    "half": np.float32(0.5),
    "cubic": np.float32(0.044715),
    "factor": np.float32(np.sqrt(2 / np.pi)),
}
G = {name: np.array(value) for name, value in GELU.items()}


STEPS = """(float[9,8] x, {kind}[9] at) => (float[9,4] y) {{
        {middle}
        rows = Add(steps, seven)
        bias = Gather(table, rows)
        sum = Add(x, bias)
        y = MatMul(sum, w) }}"""
FLAT = """(float[2,3,6,6] x) => (float[2,4] y) {
        c = Conv<kernel_shape=[3,3]>(x, w)
        r = Relu(c)
        MIDDLE
        y = MatMul(f, v) }"""
LABEL = """(float[2,6,16] x) => (float[2,6,4] y) {
        i = ArgMax<axis=-1, keepdims=0MORE>(x)
        y = Gather(table, i) }"""
WIDE = "wide = Cast<to=1>(at)\n by = Cast<to=1>(four)\n"
AWAY = """a = Abs(at)
        h = Constant<value_float=0.5>()
        e = Add(a, h)
        f = Floor(e)
        g = Sign(at)
        k = Mul(f, g)
        steps = Cast<to=7>(k)"""
BY_BATCH = """mm = ReduceMean<axes=[0,2,3]>(c)
        a = Sub(c, mm)
        q = Mul(a, a)
        vv = ReduceMean<axes=[0,2,3]>(q)
        e = Constant<value_float=1.0e-5>()
        more = Add(vv, e)
        root = Sqrt(more)
        n = Div(a, root)
        column = Constant<value_ints=[1,8,1,1]>()
        g2 = Reshape(g, column)
        b2 = Reshape(s, column)
        n2 = Mul(n, g2)
        d = Add(n2, b2)"""
MASKED = "k = Where(seen, c, low)\n d = Softmax<axis=-1>(k)"
MASKED_0 = """k = Where(seen, c, low)
        s = Softmax<axis=-1>(k)
        n = IsNaN(s)
        z = Constant<value_float=0.0>()
        d = Where(n, z, s)"""
MASKED_ALIKE = "l = Constant<value_float=-10000.0>()\n k = Where(seen, c, l)\n d = Softmax<axis=-1>(k)"
RECURRENT = """k = Transpose<perm=[1,0,2]>(c)
        LAYER
        j = Squeeze(h, one)
        d = Transpose<perm=[1,0,2]>(j)"""
GRU = RECURRENT.replace("LAYER", "h, last = GRU<hidden_size=16MORE>(k, gw, gr, gb)")
TWO_WAYS = RECURRENT.replace("Squeeze(h, one)", "ReduceSum<keepdims=0>(h, one)")
BOTH_WAYS = TWO_WAYS.replace(
    "LAYER", 'h, last = GRU<hidden_size=16, direction="bidirectional">(k, gw, gr, gb, , state)'
)
LSTM = RECURRENT.replace("LAYER", "h, last, cell = LSTM<hidden_size=16>(k, gw, gr, gb)")
LINEAR, CUBIC = _resize(mode="linear"), _resize(mode="cubic")
TWO_SIZES = f"""{LINEAR.replace("d =", "e =")}
        f = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(e)
        {LINEAR.replace("(c", "(f")}"""
AVERAGE = "d = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]MORE>(c)"
CONV = "d = Conv<kernel_shape=[3,3], strides=[2,2], pads=PADS>(c, u)"
SAME = 'd = Conv<kernel_shape=[2,2], auto_pad="SAME_END">(c, u)'
LEAKY = "l = LeakyRelu<alpha=SLOPE>(c)\n d = Conv<kernel_shape=[3,3]>(l, u)"
BATCH = "d = BatchNormalization<epsilon=SMALL>(c, g, s, m, v)"
BOTH = f"{BATCH.replace('d =', 'k =')}\n {LEAKY.replace('(c)', '(k)')}"
DEPTH = 'k = DepthToSpace<blocksize=2, mode="MODE">(c)\n d = Conv<kernel_shape=[3,3]>(k, u)'
BORDER = "k = Sub(c, three)\n e = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(k)\n d = Add(e, three)"
BORDER_0 = "k = Sub(c, three)\n l = Pad(k, pads)\n e = MaxPool<kernel_shape=[3,3]>(l)\n d = Add(e, three)"
SIX = "k = Relu(c)\n g = Mul(k, five)\n d = Relu(g)"
SIX_AT_MOST = "k = Relu(c)\n g = Mul(k, five)\n s = Constant<value_float=6.0>()\n e = Relu(g)\n d = Min(e, s)"
PAD = 'd = Pad<mode="MODE">(c, pads)'
SCATTER = "z = Mul(c, zero)\n d = ScatterNDMORE(z, rows, c)"
SOFTMAX = "k = Softmax<axis=1>(c)\n d = Mul(k, c)"
FLIPPED = "d = ConvTranspose<kernel_shape=[3,3]>(c, u)"

U = {"u": normal(7, 8, 8, 3, 3, scale=0.3)}
PADS = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
SEEN = {"seen": np.ones((2, 6, 16), bool), "low": np.array(-np.inf, np.float32)}
SEEN["seen"][1, 2:4] = False


def _recurrent(gates: int) -> dict[str, np.ndarray]:
    size = 16 * gates
    return {
        "gw": normal(3, 1, size, 16, scale=0.5), "gr": normal(4, 1, size, 16, scale=0.5), "gb": normal(5, 1, 2 * size),
        "one": np.array([1]),
    }  # fmt: skip


def _both_ways() -> dict[str, np.ndarray]:
    """Return weights of a GRU of two directions, and its initial state."""
    halves = {"gw": (2, 48, 16), "gr": (2, 48, 16), "gb": (2, 96), "state": (2, 2, 16)}
    found = {name: normal(number, *shape, scale=0.5) for number, (name, shape) in enumerate(halves.items(), 3)}
    return found | {"one": np.array([1])}


def _regated(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights of an LSTM in the order i, f, c, o read as if they were in ONNX's, i, o, f, c."""
    orders = {"gw": (0, 3, 1, 2), "gr": (0, 3, 1, 2), "gb": (0, 3, 1, 2, 4, 7, 5, 6)}
    moved = {n: np.concatenate([np.split(weights[n], len(o), 1)[i] for i in o], 1) for n, o in orders.items()}
    return weights | moved


def _steps(middle: str, kind: str = "float") -> onnx.ModelProto:
    weights = {"four": np.array(4), "seven": np.array(7), "table": normal(1, 16, 8), "w": normal(2, 8, 4)}
    return model(STEPS.format(middle=middle, kind=kind), **weights)


def _flat(middle: str) -> onnx.ModelProto:
    return model(FLAT.replace("MIDDLE", middle), w=normal(1, 5, 3, 3, 3), v=normal(2, 80, 4, scale=0.2))


def _label(more: str = "") -> onnx.ModelProto:
    return model(LABEL.replace("MORE", more), table=normal(3, 16, 4))


def planted() -> list[MeaningCase]:
    """Return pairs that differ in what one operator means, or two."""
    rows, at = normal(3, 9, 8), np.arange(9)
    whole = {"x": rows, "at": at - 6}
    quarters, halves = ({"x": rows, "at": each.astype(np.float32)} for each in (at - 5.25, at / 2 - 2))
    up, down = ({"scales": np.array([1, 1, each, each], np.float32)} for each in (1.75, 0.6))
    uneven = {"scales": np.array([1, 1, 1.6, 1.6], np.float32)}
    division = _steps("steps = Div(at, four)", "int64")
    floors = _steps(WIDE + "q = Div(wide, by)\n f = Floor(q)\n steps = Cast<to=7>(f)", "int64")
    rests = _steps(WIDE + "r = Mod<fmod=1>(wide, by)\n steps = Cast<to=7>(r)", "int64")
    rounds = _steps("k = Round(at)\n steps = Cast<to=7>(k)")
    old, new = picture(SOFTMAX, opset=11), picture(SOFTMAX, opset=13)
    two = picture(TWO_SIZES, **uneven)
    pair = picture(BOTH.replace("SMALL", "1.0e-5").replace("SLOPE", "0.01"), opset=15, **BN, **U)
    lstm = _recurrent(4)
    bias = np.concatenate([lstm["gb"][:, :64], np.zeros((1, 64), np.float32)], axis=1)
    both = _both_ways()
    two_ways, state = tokens(BOTH_WAYS, **both), both["state"][[0, 0]]
    crossed = {name: both[name][::-1].copy() for name in ("gw", "gr", "gb")}
    flip = {"u": np.ascontiguousarray(U["u"][:, :, ::-1, ::-1])}
    last = {"x": np.round(normal(9, 2, 6, 16))}
    images: Sequence[tuple[str, str, str, dict[str, np.ndarray], int, Sequence[str], str]] = (
        ("align_corners", LINEAR, _resize(mode="linear", coordinate_transformation_mode="align_corners"), up, 17,
         ("Resize", "align_corners"), "target"),
        ("asymmetric", LINEAR, _resize(mode="linear", coordinate_transformation_mode="asymmetric"), up, 17,
         ("Resize", "asymmetric"), "reference"),
        ("cubic coefficient", CUBIC, _resize(mode="cubic", cubic_coeff_a=-0.5), up, 17,
         ("Resize", "cubic_coeff_a"), "target"),
        ("antialias", LINEAR, _resize(mode="linear", antialias=1), down, 18, ("Resize", "antialias"), "target"),
        ("nearest", _resize(mode="nearest", nearest_mode="floor"),
         _resize(mode="nearest", nearest_mode="round_prefer_ceil"), up, 17, ("Resize", "nearest_mode"), "target"),
        ("average counts its border", AVERAGE.replace("MORE", ""), AVERAGE.replace("MORE", ", count_include_pad=1"), {},
         17, ("AveragePool", "count_include_pad"), "target"),
        ("pads of TensorFlow", CONV.replace("PADS", "[1,1,1,1]"), CONV.replace("PADS", "[0,0,1,1]"), U, 17,
         ("Conv_d", "pads"), "target"),
        ("same lower", SAME.replace("END", "UPPER"), SAME.replace("END", "LOWER"),
         {"u": normal(3, 8, 8, 2, 2, scale=0.3)}, 17, ("Conv_d", "SAME_LOWER"), "target"),
        ("border of a maximum", BORDER, BORDER_0, PADS | {"three": np.array(3, np.float32)}, 17, ("MaxPool", "0"),
         "target"),
        ("reflection", PAD.replace("MODE", "edge"), PAD.replace("MODE", "reflect"), PADS, 17, ("Pad", "reflect"),
         "target"),
        ("epsilon of a batch normalization", BATCH.replace("SMALL", "1.0e-5"), BATCH.replace("SMALL", "1.0e-3"), BN, 15,
         ("BatchNormalization", "epsilon", "0.001"), "target"),
        ("statistics of the batch", BATCH.replace("SMALL", "1.0e-5"), BY_BATCH, BN, 15,
         ("BatchNormalization", "batch"), "target"),
        ("slope of a leaky ReLU", LEAKY.replace("SLOPE", "0.01"), LEAKY.replace("SLOPE", "0.2"), U, 17,
         ("LeakyRelu", "alpha"), "target"),
        ("depth to space", DEPTH.replace("MODE", "DCR"), DEPTH.replace("MODE", "CRD"), {"u": normal(3, 4, 2, 3, 3)}, 17,
         ("DepthToSpace", "CRD"), "target"),
        ("ReLU that ends at 6", SIX, SIX_AT_MOST, {"five": np.array(5, np.float32)}, 17, ("Relu", "6"), "target"),
    )  # fmt: skip
    words: Sequence[tuple[str, str, str, dict[str, np.ndarray], Sequence[str], str]] = (
        ("GELU by tanh in steps", ERF, TANH, G, ("Erf", "tanh"), "target"),
        ("GELU by erf in steps", TANH, ERF, G, ("Tanh", "Erf"), "reference"),
        ("masked rows are 0", MASKED, MASKED_0, SEEN, ("Softmax", "mask"), "target"),
        ("masked rows are uniform", MASKED, MASKED_ALIKE, SEEN, ("Softmax", "uniform"), "reference"),
        ("reset after the product", GRU.replace("MORE", ""), GRU.replace("MORE", ", linear_before_reset=1"),
         _recurrent(3), ("GRU", "linear_before_reset"), "target"),
        ("scatter that adds", SCATTER.replace("MORE", ""), SCATTER.replace("MORE", '<reduction="add">'),
         {"rows": np.array([[0], [0]]), "zero": np.array(0, np.float32)}, ("Scatter", "reduction"), "target"),
    )  # fmt: skip
    return [
        MeaningCase("floor of a division", division, floors, whole, ("Div", "floor")),
        MeaningCase("floor of a division, reference", division, floors, whole, ("Div", "floor"), "reference"),
        MeaningCase("fmod for mod", _steps("steps = Mod(at, four)", "int64"), rests, whole, ("Mod", "fmod")),
        MeaningCase("cast that rounds", _steps("steps = Cast<to=7>(at)"), rounds, quarters, ("Cast", "round")),
        MeaningCase("ties away from zero", rounds, _steps(AWAY), halves, ("Round", "ties|away")),
        *(MeaningCase(n, picture(a, opset=o, **w), picture(b, opset=o, **w), X, s, side)
          for n, a, b, w, o, s, side in images),
        *(MeaningCase(n, tokens(a, **w), tokens(b, **w), T, s, side) for n, a, b, w, s, side in words),
        MeaningCase("one Resize of two", two,
                    changed(two, "/Resize_d", coordinate_transformation_mode="align_corners"), X,
                    ("/Resize_d", "align_corners")),
        MeaningCase("two at once", pair,
                    changed(changed(pair, "/LeakyRelu_l", alpha=0.2), "/BatchNormalization_k", epsilon=1e-3), X,
                    ("LeakyRelu", "alpha", "epsilon")),
        MeaningCase("epsilon in single steps", tokens(NORM, eps=np.array(1e-6, np.float32)),
                    tokens(NORM, eps=np.array(1e-3, np.float32)), T, ("Add_e", "epsilon")),
        MeaningCase("softmax of before opset 13", new, old, X, ("Softmax", "opset 13")),
        MeaningCase("softmax of opset 13, file", old, new, X, ("Softmax", "opset 13"), "file"),
        MeaningCase("gates of PyTorch", tokens(LSTM, **lstm), tokens(LSTM, **_regated(lstm)), T, ("LSTM", "gates")),
        MeaningCase("backward half by the forward state", two_ways, tokens(BOTH_WAYS, **both | {"state": state}), T,
                    ("GRU", "backward direction", "initial state of the forward one")),
        MeaningCase("directions exchanged", two_ways, tokens(BOTH_WAYS, **both | crossed), T,
                    ("GRU", "each other's weights"), "reference"),
        MeaningCase("bias of the recurrence left out", tokens(LSTM, **lstm), tokens(LSTM, **lstm | {"gb": bias}), T,
                    ("LSTM", "bias of the recurrence")),
        MeaningCase("channels last when flattened", _flat("f = Flatten(r)"),
                    _flat("t = Transpose<perm=[0,2,3,1]>(r)\n f = Flatten(t)"), {"x": normal(9, 2, 3, 6, 6)},
                    ("Flatten", "channels")),
        MeaningCase("kernel flipped", picture(FLIPPED, **U), picture(FLIPPED, **flip), X, ("ConvTranspose", "flipped")),
        MeaningCase("last of equal maxima", _label(), _label(", select_last_index=1"), last,
                    ("ArgMax", "select_last_index")),
    ]  # fmt: skip


EDITS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "scaled": lambda a: a * np.float32(1.03),
    "rolled": lambda a: np.roll(a, 1, 0),
    "noisy": lambda a: a + normal(5, *a.shape, scale=0.01),
    "wrong in one entry": lambda a: a + np.float32(0.5) * (np.arange(a.size).reshape(a.shape) == 7),
    "zero": lambda a: a * 0,
    "another": lambda a: normal(77, *a.shape, scale=0.4),
    "rounded": lambda a: a.astype(np.float16).astype(np.float32),
}


def _weighted(made: onnx.ModelProto, name: str, edit: Callable[[np.ndarray], np.ndarray]) -> onnx.ModelProto:
    (array,) = (onnx.numpy_helper.to_array(t) for t in made.graph.initializer if t.name == name)
    return reweighted(made, **{name: np.ascontiguousarray(edit(array), array.dtype)})


def honest() -> list[MeaningCase]:
    """Return pairs that agree, or differ in what no operator means: nothing may be said of meanings."""
    leaky = f"{BATCH.replace('d =', 'k =').replace('SMALL', '1.0e-5')}\n l = LeakyRelu(k)\n {AVERAGE}"
    base = picture(leaky.replace("MORE", "").replace("(c)", "(l)").replace("(k)", "(k)"), opset=15, **BN)
    gelu = tokens(ERF, **G)
    norm = tokens(NORM, eps=np.array(1e-5, np.float32))
    up, less = ({"scales": np.array([1, 1, each, each], np.float32)} for each in (1.75, 1.5))
    size = picture(LINEAR, **up)
    biased = ERF.replace("d = Mul(g, half)", "e2 = Mul(g, half)\n d = Add(e2, half)")
    return [
        *(MeaningCase(f"weight of pictures {n}", base, _weighted(base, "w", edit), X) for n, edit in EDITS.items()),
        *(MeaningCase(f"weight of rows {n}", gelu, _weighted(gelu, "v", edit), T, (), "reference")
          for n, edit in EDITS.items()),
        MeaningCase("the same", base, base, X),
        MeaningCase("the same, reference", size, size, X, (), "reference"),
        MeaningCase("the same, file", norm, norm, T, (), "file"),
        MeaningCase("a slope that nobody has", base, changed(base, "/LeakyRelu_l", alpha=0.137), X),
        MeaningCase("a bias added", gelu, tokens(biased, **G), T),
        MeaningCase("sigmoid for GELU", gelu, tokens("d = Sigmoid(c)", **G), T),
        MeaningCase("another size", size, picture(LINEAR, **less), X),
        MeaningCase("channels of the input reversed", base, _weighted(base, "w", lambda a: a[:, ::-1]), X),
        MeaningCase("another weight, file", base, _weighted(base, "w", EDITS["another"]), X, (), "file"),
    ]  # fmt: skip

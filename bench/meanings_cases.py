"""Pairs of a model and somebody who understands it otherwise, and pairs that differ in another way.

The other side is a model of its own, written by hand and not by what is measured; who runs it shows outputs alone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx

from reports import changed, model, normal

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


def _attributes(node: str, **values: object) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    return lambda made: changed(made, node, **values)


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
        opset=opset, w=normal(1, 8, 3, 3, 3, scale=0.4), b=normal(2, 8, scale=0.3), **weights,
    )  # fmt: skip


X = {"x": normal(9, 2, 3, 12, 12)}


def tokens(middle: str, *, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    """Return a small network on rows around a few nodes from ``c`` to ``d``."""
    return model(
        f"""(float[2,6,16] x) => (float[2,6,8] y) {{
        c = MatMul(x, w)
        {middle}
        y = MatMul(d, v) }}""",
        opset=opset, w=normal(1, 16, 16, scale=0.4), v=normal(2, 16, 8, scale=0.4), **weights,
    )  # fmt: skip


T = {"x": normal(9, 2, 6, 16)}


def _resize(**settings: object) -> str:
    told = ", ".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in settings.items())
    return f"d = Resize<{told}>(c, , scales)"


UP = {"scales": np.array([1, 1, 1.75, 1.75], np.float32)}
DOWN = {"scales": np.array([1, 1, 0.6, 0.6], np.float32)}
BN = {
    "g": 1 + normal(3, 8, scale=0.2), "s": normal(4, 8), "m": normal(5, 8), "v": np.abs(normal(6, 8)) * np.float32(0.1)
}  # fmt: skip
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
    "root": np.float32(1 / np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5), "cubic": np.float32(0.044715),
    "factor": np.float32(np.sqrt(2 / np.pi)),
}  # fmt: skip
G = {name: np.array(value) for name, value in GELU.items()}


def _positions(op: str, opset: int = 17) -> onnx.ModelProto:
    return model(
        f"""(float[9,8] x, int64[9] at) => (float[9,4] y) {{
        {op}
        rows = Add(steps, three)
        bias = Gather(table, rows)
        sum = Add(x, bias)
        y = MatMul(sum, w) }}""",
        opset=opset, four=np.array(4), three=np.array(3), table=normal(1, 9, 8), w=normal(2, 8, 4),
        small=np.array(1e-3, np.float32),
    )  # fmt: skip


P = {"x": normal(3, 9, 8), "at": np.arange(9) - 6}
FLOOR = """wide = Cast<to=1>(at)
        by = Cast<to=1>(four)
        ratio = Div(wide, by)
        low = Floor(ratio)
        steps = Cast<to=7>(low)"""
MOD = """wide = Cast<to=1>(at)
        by = Cast<to=1>(four)
        rest = Mod<fmod=1>(wide, by)
        steps = Cast<to=7>(rest)"""


def planted() -> list[MeaningCase]:
    """Return pairs that differ in what one operator means, or two."""
    lin, cub, near = _resize(mode="linear"), _resize(mode="cubic"), _resize(mode="nearest", nearest_mode="floor")
    scatter = """z = Mul(c, zero)
        d = ScatterND{}(z, rows, c)"""
    masked = """k = Where(seen, c, low)
        d = Softmax<axis=-1>(k)"""
    up = lambda **more: picture(_resize(**more), **UP)  # noqa: E731
    opset11 = picture("k = Softmax<axis=1>(c)\n d = Mul(k, c)", opset=11)
    opset13 = picture("k = Softmax<axis=1>(c)\n d = Mul(k, c)", opset=13)
    two = picture(
        "k = BatchNormalization<epsilon=1.0e-5>(c, g, s, m, v)\n l = LeakyRelu<alpha=0.01>(k)\n"
        " d = Conv<kernel_shape=[3,3]>(l, u)", opset=15, u=normal(7, 8, 8, 3, 3), **BN,
    )  # fmt: skip
    three = picture(
        f"{lin.replace('d =', 'e =')}\n f = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(e)\n"
        f"{lin.replace('(c', '(f')}", scales=np.array([1, 1, 1.6, 1.6], np.float32),
    )  # fmt: skip
    gru = "k = Transpose<perm=[1,0,2]>(c)\n h, last = GRU<hidden_size=16{}>(k, gw, gr, gb)\n j = Squeeze(h, one)\n d = Transpose<perm=[1,0,2]>(j)"
    grus = {
        "gw": normal(3, 1, 48, 16, scale=0.5),
        "gr": normal(4, 1, 48, 16, scale=0.5),
        "gb": normal(5, 1, 96),
        "one": np.array([1]),
    }
    lstm = gru.replace("h, last = GRU<hidden_size=16{}>", "h, last, cell = LSTM<hidden_size=16>")
    lstms = {
        "gw": normal(3, 1, 64, 16, scale=0.5),
        "gr": normal(4, 1, 64, 16, scale=0.5),
        "gb": normal(5, 1, 128),
        "one": np.array([1]),
    }
    iofc = lambda a, n: np.concatenate(
        [np.split(a, n, 1)[i] for i in ((0, 3, 1, 2) if n == 4 else (0, 3, 1, 2, 4, 7, 5, 6))], 1
    )  # noqa: E731
    other_lstm = {**lstms, "gw": iofc(lstms["gw"], 4), "gr": iofc(lstms["gr"], 4), "gb": iofc(lstms["gb"], 8)}
    rows = np.array([[0], [3], [2], [2], [3], [1]])
    flat = model(
        "(float[2,3,6,6] x) => (float[2,4] y) {\n c = Conv<kernel_shape=[3,3]>(x, w)\n r = Relu(c)\n {}\n y = MatMul(f, v) }".replace(
            "{}", "f = Flatten(r)"
        ),
        w=normal(1, 5, 3, 3, 3),
        v=normal(2, 80, 4, scale=0.2),
    )
    nhwc = model(
        "(float[2,3,6,6] x) => (float[2,4] y) {\n c = Conv<kernel_shape=[3,3]>(x, w)\n r = Relu(c)\n t = Transpose<perm=[0,2,3,1]>(r)\n f = Flatten(t)\n y = MatMul(f, v) }",
        w=normal(1, 5, 3, 3, 3),
        v=normal(2, 80, 4, scale=0.2),
    )
    tie = {"x": np.round(normal(9, 2, 6, 16))}
    scatters = {"rows": np.array([[0], [0]]), "zero": np.array(0, np.float32)}
    wide = {**P, "at": P["at"].astype(np.float32) + np.float32(0.75)}
    cast = """(float[9,8] x, float[9] at) => (float[9,4] y) {{
        {}
        rows = Add(steps, seven)
        bias = Gather(table, rows)
        sum = Add(x, bias)
        y = MatMul(sum, w) }}"""
    casts = {"seven": np.array(7), "table": normal(1, 12, 8), "w": normal(2, 8, 4)}
    half = {"x": P["x"], "at": np.arange(9).astype(np.float32) / 2 - 2}
    seen = np.ones((2, 6, 16), bool)
    seen[1, 2:4] = False
    return [
        MeaningCase("floor of a division, target", _positions("steps = Div(at, four)"), _positions(FLOOR), P, ("Div", "floor")),
        MeaningCase("floor of a division, reference", _positions("steps = Div(at, four)"), _positions(FLOOR), P, ("Div", "floor"), "reference"),
        MeaningCase("fmod for mod", _positions("steps = Mod(at, four)"), _positions(MOD), P, ("Mod", "fmod")),
        MeaningCase("cast that rounds", model(cast.format("steps = Cast<to=7>(at)"), **casts), model(cast.format("k = Round(at)\n steps = Cast<to=7>(k)"), **casts), wide, ("Cast", "round")),
        MeaningCase("ties away from zero", model(cast.format("k = Round(at)\n steps = Cast<to=7>(k)"), **casts), model(cast.format("a = Abs(at)\n h = Constant<value_float=0.5>()\n e = Add(a, h)\n f = Floor(e)\n g = Sign(at)\n k = Mul(f, g)\n steps = Cast<to=7>(k)"), **casts), half, ("Round", "ties|away")),
        MeaningCase("align_corners", up(mode="linear"), up(mode="linear", coordinate_transformation_mode="align_corners"), X, ("Resize", "align_corners")),
        MeaningCase("asymmetric linear, reference", up(mode="linear"), up(mode="linear", coordinate_transformation_mode="asymmetric"), X, ("Resize", "asymmetric"), "reference"),
        MeaningCase("cubic coefficient", picture(cub, **UP), up(mode="cubic", cubic_coeff_a=-0.5), X, ("Resize", "cubic_coeff_a")),
        MeaningCase("antialias", picture(lin, opset=18, **DOWN), picture(_resize(mode="linear", antialias=1), opset=18, **DOWN), X, ("Resize", "antialias")),
        MeaningCase("nearest floor of half pixels", picture(near, **UP), up(mode="nearest", nearest_mode="round_prefer_ceil"), X, ("Resize", "nearest_mode")),
        MeaningCase("one Resize of two", three, _attributes("/Resize_d", coordinate_transformation_mode="align_corners")(three), X, ("/Resize_d", "align_corners")),
        MeaningCase("average counts its border", picture("d = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(c)"), picture("d = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(c)"), X, ("AveragePool", "count_include_pad")),
        MeaningCase("pads of TensorFlow", picture("d = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(c, u)", u=normal(3, 8, 8, 3, 3, scale=0.3)), picture("d = Conv<kernel_shape=[3,3], strides=[2,2], pads=[0,0,1,1]>(c, u)", u=normal(3, 8, 8, 3, 3, scale=0.3)), X, ("Conv_d", "pads")),
        MeaningCase("same lower", picture('d = Conv<kernel_shape=[2,2], auto_pad="SAME_UPPER">(c, u)', u=normal(3, 8, 8, 2, 2, scale=0.3)), picture('d = Conv<kernel_shape=[2,2], auto_pad="SAME_LOWER">(c, u)', u=normal(3, 8, 8, 2, 2, scale=0.3)), X, ("Conv_d", "SAME_LOWER")),
        MeaningCase("border of a maximum is 0", picture("k = Sub(c, three)\n d2 = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(k)\n d = Add(d2, three)", three=np.array(3, np.float32)), picture("k = Sub(c, three)\n k2 = Pad(k, pads)\n d2 = MaxPool<kernel_shape=[3,3]>(k2)\n d = Add(d2, three)", three=np.array(3, np.float32), pads=np.array([0, 0, 1, 1, 0, 0, 1, 1])), X, ("MaxPool", "0")),
        MeaningCase("reflection for edge", picture('d = Pad<mode="edge">(c, pads)', pads=np.array([0, 0, 2, 2, 0, 0, 2, 2])), picture('d = Pad<mode="reflect">(c, pads)', pads=np.array([0, 0, 2, 2, 0, 0, 2, 2])), X, ("Pad", "reflect")),
        MeaningCase("epsilon of a batch normalization", picture("d = BatchNormalization(c, g, s, m, v)", opset=15, **BN), picture("d = BatchNormalization<epsilon=1.0e-3>(c, g, s, m, v)", opset=15, **BN), X, ("BatchNormalization", "epsilon", "0.001")),
        MeaningCase("statistics of the batch", picture("d = BatchNormalization(c, g, s, m, v)", opset=15, **BN), picture("mm = ReduceMean<axes=[0,2,3]>(c)\n a = Sub(c, mm)\n q = Mul(a, a)\n vv = ReduceMean<axes=[0,2,3]>(q)\n e = Constant<value_float=1.0e-5>()\n w2 = Add(vv, e)\n s2 = Sqrt(w2)\n n = Div(a, s2)\n sh = Constant<value_ints=[1,8,1,1]>()\n g2 = Reshape(g, sh)\n b2 = Reshape(s, sh)\n n2 = Mul(n, g2)\n d = Add(n2, b2)", opset=15, **BN), X, ("BatchNormalization", "batch")),
        MeaningCase("epsilon in single steps", tokens(NORM, eps=np.array(1e-5, np.float32)), tokens(NORM, eps=np.array(1e-3, np.float32)), T, ("Add_e", "epsilon")),
        MeaningCase("GELU by tanh in steps", tokens(ERF, **G), tokens(TANH, **G), T, ("Erf", "tanh")),
        MeaningCase("GELU by erf in steps, reference", tokens(TANH, **G), tokens(ERF, **G), T, ("Tanh", "Erf"), "reference"),
        MeaningCase("softmax of before opset 13", opset13, opset11, X, ("Softmax", "opset 13")),
        MeaningCase("softmax of opset 13, file", opset11, opset13, X, ("Softmax", "opset 13"), "file"),
        MeaningCase("slope of a leaky ReLU", picture("l = LeakyRelu<alpha=0.01>(c)\n d = Conv<kernel_shape=[3,3]>(l, u)", u=normal(7, 8, 8, 3, 3)), picture("l = LeakyRelu<alpha=0.2>(c)\n d = Conv<kernel_shape=[3,3]>(l, u)", u=normal(7, 8, 8, 3, 3)), X, ("LeakyRelu", "alpha")),
        MeaningCase("two at once", two, _attributes("/LeakyRelu_l", alpha=0.2)(_attributes("/BatchNormalization_k", epsilon=1e-3)(two)), X, ("LeakyRelu", "alpha", "epsilon")),
        MeaningCase("depth to space", picture('k = DepthToSpace<blocksize=2>(c)\n d = Conv<kernel_shape=[3,3]>(k, u)', u=normal(3, 4, 2, 3, 3)), picture('k = DepthToSpace<blocksize=2, mode="CRD">(c)\n d = Conv<kernel_shape=[3,3]>(k, u)', u=normal(3, 4, 2, 3, 3)), X, ("DepthToSpace", "CRD")),
        MeaningCase("masked rows are 0", tokens(masked, seen=seen, low=np.array(-np.inf, np.float32)), tokens("k = Where(seen, c, low)\n s = Softmax<axis=-1>(k)\n n = IsNaN(s)\n z = Constant<value_float=0.0>()\n d = Where(n, z, s)", seen=seen, low=np.array(-np.inf, np.float32)), T, ("Softmax", "mask")),
        MeaningCase("masked rows are uniform, reference", tokens(masked, seen=seen, low=np.array(-np.inf, np.float32)), tokens("low2 = Constant<value_float=-10000.0>()\n k = Where(seen, c, low2)\n d = Softmax<axis=-1>(k)", seen=seen, low=np.array(-np.inf, np.float32)), T, ("Softmax", "uniform"), "reference"),
        MeaningCase("reset after the product", tokens(gru.format(""), **grus), tokens(gru.format(", linear_before_reset=1"), **grus), T, ("GRU", "linear_before_reset")),
        MeaningCase("gates of PyTorch", tokens(lstm, **lstms), tokens(lstm, **other_lstm), T, ("LSTM", "gates")),
        MeaningCase("channels last when flattened", flat, nhwc, {"x": normal(9, 2, 3, 6, 6)}, ("Flatten", "channels")),
        MeaningCase("scatter that adds, file", tokens(scatter.format(""), **scatters), tokens(scatter.format('<reduction="add">'), **scatters), T, ("Scatter", "reduction"), "target"),
        MeaningCase("ReLU that ends at 6", picture("k = Relu(c)\n g = Mul(k, five)\n d = Relu(g)", five=np.array(5, np.float32)), picture("k = Relu(c)\n g = Mul(k, five)\n s = Constant<value_float=6.0>()\n d1 = Relu(g)\n d = Min(d1, s)", five=np.array(5, np.float32)), X, ("Relu", "6")),
        MeaningCase("kernel flipped", picture("d = ConvTranspose<kernel_shape=[3,3]>(c, u)", u=normal(3, 8, 4, 3, 3)), picture("d = ConvTranspose<kernel_shape=[3,3]>(c, u)", u=np.ascontiguousarray(normal(3, 8, 4, 3, 3)[:, :, ::-1, ::-1])), X, ("ConvTranspose", "flipped")),
        MeaningCase("last of equal maxima", model("(float[2,6,16] x) => (float[2,6,4] y) {\n i = ArgMax<axis=-1, keepdims=0>(x)\n y = Gather(table, i) }", table=normal(3, 16, 4)), model("(float[2,6,16] x) => (float[2,6,4] y) {\n i = ArgMax<axis=-1, keepdims=0, select_last_index=1>(x)\n y = Gather(table, i) }", table=normal(3, 16, 4)), tie, ("ArgMax", "select_last_index")),
    ]  # fmt: skip


def honest() -> list[MeaningCase]:
    """Return pairs that agree, or differ in what no operator means: nothing may be said of meanings."""
    base = picture(
        "k = BatchNormalization(c, g, s, m, v)\n l = LeakyRelu<alpha=0.01>(k)\n d = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(l)",
        opset=15,
        **BN,
    )
    gelu = tokens(ERF, **G)
    norm = tokens(NORM, eps=np.array(1e-5, np.float32))
    res = picture(_resize(mode="linear"), **UP)

    def weight(made: onnx.ModelProto, name: str, edit: Callable[[np.ndarray], np.ndarray]) -> onnx.ModelProto:
        copy = onnx.ModelProto.FromString(made.SerializeToString())
        (tensor,) = (t for t in copy.graph.initializer if t.name == name)
        tensor.CopyFrom(
            onnx.numpy_helper.from_array(np.ascontiguousarray(edit(onnx.numpy_helper.to_array(tensor))), name)
        )
        return copy

    edits: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "scaled": lambda a: a * np.float32(1.03), "rolled": lambda a: np.roll(a, 1, 0), "noise": lambda a: a + normal(5, *a.shape, scale=0.01),
        "one entry": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 7, a + np.float32(0.5), a), "zeroed": lambda a: a * 0, "another": lambda a: normal(77, *a.shape, scale=0.4),
        "rounded": lambda a: a.astype(np.float16).astype(np.float32),
    }  # fmt: skip
    found = [
        MeaningCase(f"weight {name} of a picture network", base, weight(base, "w", edit), X)
        for name, edit in edits.items()
    ]
    found += [
        MeaningCase(f"weight {name} of rows", gelu, weight(gelu, "v", edit), T, side="reference")
        for name, edit in edits.items()
    ]
    found += [
        MeaningCase("the same", base, base, X),
        MeaningCase("the same, reference", res, res, X, side="reference"),
        MeaningCase("the same, file", norm, norm, T, side="file"),
        MeaningCase("a slope that nobody has", base, _attributes("/LeakyRelu_l", alpha=0.137)(base), X),
        MeaningCase("a bias added", gelu, tokens(ERF.replace("d = Mul(g, half)", "d2 = Mul(g, half)\n d = Add(d2, half)"), **G), T),
        MeaningCase("sigmoid for GELU", gelu, tokens("d = Sigmoid(c)", **G), T),
        MeaningCase("normalization left out", norm, tokens("d = Identity(c)", eps=np.array(1e-5, np.float32)), T),
        MeaningCase("another size", res, picture(_resize(mode="linear"), scales=np.array([1, 1, 1.5, 1.5], np.float32)), X),
        MeaningCase("channels of the input reversed", base, weight(base, "w", lambda a: a[:, ::-1]), X),
        MeaningCase("wide weight, file", base, weight(base, "w", edits["another"]), X, side="file"),
    ]  # fmt: skip
    return found

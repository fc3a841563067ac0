"""Point 6: whether the sentence names the change, and what stands beside it is true."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from acceptance.case import Case, fine
from acceptance.engines import scripted
from acceptance.feeds import TRAINED
from acceptance.files import ORT, _quantized
from acceptance.networks import GRATINGS, data, gratings, pictures, saved, stored

CHANGED = ("model-changed",)


def _r(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _other(folder: Path, model: str, *, opset: int = 0, **attributes: object) -> tuple[str, ...]:
    """Write the model with another opset number, or attributes by `OPERATOR__NAME`, and return the words for it."""
    other = onnx.load(model)
    if opset:
        other.opset_import[0].version = opset
    for key, value in attributes.items():
        kind, name = key.split("__")
        node = next(n for n in other.graph.node if n.op_type == kind)
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, value)])
    return "--target-model", stored(folder, other, "other.onnx"), *ORT


def checkpoint(folder: Path) -> list[str]:
    x = np.abs(_r(61).normal(0, 1, (1, 100, 40))).astype(np.float32)
    words = data(folder, x=x)
    return [
        str((TRAINED / "modelA_paper.onnx").resolve()),
        "--target-model",
        str((TRAINED / "modelB_full.onnx").resolve()),
        *words,
        *ORT,
    ]


def _raised(folder: Path, op: str, attribute: str) -> list[str]:
    text = f"""soft (float[b,5,6] x) => (float[b,5,6] y) {{
        h = MatMul(x, w)
        y = {op}{attribute}(h)
    }}"""
    model = saved(folder, text, {"w": _r(62).normal(0, 0.5, (6, 6))}, opset=11)
    return [model, *data(folder, x=_r(63).normal(0, 1, (2, 5, 6)).astype(np.float32)), *_other(folder, model, opset=13)]


def clipped_biases(folder: Path) -> list[str]:
    arrays = gratings()
    arrays["w3"] = arrays["w3"].copy()
    arrays["w3"][:5] *= 1e-9
    arrays["b3"] = arrays["b3"] + np.where(np.arange(16) < 5, 0.8, 0)
    model = saved(folder, GRATINGS, arrays)
    words = _quantized(folder, "QUInt8", "QInt8", per_channel=True)
    file = words[words.index("--target-model") + 1]
    saved(folder, GRATINGS, arrays)
    quantized = onnx.load(file)
    found = {t.name: t for t in quantized.graph.initializer}
    weight, scale = arrays["w3"][:5], np.abs(arrays["w3"][:5]).max((1, 2, 3)) / 127

    def put(name: str, values: np.ndarray) -> None:
        array = numpy_helper.to_array(found[name]).copy()
        array[:5] = values
        found[name].CopyFrom(numpy_helper.from_array(array, name))

    step = float(numpy_helper.to_array(found["r2_scale"]))
    put("w3_scale", scale)
    put("w3_quantized", np.round(weight / scale[:, None, None, None]))
    put("b3_quantized_scale", scale * step)
    put("b3_quantized", np.full(5, 2**31 - 1))
    onnx.save(quantized, file)
    return [model, *data(folder, picture=pictures(6, 7)[0]), "--target-model", file, *ORT]


def rows_of_batch(folder: Path) -> list[str]:
    r, arrays = _r(64), {"w1": _r(65).normal(0, 0.3, (20, 24)), "w2": _r(66).normal(0, 0.3, (24, 6))}
    text = """rows (float[4,20] x) => (float[4,6] y) {
        h = MatMul(x, w1)
        a = Tanh(h)
        y = MatMul(a, w2)
    }"""
    once = """rows (float[4,20] x) => (float[4,6] y) {
        first = Slice(x, zero, one, zero)
        h = MatMul(first, w1)
        a = Tanh(h)
        row = MatMul(a, w2)
        y = Concat<axis=0>(row, row, row, row)
    }"""
    other = saved(folder, once, arrays | {"zero": np.array([0]), "one": np.array([1])}, name="other.onnx")
    words = data(folder, x=r.normal(0, 1, (4, 20)).astype(np.float32))
    return [saved(folder, text, arrays), *words, "--target-model", other, *ORT]


RESIZED = """resized (float[1,3,9,9] image) => (float[1,4,h,w] y) {
    c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w)
    up = Resize<mode={mode}, coordinate_transformation_mode={grid}, nearest_mode={nearest}>(c, none, scales)
    y = Relu(up)
}"""


def _resized(folder: Path, mode: str, **changed: object) -> list[str]:
    arrays = {
        "w": _r(67).normal(0, 0.4, (4, 3, 3, 3)),
        "none": np.zeros(0, np.float32),
        "scales": np.array([1, 1, 1.6, 1.6], np.float32),
    }
    text = RESIZED.replace("{mode}", f'"{mode}"').replace("{grid}", '"asymmetric"').replace("{nearest}", '"floor"')
    model = saved(folder, text, arrays)
    return [
        model,
        *data(folder, image=_r(68).uniform(0, 1, (1, 3, 9, 9)).astype(np.float32)),
        *_other(folder, model, **changed),
    ]


def epsilon(folder: Path) -> list[str]:
    text = """norms (float[b,40] x) => (float[b,8] y) {
        n = LayerNormalization<epsilon=0.00001>(x, gamma, beta)
        y = MatMul(n, w)
    }"""
    r = _r(69)
    model = saved(
        folder, text, {"gamma": r.uniform(0.5, 1.5, 40), "beta": r.normal(0, 0.1, 40), "w": r.normal(0, 0.2, (40, 8))}
    )
    return [
        model,
        *data(folder, x=r.normal(0, 0.3, (3, 40)).astype(np.float32)),
        *_other(folder, model, LayerNormalization__epsilon=0.01),
    ]


def exchanged(folder: Path) -> list[str]:
    text = """pair (float[b,30] x) => (float[b,30] y) {
        q = MatMul(x, w_query)
        k = MatMul(x, w_key)
        t = Tanh(q)
        y = Mul(t, k)
    }"""
    r = _r(70)
    arrays = {name: r.normal(0, 0.3, (30, 30)) for name in ("w_query", "w_key")}
    other = saved(folder, text, {"w_query": arrays["w_key"], "w_key": arrays["w_query"]}, name="other.onnx")
    return [
        saved(folder, text, arrays),
        *data(folder, x=r.normal(0, 1, (3, 30)).astype(np.float32)),
        "--target-model",
        other,
        *ORT,
    ]


def wrapped_sums(folder: Path) -> list[str]:
    text = """stamps (int64[n] steps) => (int64[n] at) {
        at = CumSum(steps, zero)
    }"""
    steps = _r(71).integers(0, 900_000_000, 40)
    engine = scripted(folder, change="{k: v.astype('int32').astype('int64') for k, v in found.items()}")
    return [saved(folder, text, {"zero": np.array(0)}), *data(folder, steps=steps), "--target", engine]


def constant_beyond(folder: Path) -> list[str]:
    text = """hash (int64[n] ids) => (int64[n] slot) {
        wide = Mul(ids, prime)
        slot = Mod(wide, buckets)
    }"""
    arrays = {"prime": np.array(11_400_714_819), "buckets": np.array(1009)}
    edit = (
        "from onnx import numpy_helper as h\n        for t in model.graph.initializer:\n"
        "            t.CopyFrom(h.from_array(np.clip(h.to_array(t), -2**31, 2**31 - 1), t.name))"
    )
    words = data(folder, ids=_r(72).integers(0, 5000, 64))
    return [saved(folder, text, arrays), *words, "--target", scripted(folder, edit=edit)]


def argmax_ties(folder: Path) -> list[str]:
    text = """choice (float[b,24] x) => (int64[b] label) {
        s = MatMul(x, w)
        label = ArgMax<axis=1, keepdims=0>(s)
    }"""
    r = _r(73)
    w = r.normal(0, 0.3, (24, 6))
    w = np.concatenate([w, w * (1 + 1e-5), w * (1 - 1e-5)], 1)
    x = r.normal(0, 1, (40, 24)).astype(np.float32)
    return [saved(folder, text, {"w": w}), *data(folder, x=x), "--target", "emulate:precision=fp16"]


def cast_ties(folder: Path) -> list[str]:
    text = """cells (float[b,32] x) => (int64[b,12] cell) {
        s = MatMul(x, w)
        t = Mul(s, ten)
        cell = Cast<to=7>(t)
    }"""
    r = _r(74)
    w, x = r.integers(-3, 4, (32, 12)) * 0.1, r.integers(0, 9, (20, 32)).astype(np.float32)
    return [
        saved(folder, text, {"w": w, "ten": np.float32(10)}),
        *data(folder, x=x),
        "--target",
        "openvino:precision=fp32",
    ]


def sweep_beside_torch(folder: Path) -> list[str]:
    path = folder / "net.py"
    path.write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
        "    net = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.GELU(), torch.nn.Linear(20, 5)).eval()\n"
        "    return net, (torch.randn(2, 12),)\n"
    )
    return ["--torch", f"{path}:make", *ORT, "--sweep", "batch=1,5"]


def merged_relus(folder: Path) -> list[str]:
    words = _quantized(folder, "QUInt8", "QInt8")
    file = words[words.index("--target-model") + 1]
    return ["inspect", "quantizers", file, "--original", words[0], *words[1:3]]


CASES = (
    Case("checkpoint", 6, checkpoint, CHANGED, 1, ("checkpoint|weights differ",)),
    Case("opset-softmax", 6, lambda f: _raised(f, "Softmax", "<axis=1>"), CHANGED, 1, ("opset", "Softmax")),
    Case("opset-logsoftmax", 6, lambda f: _raised(f, "LogSoftmax", ""), CHANGED, 1, ("opset", "LogSoftmax")),
    Case(
        "clipped-biases",
        6,
        clipped_biases,
        ("model-changed", "quantization"),
        1,
        ("bias|b3", "int32|2147483647|2.31|clip|cut"),
    ),
    Case("rows-of-batch", 6, rows_of_batch, CHANGED, 1, ("row|batch|first axis",)),
    Case(
        "resize-nearest",
        6,
        lambda f: _resized(f, "nearest", Resize__nearest_mode="ceil"),
        CHANGED,
        1,
        ("nearest_mode",),
        culprit="Resize",
    ),
    Case(
        "resize-grid",
        6,
        lambda f: _resized(f, "linear", Resize__coordinate_transformation_mode="pytorch_half_pixel"),
        CHANGED,
        1,
        ("coordinate_transformation_mode",),
        culprit="Resize",
    ),
    Case("epsilon", 6, epsilon, CHANGED, 1, ("epsilon",), culprit="LayerNorm"),
    Case("exchanged-weights", 6, exchanged, CHANGED, 1, ("w_key|w_query|another node|exchang|swap",)),
    Case(
        "wrapped-sums",
        6,
        wrapped_sums,
        ("local-fault", "comparison-unsound", "inconclusive"),
        None,
        ("int32|2.31|2.32|32 bits|wrap",),
    ),
    Case(
        "constant-beyond",
        6,
        constant_beyond,
        ("local-fault", "comparison-unsound", "model-changed"),
        1,
        ("int32|2.31|2147483647|32 bits",),
    ),
    fine("argmax-ties", 6, argmax_ties),
    fine("cast-ties", 6, cast_ties),
    Case("sweep-beside-torch", 6, sweep_beside_torch, ("",), 2, ("dynamic_shapes",), same_as_run=False),
    Case("merged-relus", 6, merged_relus, ("",), 0, (), ("recalibrate",), same_as_run=False),
)

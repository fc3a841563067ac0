"""Tiny models with known answers for the conformance suite.

Weights and inputs are small whole numbers, chosen so that every intermediate result is a whole number of at most 8:
fp16, bf16 and both fp8 formats hold those exactly, so one expected value serves every precision. The expected values
come from closed formulas in numpy, never from another engine.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from tensortriage.engines.sdk import DType

Tensors = Mapping[str, np.ndarray]
OPSET = 17
IR_VERSION = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """A model, feeds for it, and the expected answers.

    Attributes:
        name: Kebab-case, for reports.
        feeds: One or more feeds; one session must answer them all.
        expected: From a feed to the outputs, by name.
        core: Whether every engine must support it; others may refuse with `BuildFailed` or `RunFailed`.
        external: Whether the weights go into a file next to the model.
    """

    name: str
    proto: onnx.ModelProto
    feeds: tuple[Tensors, ...]
    expected: Callable[[Tensors], Tensors]
    core: bool = True
    external: bool = False

    def save(self, folder: Path) -> Path:
        """Write the model, with its weights next to it when they are external, and return its path."""
        path = folder / f"{self.name}.onnx"
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        if self.external:
            onnx.save(proto, path, save_as_external_data=True, location=f"{self.name}.weights", size_threshold=0)
        else:
            onnx.save(proto, path)
        return path


def examples() -> tuple[Example, ...]:
    """Return every example, the core ones first, on arrays of its own."""
    core = (_mlp(), _conv(), _external(), _integers(), _booleans(), _many_outputs(), _dynamic(), _scalar(), _names())
    optional = (_zero_size(), _branch(), _input_as_output(), _weight_as_output(), _strings())
    formats = [_format(DType.FLOAT16), _format(DType.BFLOAT16), _format(DType.DOUBLE)]
    stored = [_stored(d) for d in (DType.INT8, DType.UINT8, DType.FLOAT8E4M3FN, DType.FLOAT8E5M2, DType.INT4)]
    return (*core, *(dataclasses.replace(e, core=False) for e in (*optional, *formats, *stored)))


def small(*shape: int, start: int = 0) -> np.ndarray:
    """Return a float32 array of -1, 0 and 1 in an irregular order."""
    count = int(np.prod(shape, dtype=np.int64))
    return (((np.arange(count) + start) * 7 // 2) % 3 - 1).astype(np.float32).reshape(shape)


def _proto(
    text: str, weights: Tensors | None = None, *, opset: int = OPSET, ir_version: int = IR_VERSION
) -> onnx.ModelProto:
    """Return a model from ONNX text, with weights, and a name for each node: its type and its first result."""
    proto = parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> conformance {text}')
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (weights or {}).items())
    for node in proto.graph.node:
        node.name = f"{node.op_type.lower()}_{node.output[0]}"
    return proto


def _mlp(name: str = "mlp", *, external: bool = False) -> Example:
    second = np.zeros((5, 3), np.float32)
    second[[0, 2, 4], [0, 1, 2]] = [1, -1, 1]
    weights = {"w1": small(4, 5), "b1": small(5, start=1), "w2": second}

    def expected(feed: Tensors) -> Tensors:
        return {"y": np.maximum(feed["x"] @ weights["w1"] + weights["b1"], 0) @ second}

    text = "(float[2,4] x) => (float[2,3] y) { h1 = MatMul(x, w1) h2 = Add(h1, b1) h3 = Relu(h2) y = MatMul(h3, w2) }"
    feeds = ({"x": small(2, 4)}, {"x": small(2, 4, start=2)})
    return Example(name, _proto(text, weights), feeds, expected, external=external)


def _external() -> Example:
    return _mlp("external-data", external=True)


def _conv() -> Example:
    weight = small(2, 2, 3, 3) * (np.arange(36).reshape(2, 2, 3, 3) % 3 == 0)
    bias = np.array([1, -1], np.float32)

    def expected(feed: Tensors) -> Tensors:
        padded = np.pad(feed["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        rows = [[(padded[0, :, i : i + 3, j : j + 3] * weight).sum((1, 2, 3)) for j in range(4)] for i in range(4)]
        convolved = np.maximum(np.array(rows).transpose(2, 0, 1) + bias[:, None, None], 0)
        return {"y": convolved.reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5))}

    text = """(float[1,2,4,4] x) => (float[1,2,2,2] y) {
        c = Conv<pads=[1, 1, 1, 1]>(x, w, b) r = Relu(c) y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(r) }"""
    return Example("conv", _proto(text, {"w": weight, "b": bias}), ({"x": small(1, 2, 4, 4)},), expected)


def _integers() -> Example:
    text = """(int64[3] i, int32[3] j) => (int64[3] y, int64[3] z) {
        m = Mul(i, two) y = Add(m, i) k = Cast<to=7>(j) z = Sub(k, i) }"""
    feed: Tensors = {"i": np.array([-7, 0, 1 << 28], np.int64), "j": np.array([5, -(1 << 29), 3], np.int32)}
    proto = _proto(text, {"two": np.array(2, np.int64)})
    return Example("integers", proto, (feed,), lambda f: {"y": f["i"] * 3, "z": f["j"].astype(np.int64) - f["i"]})


def _booleans() -> Example:
    text = """(bool[4] p, bool[4] q, float[4] a, float[4] b) => (bool[4] y, float[4] z) {
        n = Not(q) y = And(p, n) z = Where(y, a, b) }"""
    feed = {"p": np.array([0, 0, 1, 1], bool), "q": np.array([0, 1, 0, 1], bool), "a": small(4) + 3, "b": small(4) - 3}
    return Example(
        "booleans",
        _proto(text),
        (feed,),
        lambda f: {"y": f["p"] & ~f["q"], "z": np.where(f["p"] & ~f["q"], f["a"], f["b"])},
    )


def _many_outputs() -> Example:
    """Outputs in another order than they are made, one of them used inside as well, and an unused input."""
    text = """(float[2,3] x, float[1] unused)
        => (float[1,3] bottom, float[2,3] negated, float[2,3] twice, float[1,3] top) {
        twice = Add(x, x) negated = Neg(twice) top, bottom = Split<axis=0>(x) }"""
    return Example(
        "many-outputs",
        _proto(text),
        ({"x": small(2, 3), "unused": small(1)},),
        lambda f: {"bottom": f["x"][1:], "negated": f["x"] * -2, "twice": f["x"] * 2, "top": f["x"][:1]},
    )


def _dynamic() -> Example:
    text = """(float[batch,steps,3] x) => (float[count] y, int64[3] s) {
        m = MatMul(x, w) s = Shape(x) y = Reshape(m, flat) }"""
    weight = small(3, 2)
    feeds = tuple({"x": small(*shape, start=i)} for i, shape in enumerate([(1, 1, 3), (2, 4, 3), (3, 1, 3)]))
    return Example(
        "dynamic-shapes",
        _proto(text, {"w": weight, "flat": np.array([-1], np.int64)}),
        feeds,
        lambda f: {"y": (f["x"] @ weight).reshape(-1), "s": np.array(f["x"].shape, np.int64)},
    )


def _scalar() -> Example:
    text = "(float x, float[3] v) => (float y, float z) { y = Add(x, one) z = ReduceMax<keepdims=0>(v) }"
    feed = {"x": np.array(2, np.float32), "v": np.array([1, 4, 2], np.float32)}
    proto = _proto(text, {"one": np.array(1, np.float32)})
    return Example("scalars", proto, (feed,), lambda f: {"y": f["x"] + 1, "z": f["v"].max()})


def _names() -> Example:
    """Names with separators, quotes, spaces, other scripts, and names that look like numbers or paths."""
    inputs = ["in/put:0", "a b,c=d", "入力", "1"]
    outputs = ["'q\"uote\\", "../up", "out::put%s{}", "ünï.code;"]
    nodes = [
        helper.make_node("Neg", [before], [after], name=f"node/{after}|{i}")
        for i, (before, after) in enumerate(zip(inputs, outputs, strict=True))
    ]
    given, made = (
        [helper.make_tensor_value_info(name, DType.FLOAT.value, [2]) for name in names] for names in (inputs, outputs)
    )
    proto = helper.make_model(
        helper.make_graph(nodes, "conformance", given, made),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    feed = {name: small(2, start=i) + i for i, name in enumerate(inputs)}
    return Example("hostile-names", proto, (feed,), lambda f: {o: -f[i] for i, o in zip(inputs, outputs, strict=True)})


def _zero_size() -> Example:
    proto = _proto("(float[n,3] x) => (float[n,3] y) { y = Relu(x) }")
    feeds = ({"x": small(0, 3)}, {"x": small(2, 3)})
    return Example("zero-size", proto, feeds, lambda f: {"y": np.maximum(f["x"], 0)})


def _branch() -> Example:
    text = """(bool c, float[2] x) => (float[2] y) { y = If(c) <
        then_branch = t () => (float[2] t) { t = Neg(x) }, else_branch = e () => (float[2] e) { e = Abs(x) } > }"""
    values = np.array([-3, 2], np.float32)
    feeds = ({"c": np.array(True), "x": values}, {"c": np.array(False), "x": values})
    return Example("if", _proto(text), feeds, lambda f: {"y": -f["x"] if f["c"] else np.abs(f["x"])})


def _input_as_output() -> Example:
    proto = _proto("(float[3] x) => (float[3] x, float[3] y) { y = Neg(x) }")
    return Example("input-as-output", proto, ({"x": small(3)},), lambda f: {"x": f["x"], "y": -f["x"]})


def _weight_as_output() -> Example:
    weight = small(3) + 2
    proto = _proto("(float[3] x) => (float[3] w, float[3] y) { y = Add(x, w) }", {"w": weight})
    return Example("weight-as-output", proto, ({"x": small(3)},), lambda f: {"w": weight, "y": f["x"] + weight})


def _strings() -> Example:
    feed: Tensors = {"x": np.array(["plain", "ünïcode 入"], dtype=object)}
    return Example(
        "strings", _proto("(string[2] x) => (string[2] y) { y = Identity(x) }"), (feed,), lambda f: {"y": f["x"]}
    )


def _format(dtype: DType) -> Example:
    """Arithmetic in a format, fed and answered in it."""
    word = dtype.name.lower()
    proto = _proto(f"({word}[3] x) => ({word}[3] y) {{ s = Add(x, x) y = Abs(s) }}")
    feed = {"x": np.array([-1, 2, 3], np.float32).astype(dtype.numpy)}
    return Example(dtype.label.replace("_", "-"), proto, (feed,), lambda f: {"y": np.abs(f["x"] + f["x"])})


def _stored(dtype: DType) -> Example:
    """A format that values are only stored in: fed in it, cast to float32, and cast back."""
    word = dtype.name.lower()
    text = (
        f"({word}[3] x) => (float[3] y, {word}[3] z) {{ f = Cast<to=1>(x) y = Abs(f) z = Cast<to={dtype.value}>(y) }}"
    )
    feed = {"x": np.array([1, 7, 0 if dtype is DType.UINT8 else -4], np.float32).astype(dtype.numpy)}

    def expected(given: Tensors) -> Tensors:
        magnitude = np.abs(given["x"].astype(np.float32))
        return {"y": magnitude, "z": magnitude.astype(dtype.numpy)}

    proto = _proto(text, opset=21, ir_version=10)
    return Example(f"stored-{dtype.label}".replace("_", "-"), proto, (feed,), expected)

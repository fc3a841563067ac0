"""Tiny models with known answers for the conformance suite.

Weights and inputs are small whole numbers, chosen so that every intermediate result is a whole number of at most 8:
fp16, bf16 and both fp8 formats hold those exactly, so one expected value serves every precision. The expected values
come from closed formulas in numpy, never from another engine.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tensortriage.engines.sdk import DType

Tensors = Mapping[str, np.ndarray]
OPSET = 17
IR_VERSION = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """A model, feeds for it, and the expected answers.

    Attributes:
        name: Kebab-case, for reports.
        proto: The model.
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
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, DType, Sequence[int | str]]],
    outputs: Sequence[tuple[str, DType, Sequence[int | str]]],
    weights: Tensors | None = None,
    *,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "conformance",
        [helper.make_tensor_value_info(name, dtype.value, list(shape)) for name, dtype, shape in inputs],
        [helper.make_tensor_value_info(name, dtype.value, list(shape)) for name, dtype, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def _node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    name = f"{op_type.lower()}_{outputs.split()[0]}"
    return helper.make_node(op_type, inputs.split(), outputs.split(), name=name, **attributes)


_F, _I = DType.FLOAT, DType.INT64


def _mlp(name: str = "mlp", *, external: bool = False) -> Example:
    second = np.zeros((5, 3), np.float32)
    second[[0, 2, 4], [0, 1, 2]] = [1, -1, 1]
    weights = {"w1": small(4, 5), "b1": small(5, start=1), "w2": second}
    nodes = [
        _node("MatMul", "x w1", "h1"),
        _node("Add", "h1 b1", "h2"),
        _node("Relu", "h2", "h3"),
        _node("MatMul", "h3 w2", "y"),
    ]

    def expected(feed: Tensors) -> Tensors:
        return {"y": np.maximum(feed["x"] @ weights["w1"] + weights["b1"], 0) @ second}

    proto = _proto(nodes, [("x", _F, (2, 4))], [("y", _F, (2, 3))], weights)
    return Example(name, proto, ({"x": small(2, 4)}, {"x": small(2, 4, start=2)}), expected, external=external)


def _external() -> Example:
    return _mlp("external-data", external=True)


def _conv() -> Example:
    weight = small(2, 2, 3, 3) * (np.arange(36).reshape(2, 2, 3, 3) % 3 == 0)
    bias = np.array([1, -1], np.float32)
    nodes = [
        _node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
        _node("Relu", "c", "r"),
        _node("MaxPool", "r", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]

    def expected(feed: Tensors) -> Tensors:
        padded = np.pad(feed["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
        rows = [[(padded[0, :, i : i + 3, j : j + 3] * weight).sum((1, 2, 3)) for j in range(4)] for i in range(4)]
        convolved = np.maximum(np.array(rows).transpose(2, 0, 1) + bias[:, None, None], 0)
        return {"y": convolved.reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5))}

    proto = _proto(nodes, [("x", _F, (1, 2, 4, 4))], [("y", _F, (1, 2, 2, 2))], {"w": weight, "b": bias})
    return Example("conv", proto, ({"x": small(1, 2, 4, 4)},), expected)


def _integers() -> Example:
    nodes = [_node("Mul", "i two", "m"), _node("Add", "m i", "y"), _node("Cast", "j", "k", to=_I.value)]
    nodes.append(_node("Sub", "k i", "z"))
    proto = _proto(
        nodes,
        [("i", _I, (3,)), ("j", DType.INT32, (3,))],
        [("y", _I, (3,)), ("z", _I, (3,))],
        {"two": np.array(2, np.int64)},
    )
    feed: Tensors = {"i": np.array([-7, 0, 1 << 28], np.int64), "j": np.array([5, -(1 << 29), 3], np.int32)}
    return Example("integers", proto, (feed,), lambda f: {"y": f["i"] * 3, "z": f["j"].astype(np.int64) - f["i"]})


def _booleans() -> Example:
    nodes = [_node("Not", "q", "n"), _node("And", "p n", "y"), _node("Where", "y a b", "z")]
    b = DType.BOOL
    proto = _proto(
        nodes, [("p", b, (4,)), ("q", b, (4,)), ("a", _F, (4,)), ("b", _F, (4,))], [("y", b, (4,)), ("z", _F, (4,))]
    )
    feed = {"p": np.array([0, 0, 1, 1], bool), "q": np.array([0, 1, 0, 1], bool), "a": small(4) + 3, "b": small(4) - 3}
    return Example(
        "booleans", proto, (feed,), lambda f: {"y": f["p"] & ~f["q"], "z": np.where(f["p"] & ~f["q"], f["a"], f["b"])}
    )


def _many_outputs() -> Example:
    """Outputs in another order than they are made, one of them used inside as well, and an unused input."""
    nodes = [_node("Add", "x x", "twice"), _node("Neg", "twice", "negated"), _node("Split", "x", "top bottom", axis=0)]
    names = {"bottom": (1, 3), "negated": (2, 3), "twice": (2, 3), "top": (1, 3)}
    proto = _proto(
        nodes, [("x", _F, (2, 3)), ("unused", _F, (1,))], [(name, _F, shape) for name, shape in names.items()]
    )
    return Example(
        "many-outputs",
        proto,
        ({"x": small(2, 3), "unused": small(1)},),
        lambda f: {"bottom": f["x"][1:], "negated": f["x"] * -2, "twice": f["x"] * 2, "top": f["x"][:1]},
    )


def _dynamic() -> Example:
    nodes = [_node("MatMul", "x w", "m"), _node("Shape", "x", "s"), _node("Reshape", "m flat", "y")]
    weight = small(3, 2)
    proto = _proto(
        nodes,
        [("x", _F, ("batch", "steps", 3))],
        [("y", _F, ("count",)), ("s", _I, (3,))],
        {"w": weight, "flat": np.array([-1], np.int64)},
    )
    feeds = tuple({"x": small(*shape, start=i)} for i, shape in enumerate([(1, 1, 3), (2, 4, 3), (3, 1, 3)]))
    return Example(
        "dynamic-shapes",
        proto,
        feeds,
        lambda f: {"y": (f["x"] @ weight).reshape(-1), "s": np.array(f["x"].shape, np.int64)},
    )


def _scalar() -> Example:
    proto = _proto(
        [_node("Add", "x one", "y"), _node("ReduceMax", "v", "z", keepdims=0)],
        [("x", _F, ()), ("v", _F, (3,))],
        [("y", _F, ()), ("z", _F, ())],
        {"one": np.array(1, np.float32)},
    )
    feed = {"x": np.array(2, np.float32), "v": np.array([1, 4, 2], np.float32)}
    return Example("scalars", proto, (feed,), lambda f: {"y": f["x"] + 1, "z": f["v"].max()})


def _names() -> Example:
    """Names with separators, quotes, spaces, other scripts, and names that look like numbers or paths."""
    inputs = ["in/put:0", "a b,c=d", "入力", "1"]
    outputs = ["'q\"uote\\", "../up", "out::put%s{}", "ünï.code;"]
    nodes = [
        helper.make_node("Neg", [before], [after], name=f"node/{after}|{i}")
        for i, (before, after) in enumerate(zip(inputs, outputs, strict=True))
    ]
    proto = _proto(nodes, [(n, _F, (2,)) for n in inputs], [(n, _F, (2,)) for n in outputs])
    feed = {name: small(2, start=i) + i for i, name in enumerate(inputs)}
    return Example("hostile-names", proto, (feed,), lambda f: {o: -f[i] for i, o in zip(inputs, outputs, strict=True)})


def _zero_size() -> Example:
    proto = _proto([_node("Relu", "x", "y")], [("x", _F, ("n", 3))], [("y", _F, ("n", 3))])
    feeds = ({"x": small(0, 3)}, {"x": small(2, 3)})
    return Example("zero-size", proto, feeds, lambda f: {"y": np.maximum(f["x"], 0)})


def _branch() -> Example:
    def body(name: str, op_type: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(name, _F.value, [2])
        return helper.make_graph([helper.make_node(op_type, ["x"], [name], name=f"inner_{name}")], name, [], [output])

    node = helper.make_node("If", ["c"], ["y"], name="if_y", then_branch=body("t", "Neg"), else_branch=body("e", "Abs"))
    proto = _proto([node], [("c", DType.BOOL, ()), ("x", _F, (2,))], [("y", _F, (2,))])
    values = np.array([-3, 2], np.float32)
    feeds = ({"c": np.array(True), "x": values}, {"c": np.array(False), "x": values})
    return Example("if", proto, feeds, lambda f: {"y": -f["x"] if f["c"] else np.abs(f["x"])})


def _input_as_output() -> Example:
    proto = _proto([_node("Neg", "x", "y")], [("x", _F, (3,))], [("x", _F, (3,)), ("y", _F, (3,))])
    return Example("input-as-output", proto, ({"x": small(3)},), lambda f: {"x": f["x"], "y": -f["x"]})


def _weight_as_output() -> Example:
    weight = small(3) + 2
    proto = _proto([_node("Add", "x w", "y")], [("x", _F, (3,))], [("w", _F, (3,)), ("y", _F, (3,))], {"w": weight})
    return Example("weight-as-output", proto, ({"x": small(3)},), lambda f: {"w": weight, "y": f["x"] + weight})


def _strings() -> Example:
    proto = _proto([_node("Identity", "x", "y")], [("x", DType.STRING, (2,))], [("y", DType.STRING, (2,))])
    feed: Tensors = {"x": np.array(["plain", "ünïcode 入"], dtype=object)}
    return Example("strings", proto, (feed,), lambda f: {"y": f["x"]})


def _format(dtype: DType) -> Example:
    """Arithmetic in a format, fed and answered in it."""
    proto = _proto([_node("Add", "x x", "s"), _node("Abs", "s", "y")], [("x", dtype, (3,))], [("y", dtype, (3,))])
    feed = {"x": np.array([-1, 2, 3], np.float32).astype(dtype.numpy)}
    return Example(dtype.label.replace("_", "-"), proto, (feed,), lambda f: {"y": np.abs(f["x"] + f["x"])})


def _stored(dtype: DType) -> Example:
    """A format that values are only stored in: fed in it, cast to float32, and cast back."""
    nodes = [_node("Cast", "x", "f", to=_F.value), _node("Abs", "f", "y"), _node("Cast", "y", "z", to=dtype.value)]
    proto = _proto(nodes, [("x", dtype, (3,))], [("y", _F, (3,)), ("z", dtype, (3,))], opset=21, ir_version=10)
    feed = {"x": np.array([1, 7, 0 if dtype is DType.UINT8 else -4], np.float32).astype(dtype.numpy)}

    def expected(given: Tensors) -> Tensors:
        magnitude = np.abs(given["x"].astype(np.float32))
        return {"y": magnitude, "z": magnitude.astype(dtype.numpy)}

    return Example(f"stored-{dtype.label}".replace("_", "-"), proto, (feed,), expected)

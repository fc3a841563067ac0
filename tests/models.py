"""Small models for tests, written as ONNX text (https://github.com/onnx/onnx/blob/main/docs/Syntax.md)."""

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from tensortriage.model.model import Model

HEADER = '<ir_version: 10, opset_import: ["": 18]>'


def proto(text: str) -> onnx.ModelProto:
    """Parse ONNX text; a standard header is put before a bare graph."""
    return onnx.parser.parse_model(text if text.lstrip().startswith("<") else f"{HEADER}\n{text}")


def of_message(message: onnx.ModelProto) -> Model:
    """Return the model of a message, without the checks that loading a file makes."""
    return Model.from_ir(ir.from_proto(message))


def parse(text: str) -> Model:
    """Return the model of an ONNX text."""
    return of_message(proto(text))


def write(path: Path, model: str | onnx.ModelProto) -> Path:
    """Write a text or message as an ONNX file, without any check."""
    path.write_bytes((proto(model) if isinstance(model, str) else model).SerializeToString())
    return path


def chain(n: int, op_type: str = "Relu") -> Model:
    """x -> n unary operations named ``op_0`` ... -> y; values in between are ``v_0`` ..."""
    values = ["x", *(f"v_{i}" for i in range(n - 1)), "y"]
    nodes = [helper.make_node(op_type, [values[i]], [values[i + 1]], name=f"op_{i}") for i in range(n)]
    return of_nodes(nodes, inputs={"x": (2, 3)}, outputs={"y": (2, 3)})


def of_nodes(
    nodes: list[onnx.NodeProto],
    *,
    inputs: dict[str, tuple[int | str, ...]],
    outputs: dict[str, tuple[int | str, ...]],
    initializers: dict[str, np.ndarray] | None = None,
    dtype: int = onnx.TensorProto.FLOAT,
) -> Model:
    """Return a model of given nodes whose inputs and outputs all have one element type."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )
    message = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return of_message(message)


def branchy() -> Model:
    """One value used three times, two branches that join, and one that leads to an output of its own."""
    return parse("""
        g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
            [start] a = Abs(x)
            [left] b = Exp(a)
            [right] c = Neg(a)
            [join] y = Add(b, c)
            [side] z = Sqrt(a)
        }""")


def mlp(features: int = 4, hidden: int = 8) -> Model:
    """Two Gemm layers with a Relu between; the weights come from a fixed seed."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (features, hidden), "b1": (hidden,), "w2": (hidden, 2), "b2": (2,)}
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="/layer.0/Gemm"),
        helper.make_node("Relu", ["h"], ["r"], name="/layer.0/Relu"),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], name="/layer.1/Gemm"),
    ]
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return of_nodes(nodes, inputs={"x": ("N", features)}, outputs={"y": ("N", 2)}, initializers=weights)


def with_if() -> Model:
    """Both branches of the If use an outer value; the then-branch also an outer initializer."""
    return parse("""
        g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [before] a = Neg(x)
            [choice] r = If (c) <
                then_branch = then_graph () => (float[2] t) { [scaled] t = Mul(a, w) },
                else_branch = else_graph () => (float[2] e) { [rooted] e = Sqrt(x) }
            >
            [after] y = Exp(r)
        }""")


def with_loop() -> Model:
    """Three turns of ``state = state + step``, with ``step`` taken from outside the body."""
    return parse("""
        g (float[2] x) => (float[2] y) <int64 turns = {3}, bool start = {1}> {
            [outer] step = Abs(x)
            [loop] y = Loop (turns, start, x) <
                body = body (int64 i, bool more, float[2] state) => (bool again, float[2] next) {
                    [again] again = Identity(more)
                    [sum] next = Add(state, step)
                }
            >
        }""")


def with_external_data(
    directory: Path, *, name: str = "model.onnx", location: str = "weights.bin", columns: int = 8
) -> Path:
    """Write ``y = x @ W`` with W (4 rows, 0, 1, 2 ...) in ``weights.bin`` next to it; return the model's path."""
    weights = np.arange(4 * columns, dtype=np.float32).reshape(4, columns)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "weights.bin").write_bytes(weights.tobytes())
    message = proto(f"g (float[N, 4] x) => (float[N, {columns}] y) {{ [matmul] y = MatMul(x, W) }}")
    message.graph.initializer.append(
        external_tensor("W", onnx.TensorProto.FLOAT, (4, columns), location, offset=0, length=weights.nbytes)
    )
    return write(directory / name, message)


def external_tensor(
    name: str, data_type: int, dims: tuple[int, ...], location: str, **said: int | str
) -> onnx.TensorProto:
    """Return a tensor that says its data are in a file."""
    tensor = onnx.TensorProto(name=name, data_type=data_type, dims=dims, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in {"location": location, **said}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor

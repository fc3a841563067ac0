"""The folder in which both tools are run: small models, one for each thing that a command line is about, and data."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FLOAT, INT64, BOOL, HALF, BF16 = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.BFLOAT16,
)  # fmt: skip
Shape = Sequence[int | str | None] | None
LOADER = """
import numpy as np
def load_data():
    for _ in range(2):
        yield {"x": np.ones((1, 1, 2, 2), np.float32)}
other = load_data
"""
POSTPROCESS = """
def postprocess_outputs(result):
    return {name: values * 2 for name, values in result.items()}
def failing(result):
    raise RuntimeError("postprocess hook invoked")
"""
CHECKER = """
import sys, onnx
names = {node.name for node in onnx.load(sys.argv[1]).graph.node}
bad = all(name in names for name in sys.argv[3:])
if bad:
    print("REALLY BAD!" if "n1" in names else "FOUND A BAD NODE!")
sys.exit(int(sys.argv[2]) if bad else 0)
"""


def value(name: str, shape: Shape = (1,), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name: str, array: object, dtype: object = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype), name)


def node(op: str, inputs: str, outputs: str, name: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name, **attributes)


def save(
    path: Path, nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto], constants: Sequence[onnx.TensorProto] = (), opset: int = 13,
    name: str = "graph", values: Sequence[onnx.ValueInfoProto] = (), domains: bool = True,
) -> None:  # fmt: skip
    graph = helper.make_graph(nodes, name, inputs, outputs, constants, value_info=values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    if not domains:
        del model.opset_import[:]
    onnx.save(model, path)


def plain_models(folder: Path) -> None:
    """Write sound models."""
    (folder / "m.onnx").write_bytes((EXAMPLES / "digits_cnn.onnx").read_bytes())
    square = [value("x", (1, 1, 2, 2))], [value("y", (1, 1, 2, 2))]
    save(folder / "identity.onnx", [node("Identity", "x", "y")], *square, opset=8, name="test_identity")
    save(folder / "twice.onnx", [node("Identity", "X", "mid", "n1"), node("Identity", "mid", "out", "n3")],
         [value("X", (8, 8))], [value("out", (8, 8))])  # fmt: skip
    branches = [
        node("Identity", "X0", "x1", "n1"), node("Identity", "Y0", "y1", "n3"), node("Add", "x1 y1", "z0", "n5"),
        node("Identity", "z0", "z1", "n7"), node("Identity", "z0", "z2", "n9"),
    ]  # fmt: skip
    save(folder / "branches.onnx", branches, [value("X0"), value("Y0")], [value("z1"), value("z2")])
    save(folder / "dynamic.onnx", [node("Identity", "X", "Y")], [value("X", (1, 2, "height", "width"))],
         [value("Y", (1, 2, "height", "width"))])  # fmt: skip
    save(folder / "named_dim.onnx", [node("Identity", "In:0", "Out:0")], [value("In:0", ("dim0", 16, 128))],
         [value("Out:0", ("dim0", 16, 128))])  # fmt: skip
    three = [constant(name, np.arange(3)[None]) for name in "abd"]
    sums = [node("Add", "a b", "c"), node("Add", "c d", "e"), node("Add", "input e", "output")]
    ends = [value("input", (1, 3))], [value("output", (1, 3))]
    save(folder / "foldable.onnx", sums, *ends, three)
    save(folder / "const_chain.onnx", [
        node("Constant", "", "k", "n1", value=constant("v", np.ones((4, 4)))), node("Identity", "k", "l", "n3"),
        node("Identity", "l", "r", "n5")], [], [value("r", (4, 4))])  # fmt: skip
    save(folder / "bloat.onnx", [node("Tile", "t r", "o")], [], [value("o", (1024, 2560))],
         [constant("t", np.ones((1024, 256))), constant("r", [1, 10], np.int64)])  # fmt: skip
    save(folder / "initializer.onnx", [node("Identity", "X", "Y")], [], [value("Y", (2, 2))],
         [constant("X", np.ones((2, 2)))])  # fmt: skip
    save(folder / "attribute.onnx", [node("Constant", "", "k", value=constant("v", np.ones((14, 14))))], [],
         [value("k", (14, 14))])  # fmt: skip
    save(folder / "duplicate_input.onnx", [node("Add", "i i", "o", "add")], [value("i", (4, 4))], [value("o", (4, 4))])
    body = helper.make_graph(
        [node("Add", "s n", "t"), node("Identity", "t", "u")], "body", [value("s", (2,)), value("n", (2,))],
        [value("t", (2,)), value("u", (2,))])  # fmt: skip
    save(folder / "scan.onnx", [node("Scan", "initial x", "y z", body=body, num_scan_inputs=1)],
         [value("initial", (2,)), value("x", (3, 2))], [value("y", (2,)), value("z", (3, 2))])  # fmt: skip
    save(folder / "no_dims.onnx", [node("Identity", "X", "Y")], [value("X", (None, None, None))],
         [value("Y", (None, None, None))])  # fmt: skip
    save(folder / "range.onnx", [
        node("NonZero", "x", "nz"), node("Cast", "l", "li", to=INT64), node("Range", "zero li one", "r"),
        node("Identity", "r", "y")], [value("x", (4,)), value("l", ())], [value("y", (None,), INT64)],
        [constant("zero", 0, np.int64), constant("one", 1, np.int64)])  # fmt: skip
    save(folder / "instancenorm.onnx", [node("InstanceNormalization", "x s b", "y")], [value("x", (1, 3, 4, 4))],
         [value("y", (1, 3, 4, 4))], [constant("s", np.ones(3)), constant("b", np.zeros(3))])  # fmt: skip


def weight_models(folder: Path) -> None:
    """Write models whose weights matter: dense, narrow, behind Transpose and Q/DQ, in external files."""
    weights = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    matrix = [value("x", (4, 16))], [value("y", (4, 16))]
    save(folder / "matmul.onnx", [node("MatMul", "x w", "y")], *matrix, [constant("w", weights)])
    save(folder / "matmul_fp16.onnx", [node("MatMul", "x w", "y")], [value("x", (4, 16), HALF)],
         [value("y", (4, 16), HALF)], [constant("w", weights, np.float16)])  # fmt: skip
    bits = (weights.view(np.uint32) >> 16).astype(np.uint16)
    narrow = helper.make_tensor("w", BF16, (16, 16), bits.tobytes(), raw=True)
    save(folder / "matmul_bf16.onnx", [node("MatMul", "x w", "y")], [value("x", (4, 16), BF16)],
         [value("y", (4, 16), BF16)], [narrow])  # fmt: skip
    kernel = np.random.default_rng(1).normal(size=(8, 4, 3, 3)).astype(np.float32)
    image = [value("x", (1, 4, 8, 8))], [value("y", (1, 8, 6, 6))]
    save(folder / "conv.onnx", [node("Conv", "x k", "y", "conv")], *image, [constant("k", kernel)])
    quantized = [
        node("QuantizeLinear", "x s z", "xq"), node("DequantizeLinear", "xq s z", "xd"),
        node("QuantizeLinear", "k s z", "kq"), node("DequantizeLinear", "kq s z", "kd"), node("Conv", "xd kd", "y"),
    ]  # fmt: skip
    scale = [constant("s", 0.05), constant("z", 0, np.int8)]
    save(folder / "qdq.onnx", quantized, *image, [constant("k", kernel), *scale])
    (folder / "exclude.txt").write_text("w\n")
    (folder / "weights").mkdir()
    model = onnx.load(folder / "foldable.onnx")
    onnx.save(model, folder / "weights" / "ext.onnx", save_as_external_data=True, location="ext.data", size_threshold=0)
    (folder / "weights" / "ext.onnx").rename(folder / "ext.onnx")


def faulty_models(folder: Path) -> None:
    """Write models that a linter is for."""
    ends = [value("x", (2, 2))], [value("y", (2, 2))]
    relu = [node("Relu", "x", "y", "r")]
    save(folder / "no_name.onnx", relu, *ends, name="")
    save(folder / "no_domains.onnx", relu, *ends, domains=False)
    middle = [node("Relu", "x", "m", "a"), node("Relu", "m", "y", "b")]
    save(folder / "twice_declared.onnx", middle, *ends, values=[value("m", (2, 2)), value("m", (2, 2))])
    save(folder / "same_names.onnx", [node("Relu", "x", "m", "same"), node("Relu", "m", "y", "same")], *ends)
    wide = constant("w", np.ones((3, 5)))
    save(folder / "two_levels.onnx", [node("MatMul", "x w", "y", "MatMul_0")], [value("x", (2, 2))],
         [value("y", (2, 5))], [wide], name="")  # fmt: skip
    shapes = {"A": (1, 2), "B": (1, 3), "C": (2, 2), "D": (3, 3), "E": (2, 2), "F": (2, 2), "G": (4,)}
    save(folder / "parallel.onnx", [
        node("MatMul", "A B", "m0", "MatMul_0"), node("Add", "C D", "a0", "Add_0"),
        node("MatMul", "E F", "m1", "MatMul_1"), node("NonZero", "G", "nz", "NonZero"),
        node("Cast", "nz", "nf", "cast", to=FLOAT), node("MatMul", "m0 a0", "m2", "MatMul_2"),
        node("MatMul", "m1 nf", "m3", "MatMul_3"), node("Add", "m2 m3", "o", "Add_1")],
        [value(name, shape) for name, shape in shapes.items()], [value("o", (None, None))])  # fmt: skip
    branch = {
        name: helper.make_graph([node("Identity", source, f"{source}o")], name, [], [value(f"{source}o", (None, None))])
        for name, source in (("then", "p"), ("else", "q"))
    }
    save(folder / "condition.onnx", [
        node("If", "cond", "z", "If_Node", then_branch=branch["then"], else_branch=branch["else"]),
        node("MatMul", "p z", "o", "MatMul")],
        [value("p", (2, 2)), value("q", (3, 3)), value("cond", (1,), BOOL)], [value("o", (None, None))])  # fmt: skip
    save(folder / "custom.onnx", [node("FakeOp", "x", "y")], *ends)
    save(folder / "fake.onnx", [node("FAKE!", "x", "a", "n0"), node("Identity", "a", "b", "n1"),
         node("FAKER!", "b", "y", "n2")], *ends)  # fmt: skip
    (folder / "invalid.onnx").write_bytes(b"this is not a model")
    onnx.save(helper.make_model(helper.make_graph([], "empty", [], []), ir_version=8), folder / "empty.onnx")
    save(folder / "cleanable.onnx", [node("Relu", "x", "y", "F"), node("Relu", "x", "unused", "G")],
         [value("x", (2, 2)), value("e", (2, 2))], [value("y", (2, 2))])  # fmt: skip
    save(folder / "unnamed.onnx", [node("Relu", "x", "a"), node("Relu", "a", "b", "polygraphy_unnamed_node_0"),
         node("Relu", "b", "c"), node("Relu", "c", "y", "polygraphy_unnamed_node_0_0")], *ends)  # fmt: skip


def make_folder(folder: Path) -> None:
    """Write every model, script and data file that the command lines name."""
    folder.mkdir(parents=True, exist_ok=True)
    plain_models(folder)
    weight_models(folder)
    faulty_models(folder)
    (folder / "load.py").write_text(LOADER)
    (folder / "post.py").write_text(POSTPROCESS)
    (folder / "check.py").write_text(CHECKER)
    (folder / "empty.tmp").touch()

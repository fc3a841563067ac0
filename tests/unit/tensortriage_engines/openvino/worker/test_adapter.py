"""OpenVINO as a worker drives it: types, names, precisions and failures of the real engine."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.base import Limits
from tensortriage.engines.capabilities import ReportsPrecision
from tensortriage.errors import BuildFailed, DataError, EngineMissing, UsageError
from tensortriage.values.dtype import DType
from tensortriage_engines.openvino.engine import OpenVinoEngine

LIMITS = Limits(build_seconds=60, run_seconds=30)
ENGINE = OpenVinoEngine(limits=LIMITS)
HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
OLDEST = ENGINE.availability().version.startswith("2024.0")
"""The oldest release supported: its ONNX front end reads neither strings nor float8 and int4."""

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not ENGINE.availability().usable, reason="OpenVINO is not installed"),
]


@pytest.fixture
def compiled(tmp_path: Path):
    sessions = []

    def compile_text(text: str, **options: str):
        path = tmp_path / f"model{len(sessions)}.onnx"
        onnx.save(parser.parse_model(HEAD + text), path)
        sessions.append(ENGINE.compile(path, options))
        return sessions[-1]

    yield compile_text
    for session in sessions:
        session.close()


@pytest.fixture(scope="module")
def bf16_here() -> bool:
    return ENGINE.precision({}) == "bf16"


MLP = """g (float[N,8] x) => (float[N,8] y, float[N,8] h2) <float[8,8] w = {%s}> {
  [first] h = MatMul(x, w)
  [act] h2 = Relu(h)
  [second] h3 = MatMul(h2, w)
  [last] y = Add(h3, x)
}""" % ", ".join(str(((i * 7) % 13 - 6) / 8) for i in range(64))  # noqa: UP031 - braces belong to the model text
X = (np.arange(16, dtype=np.float32).reshape(2, 8) - 7) / 3


def expected_mlp(x: np.ndarray) -> dict[str, np.ndarray]:
    w = np.array([((i * 7) % 13 - 6) / 8 for i in range(64)]).reshape(8, 8)
    h2 = np.maximum(x.astype(np.float64) @ w, 0)
    return {"y": h2 @ w + x, "h2": h2}


def test_computes_names_and_orders_outputs_as_declared(compiled):
    session = compiled(MLP, precision="fp32")
    assert [(s.name, s.dtype, s.shape) for s in session.inputs] == [("x", DType.FLOAT, (None, 8))]
    assert [s.name for s in session.outputs] == ["y", "h2"]
    for rows in (2, 1):
        result = session.run({"x": X[:rows]})
        for name, value in expected_mlp(X[:rows]).items():  # numpy, in float64
            np.testing.assert_allclose(result[name], value, rtol=1e-5, atol=1e-5)


def test_the_effective_precision_is_read_back(compiled, bf16_here):
    assert isinstance(ENGINE, ReportsPrecision)
    assert ENGINE.precision({"precision": "f32"}) == "fp32"
    assert ENGINE.precision({"precision": "dynamic"}) == "fp32"
    assert ENGINE.precision({"hint.execution": "accuracy"}) == "fp32"
    assert compiled(MLP, precision="fp32").info["precision"] == "fp32"
    default = compiled(MLP).info["precision"]
    assert default == ENGINE.precision({}) == ENGINE.precision({"precision": "auto"})
    assert default == ("bf16" if bf16_here else "fp32")


def test_bf16_computes_in_bf16_and_returns_what_the_model_declares(compiled, bf16_here):
    if not bf16_here:
        pytest.skip("this CPU has no bfloat16 arithmetic")
    session = compiled(MLP, precision="bf16")
    assert session.info["precision"] == "bf16"
    result = session.run({"x": X})["h2"]
    assert result.dtype == np.float32
    error = np.abs(result - expected_mlp(X)["h2"]).max()
    assert 1e-5 < error < 0.2  # bfloat16 keeps 8 bits: relative 2**-8 of values up to about 10


def test_the_plan_speaks_of_onnx_nodes(compiled):
    plan = compiled(MLP, precision="fp32").plan()
    named = [region for region in plan.regions if region.nodes]
    assert {node for region in named for node in region.nodes} == {"first", "act", "second", "last"}
    matmul = next(region for region in named if "first" in region.nodes)
    assert (matmul.kind, matmul.precision) == ("FullyConnected", "float32") or matmul.kind == "MatMul"
    assert matmul.implementation
    order = [region.nodes[0] for region in named]
    assert order.index("first") < order.index("second")


def test_nodes_fused_without_a_word_are_found_by_their_wiring(compiled):
    ones = ", ".join(["0.5"] * 64)
    session = compiled(
        f"g (float[4,8] x) => (float[4,8] y) <float[8,8] w = {{{ones}}}, float[8] b = {{1,2,3,4,5,6,7,8}}, "
        "float root = {1.4142135}, float one = {1}, float half = {0.5}> {"
        "[mm] a = MatMul(x, w)\n [bias] c = Add(a, b)\n [div] d = Div(c, root)\n [erf] e = Erf(d)\n"
        "[plus] f = Add(e, one)\n [mul] g1 = Mul(c, f)\n [gelu] h = Mul(g1, half)\n [last] y = Add(h, x) }",
        precision="fp32",
    )
    named = [region.nodes for region in session.plan().regions if region.nodes]
    assert sorted(node for nodes in named for node in nodes) == sorted(
        ["mm", "bias", "div", "erf", "plus", "mul", "gelu", "last"]
    )
    assert any({"div", "erf", "plus", "mul", "gelu"} <= {*nodes} for nodes in named)


def test_no_node_is_in_two_regions(compiled):
    """Whoever isolates the regions of a plan wants them disjoint; here one unnamed Neg feeds two MatMuls."""
    session = compiled(
        f"g (float[2,8] x) => (float[2,8] y, float[2,8] z) <float[8,8] w = {{{', '.join(['0.5'] * 64)}}}> {{"
        "[neg] a = Neg(x)\n [one] b = MatMul(a, w)\n [two] c = MatMul(a, w)\n [y] y = Relu(b)\n [z] z = Sigmoid(c) }",
    )
    nodes = [node for region in session.plan().regions for node in region.nodes]
    assert sorted(nodes) == ["neg", "one", "two", "y", "z"]


def test_every_type_in_and_out_as_declared(compiled):
    types = {
        "bool": [True, False], "int8": [-3, 4], "uint8": [3, 200], "int16": [-300, 4], "uint16": [3, 60000],
        "int32": [-70000, 4], "uint32": [3, 70000], "int64": [-70000, 4], "uint64": [3, 70000], "float16": [1.5, -2],
        "float": [1.5, -2], "double": [1.5, -2], "bfloat16": [1.5, -2],
    }  # fmt: skip
    inputs = ", ".join(f"{t}[2] in_{t}" for t in types)
    outputs = ", ".join(f"{t}[2] out_{t}" for t in types)
    body = "\n".join(f"out_{t} = Identity(in_{t})" for t in types)
    session = compiled(f"g ({inputs}) => ({outputs}) {{ {body} }}", precision="fp32")
    feed = {f"in_{t}": np.array(v).astype(DType.parse(t).numpy) for t, v in types.items()}
    result = session.run(feed)
    for name in types:
        assert result[f"out_{name}"].dtype == feed[f"in_{name}"].dtype
        assert result[f"out_{name}"].tobytes() == feed[f"in_{name}"].tobytes(), name


def test_float8_and_int4_inputs(compiled):
    if OLDEST:
        with pytest.raises(BuildFailed, match="unsupported element type"):  # 2024.0 reads no float8 from ONNX
            compiled("g (float8e4m3fn[3] a) => (float[3] p) { p = Cast<to=1>(a) }")
        return
    session = compiled(
        "g (float8e4m3fn[3] a, float8e5m2[3] b, int4[3] c, uint4[3] d) => "
        "(float[3] p, float[3] q, float[3] r, float[3] s)"
        "{ p = Cast<to=1>(a)\n q = Cast<to=1>(b)\n r = Cast<to=1>(c)\n s = Cast<to=1>(d) }",
        precision="fp32",
    )
    values = np.array([1.5, -2, 0.5])
    wholes = np.array([-3, 7, 2])
    result = session.run(
        {
            "a": values.astype(DType.FLOAT8E4M3FN.numpy),
            "b": values.astype(DType.FLOAT8E5M2.numpy),
            "c": wholes.astype(DType.INT4.numpy),
            "d": np.abs(wholes).astype(DType.UINT4.numpy),
        }
    )
    np.testing.assert_array_equal(result["p"], values)
    np.testing.assert_array_equal(result["q"], values)
    np.testing.assert_array_equal(result["r"], wholes)
    np.testing.assert_array_equal(result["s"], np.abs(wholes))


@pytest.mark.parametrize("code", ["q", "l"])
def test_both_numpy_spellings_of_int64(compiled, code):
    """OpenVINO's binding knows only one of them and refuses the other: 'Unsupported data type: int64'."""
    session = compiled("g (int64[2] x) => (int64[2] y) { y = Add(x, x) }")
    feed = {"x": np.array([3, -4], dtype=np.dtype(code))}
    np.testing.assert_array_equal(session.run(feed)["y"], [6, -8])


def test_scalars_empty_tensors_and_no_inputs(compiled):
    session = compiled("g (float s, float[0,4] e, float[N,4] n) => (float t, float[0,4] e2, float[N,4] n2)"
                       "{ t = Exp(s)\n e2 = Exp(e)\n n2 = Exp(n) }")  # fmt: skip
    feed = {"s": np.array(0, np.float32), "e": np.zeros((0, 4), np.float32), "n": np.zeros((0, 4), np.float32)}
    result = session.run(feed)
    assert (result["t"].shape, result["e2"].shape, result["n2"].shape) == ((), (0, 4), (0, 4))
    assert float(result["t"]) == 1.0
    constant = compiled("g () => (float[2] y) <float[2] c = {1, 2}> { y = Neg(c) }").run({})
    np.testing.assert_array_equal(constant["y"], [-1, -2])


def test_outputs_that_are_inputs_constants_or_aliases(compiled):
    session = compiled(
        "g (float[2] x, int64[2] k) => (float[2] x, float[2] c, float[2] a, float[2] b, int64[2] k2) "
        "<float[2] c = {1, 2}> { a = Relu(x)\n b = Identity(a)\n k2 = Identity(k) }"
    )
    result = session.run({"x": np.array([-1, 2], np.float32), "k": np.array([5, 6])})
    assert {name: value.tolist() for name, value in result.items()} == {
        "x": [-1, 2], "c": [1, 2], "a": [0, 2], "b": [0, 2], "k2": [5, 6],
    }  # fmt: skip


def test_inputs_that_nothing_uses_or_an_identity_passes_through_keep_their_names(compiled):
    """OpenVINO 2024.0 drops the first (and so 2025.1), and both call the second after the output."""
    session = compiled("g (float[2] x, int64[3] unused, int64[2] k) => (float[2] y, int64[2] k2) "
                       "{ y = Neg(x)\n k2 = Identity(k) }")  # fmt: skip
    assert [(spec.name, spec.shape) for spec in session.inputs] == [("x", (2,)), ("unused", (3,)), ("k", (2,))]
    feed = {"x": np.ones(2, np.float32), "unused": np.zeros(3, np.int64), "k": np.array([5, 6])}
    assert {name: value.tolist() for name, value in session.run(feed).items()} == {"y": [-1, -1], "k2": [5, 6]}


def test_names_with_every_kind_of_character(compiled):
    session = compiled('g (float[2] "golden::/a b/c:0.1", float[2] "x/sink_port_0") => '
                       '(float[2] "y/sink_port_0", float[2] "z,1")'
                       '{ "y/sink_port_0" = Neg("golden::/a b/c:0.1")\n "z,1" = Neg("x/sink_port_0") }')  # fmt: skip
    result = session.run({"golden::/a b/c:0.1": np.ones(2, np.float32), "x/sink_port_0": np.zeros(2, np.float32)})
    assert list(result) == ["y/sink_port_0", "z,1"]
    np.testing.assert_array_equal(result["y/sink_port_0"], [-1, -1])


def test_a_missing_input_is_an_error_not_garbage(compiled):
    with pytest.raises(DataError):
        compiled("g (float[2] a, float[2] b) => (float[2] y) { y = Add(a, b) }").run({"a": np.ones(2, np.float32)})


def test_refused_models_say_why(compiled):
    with pytest.raises(BuildFailed, match=r"OpenVINO refused the model: .*foo\.Bar"):
        compiled("g (float[2] a) => (float[2] y) { y = foo.Bar(a) }")


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_text("nonsense")
    with pytest.raises(BuildFailed):
        ENGINE.compile(tmp_path / "m.onnx", {})


@pytest.mark.parametrize(
    ("options", "kind", "slug"),
    [
        ({"precison": "fp32"}, UsageError, "engine-option-unknown"),
        ({"precision": "int8"}, UsageError, "engine-option-value"),
        ({"threads": "0"}, UsageError, "engine-option-value"),
        ({"hint.speed": "1"}, UsageError, "engine-option-unknown"),
        ({"config.NO_SUCH_KEY": "1"}, UsageError, "engine-option-value"),
        ({"device": "MARS"}, EngineMissing, "device-missing"),
        ({"worker": "/no/such/python"}, EngineMissing, "worker-unusable"),
    ],
)
def test_options_that_cannot_be(compiled, options, kind, slug):
    with pytest.raises(kind) as caught:
        compiled("g (float[2] a) => (float[2] y) { y = Neg(a) }", **options)
    assert caught.value.slug == slug
    assert caught.value.cure


def test_options_that_can_be(compiled):
    options = {"threads": "1", "hint.performance": "latency", "config.PERF_COUNT": "YES", "device": "cpu"}
    session = compiled("g (float[2] a) => (float[2] y) { y = Neg(a) }", **options)
    np.testing.assert_array_equal(session.run({"a": np.ones(2, np.float32)})["y"], [-1, -1])

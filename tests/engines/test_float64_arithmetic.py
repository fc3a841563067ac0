"""The arithmetic of the engine ``float64``, through the engine: what is rounded, added up and approximated where."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from engines.onnx_models import F, conv_net, parsed
from engines.test_float64_operators import DISAGREE, arrays, cases, feed_of
from tensortriage.engines.emulate import EmulateEngine
from tensortriage.engines.float64.arithmetic import Arithmetic
from tensortriage.engines.float64.engine import Float64Engine, Float64Session
from tensortriage.errors import BuildFailed, EngineError
from tensortriage.model.model import Model

ROUNDED = Arithmetic(rounds=True)


def run(path, options, **feed):
    session = Float64Engine().compile(path, options)
    try:
        return session.run(feed)
    finally:
        session.close()


def words(text):
    return dict(pair.split("=") for pair in text.split(",") if pair)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# Results rounded to their types


def test_float64_stays_float64_under_every_arithmetic(tmp_path):
    text = "g (double[2,40] x, double[40,2] w) => (double[2,2] y) { m = MatMul(x, w)\n y = Tanh(m) }"
    x, w = np.random.default_rng(0).standard_normal((2, 2, 40))
    path = parsed(tmp_path / "m.onnx", text)
    options = words("rounding=results,accumulator=fp16,operands=bf16,functions=npu")
    assert np.array_equal(run(path, options, x=x, w=w.T)["y"], np.tanh(x @ w.T))


@pytest.mark.lengthy
def test_examples_of_the_specifications_within_few_units():
    """ONNX's expected float32 data are numpy's float32: each operation of several is rounded there."""
    compared, wrong = 0, []
    for case in cases():
        op_type = case.model.graph.node[0].op_type
        if case.name in DISAGREE or op_type in LOOSE:
            continue
        try:
            session = Float64Session(Model.from_ir(ir.from_proto(case.model)), ROUNDED)
            found = session.run(feed_of(case, case.data_sets[0][0]))
        except (BuildFailed, EngineError):
            continue
        for spec, expected in zip(case.model.graph.output, arrays(case.data_sets[0][1]), strict=True):
            if spec.type.tensor_type.elem_type != F or not expected.size:
                continue
            compared += 1
            assert found[spec.name].dtype == np.float32, case.name
            single = op_type in SINGLE_OPERATIONS
            if np.max(apart(found[spec.name], expected, of_each=single)) > (2 if single else 3):
                wrong.append(case.name)
    assert compared > 600
    assert wrong == []


LOOSE = {"GridSample", "RoiAlign", "MeanVarianceNormalization"}  # printed with four digits; a difference of squares
SINGLE_OPERATIONS = {
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Clip", "Cos", "Cosh", "Div", "Erf", "Exp",
    "Floor", "LeakyRelu", "Log", "Max", "Min", "Mul", "Neg", "PRelu", "Reciprocal", "ReduceMax", "Relu", "Sin", "Sinh",
    "Sqrt", "Sub", "Tan", "Tanh",
}  # fmt: skip


def apart(found, expected, *, of_each):
    """Return the distance in units of the last place of each float32 number, or of the largest one."""
    finite = np.isfinite(found) & np.isfinite(expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    x, y = (np.where(finite, z, 0).astype(np.float64) for z in (found, expected))
    size = np.maximum(np.abs(x), np.abs(y)).astype(np.float32)
    unit = np.spacing(size if of_each else np.max(size))
    return np.where(same, 0, np.where(finite, np.abs(x - y) / unit, np.inf))


# A format on top


@pytest.mark.parametrize("word", ["fp16", "bf16", "fp8e4m3", "fp8e5m2"])
def test_a_format_agrees_with_the_engine_emulate(tmp_path, word):
    path = conv_net(tmp_path / "m.onnx")
    feed = {"x": normal(0, 1, 16, 8, 8)}
    ours = run(path, {"format": word}, **feed)["y"]
    session = EmulateEngine().compile(path, {"precision": word})
    theirs = session.run(feed)["y"]
    session.close()
    exact = run(path, {}, **feed)["y"]
    # Both round the same values; what differs is the order of float32 sums, which moves a rounding now and then.
    apart, cost = np.linalg.norm(ours - theirs), np.linalg.norm(theirs - exact)
    assert ours.dtype == np.float32
    assert apart < 0.1 * cost


# Sums


def block_sum(left, right, kind, block):
    """Return a matrix product in a narrow accumulator, product by product in Python."""
    result = np.zeros((left.shape[0], right.shape[1]))
    for i, j in np.ndindex(result.shape):
        total = 0.0
        for start in reversed(range(0, left.shape[1], block)):
            total += sum(
                float(left[i, k]) * float(right[k, j]) for k in range(start, min(start + block, left.shape[1]))
            )
            total = float(np.asarray(total).astype(kind))
        result[i, j] = total
    return result.astype(np.float32)


@pytest.mark.parametrize(("word", "kind"), [("fp16", np.float16), ("bf16", ml_dtypes.bfloat16)])
@pytest.mark.parametrize("op", ["y = MatMul(x, w)", "y = Gemm(x, w)"])
def test_matrix_products_in_narrow_accumulators(tmp_path, word, kind, op):
    text = f"g (float[3,100] x, float[100,4] w) => (float[3,4] y) {{ {op} }}"
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-99, 99, shape).astype(np.float32) / 32 for shape in ((3, 100), (100, 4)))
    options = {"rounding": "results", "accumulator": word, "block": "16"}
    found = run(parsed(tmp_path / "m.onnx", text), options, x=x, w=w)["y"]
    np.testing.assert_array_equal(found, block_sum(x, w, kind, 16))


@pytest.mark.parametrize(("channels", "block"), [(12, 8), (8, 8), (6, 6), (3, 3)])
def test_convolutions_add_in_blocks_over_channels_and_taps(tmp_path, channels, block):
    """The sum is rounded once per tap where the channels are fewer than a unit takes at once."""
    text = f"g (float[1,{channels},5,5] x, float[4,{channels},3,3] w) => (float[1,4,3,3] y) {{ y = Conv(x, w) }}"
    rng = np.random.default_rng(4)
    shapes = (1, channels, 5, 5), (4, channels, 3, 3)
    x, w = (rng.integers(-50, 50, shape).astype(np.float32) / 16 for shape in shapes)
    options = {"rounding": "results", "accumulator": "fp16", "block": "8"}
    found = run(parsed(tmp_path / "m.onnx", text), options, x=x, w=w)["y"]
    columns = np.stack([x[0, :, i : i + 3, j : j + 3].ravel() for i in range(3) for j in range(3)], axis=1)
    np.testing.assert_array_equal(found[0].reshape(4, 9), block_sum(w.reshape(4, -1), columns, np.float16, block))


@pytest.mark.parametrize(
    ("word", "drop", "cut"), [("tf32", 13, False), ("tf32-truncated", 13, True), ("bf16", 16, False)]
)
def test_operands_are_shortened(tmp_path, word, drop, cut):
    text = "g (float[3,4] x, float[4,2] w) => (float[3,2] y) { y = MatMul(x, w) }"
    x, w = normal(5, 3, 4), normal(6, 4, 2)

    def short(numbers):
        bits = numbers.view(np.uint32).astype(np.int64)
        kept = bits >> drop if cut else np.rint(bits / 2.0**drop).astype(np.int64)  # numpy rounds ties to even
        return (kept << drop).astype(np.uint32).view(np.float32).astype(np.float64)

    found = run(parsed(tmp_path / "m.onnx", text), {"rounding": "results", "operands": word}, x=x, w=w)["y"]
    np.testing.assert_array_equal(found, (short(x) @ short(w)).astype(np.float32))


@pytest.mark.parametrize("node", [
    "LSTM<hidden_size = 3>(x, w, r)", "Conv(x, k)", "ConvTranspose(x, k)", "ReduceSum(x)", "ReduceMean(x)",
    "LayerNormalization(x, s)", "Softmax(x)", "AveragePool<kernel_shape = [3]>(x)", "GlobalAveragePool(x)",
])  # fmt: skip
def test_float32_accumulators_move_the_last_digits_only(tmp_path, node):
    first = "y, h, c" if node.startswith("LSTM") else "y"
    text = f"""g (float[2,40,40] x, float[1,12,40] w, float[1,12,3] r, float[40,40,1] k, float[40] s) => (float y) {{
        {first} = {node}
    }}"""
    feed = {"x": normal(7, 2, 40, 40) + 1, "w": normal(8, 1, 12, 40), "r": normal(9, 1, 12, 3),
            "k": normal(10, 40, 40, 1), "s": normal(11, 40)}  # fmt: skip
    path = parsed(tmp_path / "m.onnx", text)
    exact = run(path, {}, **feed)["y"]
    one = run(path, words("rounding=results,accumulator=fp32,block=16"), **feed)["y"]
    other = run(path, words("rounding=results,accumulator=fp32,block=64"), **feed)["y"]
    scale = np.sqrt(np.mean(exact**2))
    assert 0 < np.max(np.abs(one - exact)) / scale < 2e-5
    assert 0 < np.max(np.abs(other - exact)) / scale < 2e-5


@pytest.mark.parametrize(("tile", "most"), [("2", 4), ("4", 20), ("6", 10_000)])
def test_winograd_is_the_same_convolution_with_other_digits(tmp_path, tile, most):
    text = "g (float[2,8,9,11] x, float[5,8,3,3] w) => (float[2,5,9,11] y) { y = Conv<pads = [1,1,1,1]>(x, w) }"
    x, w = normal(12, 2, 8, 9, 11), normal(13, 5, 8, 3, 3)
    path = parsed(tmp_path / "m.onnx", text)
    exact = run(path, {}, x=x, w=w)["y"]
    found = run(path, {"rounding": "results", "winograd": tile}, x=x, w=w)["y"]
    error = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
    direct = run(path, words("rounding=results,accumulator=fp32"), x=x, w=w)["y"]
    usual = np.max(np.abs(direct - exact)) / np.max(np.abs(exact))
    assert (0 if tile == "2" else usual) < error < most * usual
    assert not np.array_equal(found, direct)
    assert found.shape == exact.shape


# Functions


def test_functions_err_within_their_class_and_differently_by_seed(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[500] x) => (float[500] y) { y = Tanh(x) }")
    x = np.linspace(0.2, 3, 500, dtype=np.float32)
    exact = run(path, {}, x=x)["y"]
    worst = {}
    for word in ("cpu", "gpu", "npu"):
        found = [run(path, {"functions": word, "seed": str(seed)}, x=x)["y"] for seed in range(4)]
        assert len({y.tobytes() for y in found}) == 4
        worst[word] = max(np.max(np.abs(y / exact - 1)) for y in found)
    assert 0 < worst["cpu"] < 4e-7 < 5e-6 < worst["gpu"] < 1.2e-5 < 5e-4 < worst["npu"]


# Programs


def test_whole_network_under_every_arithmetic(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    feed = {"x": normal(19, 1, 16, 8, 8)}
    exact = run(path, {}, **feed)["y"]
    limits = {
        "rounding=results": 1e-6, "rounding=results,accumulator=fp32": 1e-5, "rounding=results,winograd=4": 1e-4,
        "rounding=results,operands=tf32": 3e-3, "rounding=results,accumulator=fp16,block=16": 2e-2,
        "rounding=results,functions=gpu,fused=true,denormals=flush": 1e-5, "format=fp16,accumulator=fp16": 2e-2,
        "format=bf16,accumulator=bf16,block=16": 2e-1, "accumulator=fp32,accumulator_rounding=truncate": 1e-4,
    }  # fmt: skip
    for text, limit in limits.items():
        found = run(path, words(text), **feed)["y"]
        error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2))
        assert 0 < error < limit, (text, error)


# Largest errors of TensorRT 8.5.3 (H100, FP32) over 4,096 arguments from -8 to 8; the error grows with the argument.
@pytest.mark.parametrize(
    ("op", "measured"), [("Sin", 1.10e-6), ("Cos", 1.12e-6), ("Sigmoid", 3.67e-6), ("Tanh", 7.28e-6)]
)
def test_functions_of_a_gpu_are_as_far_off_as_measured(tmp_path, op, measured):
    x = np.linspace(-8, 8, 4096, dtype=np.float32)
    path = parsed(tmp_path / "m.onnx", f"g (float[4096] x) => (float[4096] y) {{ y = {op}(x) }}")
    exact = run(path, {}, x=x)["y"]
    worst = max(
        np.max(np.abs(run(path, words(f"rounding=results,functions=gpu,seed={seed}"), x=x)["y"] - exact))
        for seed in range(8)
    )
    assert measured <= worst < 2.2 * measured

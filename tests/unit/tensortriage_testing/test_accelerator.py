"""Each freedom of the simulated accelerator has the size that its source gives, measured against float64."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.script import ScriptEngine
from tensortriage.errors import BuildFailed, RunFailed, UsageError
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import mark_outputs, markable
from tensortriage.testing import check_engine_conformance
from tensortriage_testing import SimulatedAccelerator, conv_net, encoder, feed_for, save_model
from tensortriage_testing.simulated.approximations import EXACT, erf
from tensortriage_testing.simulated.formats import SimulatedFormat, flushed, rounded

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seeded():
    """Draw the same numbers in every order of tests."""
    global RNG
    RNG = np.random.default_rng(0)


def run(model: onnx.ModelProto | str, feed, folder: Path, **options: str):
    if isinstance(model, str):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]>\n{model}')
    path = folder / "m.onnx"
    onnx.save(model, path)
    session = SimulatedAccelerator().compile(path, options)
    try:
        return session.run(feed)
    finally:
        session.close()


def off(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


# --- formats ----------------------------------------------------------------------------------------------------------

MANTISSA = {SimulatedFormat.FP32: 24, SimulatedFormat.TF32: 11, SimulatedFormat.FP16: 11, SimulatedFormat.BF16: 8}
"""Bits of the significand, the hidden one included: IEEE 754, NVIDIA A100 whitepaper, bfloat16."""


@pytest.mark.parametrize("to", MANTISSA)
def test_rounding_is_within_half_a_step_and_truncation_within_one_toward_zero(to):
    x = RNG.uniform(0.01, 9.0, 20_000) * RNG.choice([-1.0, 1.0], 20_000)
    step = 2.0 ** (np.floor(np.log2(np.abs(x))) - MANTISSA[to] + 1)
    nearest, cut = rounded(x, to), rounded(x, to, toward_zero=True)
    assert np.abs(nearest - x).max() > 0
    assert (np.abs(nearest - x) <= 0.5000001 * step + (to is not SimulatedFormat.FP32) * 2.0**-24 * np.abs(x)).all()
    assert (np.abs(cut) <= np.abs(x)).all()
    assert (np.abs(cut - x) < step).all()
    np.testing.assert_array_equal(rounded(nearest, to), nearest)
    assert 0.4 < np.mean(cut != nearest) < 0.6  # truncation and rounding differ for half of all numbers


def test_half_precision_is_that_of_numpy():
    x = (RNG.standard_normal(50_000) * 10.0 ** RNG.uniform(-9, 6, 50_000)).astype(np.float32)
    x = np.concatenate([x, [0, -0.0, 65519.99, 65520, -65520, 2.0**-25, 3 * 2.0**-25, np.inf, np.nan]]).astype(
        np.float32
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rounded(x, SimulatedFormat.FP16), x.astype(np.float16).astype(np.float32))


def test_ties_go_to_even_and_what_is_not_finite_stays():
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf, -np.inf, np.nan, 1e6], np.float32)
    np.testing.assert_array_equal(rounded(x, SimulatedFormat.TF32)[:5], [1, 1 + 2.0**-9, np.inf, -np.inf, np.nan])
    assert rounded(x, SimulatedFormat.FP16)[5] == np.inf
    assert rounded(x, SimulatedFormat.FP16, toward_zero=True)[5] == 65504


def test_subnormal_numbers_are_flushed():
    x = np.array([1e-39, -1e-39, 1.2e-38, 0, 1], np.float32)
    np.testing.assert_array_equal(flushed(x, SimulatedFormat.FP32), np.where(np.abs(x) < 2.0**-126, 0, x))
    assert flushed(np.array([5e-5], np.float32), SimulatedFormat.FP16)[0] == 0


# --- functions --------------------------------------------------------------------------------------------------------


def test_the_fast_power_is_the_exponential_of_a_product(tmp_path):
    x = RNG.uniform(-3, 3, (4, 500)).astype(np.float32)
    square = run("g (float[4,500] x) => (float[4,500] y) <float e = {2}> { y = Pow(x, e) }", {"x": x}, tmp_path,
                 functions="pow:fast")["y"]  # fmt: skip
    assert 1e-8 < off(square, x.astype(np.float64) ** 2) < 1e-6
    assert (square > 0).all()


def test_a_gelu_is_approximated_as_a_whole_only(tmp_path):
    text = """g (float[4,256] x) => (float[4,256] y) <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
      [a] a = Div(x, r)\n [b] b = Erf(a)\n [c] c = Add(b, one)\n [d] d = Mul(x, c)\n [e] y = Mul(d, half) }"""
    x = RNG.standard_normal((4, 256)).astype(np.float32) * 2
    exact = x / 2.0 * (1 + erf(x / np.sqrt(2.0)))
    worst = np.abs(run(text, {"x": x}, tmp_path, functions="gelu:tanh")["y"] - exact).max()
    assert 2e-4 < worst < 4.8e-4  # Hendrycks and Gimpel 2016: at most 4.73e-4
    marked = mark_outputs(Model.load(tmp_path / "m.onnx"), ["b"]).save(tmp_path / "marked.onnx")
    session = SimulatedAccelerator().compile(marked, {"functions": "gelu:tanh"})
    assert np.abs(session.run({"x": x})["y"] - exact).max() < 1e-6
    session.close()


@pytest.mark.parametrize(("size", "least", "most"), [("2e-6", 1e-6, 2e-6), ("1e-3", 5e-4, 1e-3)])
def test_a_function_may_be_given_a_size(tmp_path, size, least, most):
    x = RNG.standard_normal((64, 64)).astype(np.float32)
    found = run("g (float[64,64] x) => (float[64,64] y) { y = Softmax(x) }", {"x": x}, tmp_path,
                functions=f"softmax:{size}")["y"]  # fmt: skip
    exact = EXACT["Softmax"](x.astype(np.float64))
    assert least < off(found, exact) < most


# --- products and sums ------------------------------------------------------------------------------------------------

MATMUL = "g (float[32,512] x, float[512,32] w) => (float[32,32] y) { y = MatMul(x, w) }"
LEFT, RIGHT = (RNG.standard_normal(shape).astype(np.float32) for shape in ((32, 512), (512, 32)))
EXACT_PRODUCT = LEFT.astype(np.float64) @ RIGHT.astype(np.float64)


def blocked(block: int, unit: float) -> float:
    """Relative error of a sum of 512 terms rounded after every block: a random walk of partial sums.

    The partial sum behind n terms has variance n; rounding it adds variance n (2 unit)^2 / 12 * 0.72 (the mean square
    of a step relative to the number's, over a binade), so the relative error is unit * sqrt(sum(n)) / sqrt(512) * 0.49.
    """
    return float(unit * 0.49 * np.sqrt(sum(range(block, 513, block)) / 512))


ONE_BY_ONE = 1.6 * blocked(1, 2.0**-24)
"""More than float32 sums of products cost in any order; how many a kernel adds at once is its own choice."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"operands": "tf32"}, 2.0**-11 * 0.49 * np.sqrt(2)),  # two operands, each off by a rounding
        ({"operands": "tf32-truncated"}, 2.0**-10 * 0.72 * np.sqrt(2) * 0.7),
        ({"operands": "bf16"}, 2.0**-8 * 0.49 * np.sqrt(2)),
        ({"accumulator": "fp16", "block": "16"}, blocked(16, 2.0**-11)),
        ({"accumulator": "fp16", "block": "64"}, blocked(64, 2.0**-11)),
        ({"accumulator": "bf16", "block": "32"}, blocked(32, 2.0**-8)),
        ({"precision": "fp16"}, 2.0**-11 * 0.49 * np.sqrt(3)),
        ({"precision": "bf16"}, 2.0**-8 * 0.49 * np.sqrt(3)),
        ({"order": "sequential"}, blocked(1, 2.0**-24)),
    ],
)
def test_a_product_is_off_by_what_its_arithmetic_costs(tmp_path, options, expected):
    found = run(MATMUL, {"x": LEFT, "w": RIGHT}, tmp_path, **options)["y"]
    assert expected / 1.6 < off(found, EXACT_PRODUCT) < expected * 1.6


@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ({"operands": "bf16x3"}, 1e-6, 2.0**-16),  # 16 bits of mantissa are kept, products of low halves are lost
        ({"block": "16"}, 1e-8, ONE_BY_ONE),
        ({"order": "reversed"}, 1e-8, ONE_BY_ONE),
        ({"accumulator": "fp64"}, 0.0, 6e-8),  # exact but for the result
        ({"block": "8", "rounding": "zero"}, 3e-7, 4e-6),
    ],
)
def test_a_product_in_another_order_or_with_split_operands(tmp_path, options, least, most):
    found = run(MATMUL, {"x": LEFT, "w": RIGHT}, tmp_path, **options)["y"]
    assert least <= off(found, EXACT_PRODUCT) < most


def test_an_accumulator_that_truncates_is_biased_toward_zero(tmp_path):
    x, w = np.abs(LEFT), np.abs(RIGHT)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    found = run(MATMUL, {"x": x, "w": w}, tmp_path, accumulator="fp16", block="16", rounding="zero")["y"]
    assert (found < exact).all()
    assert 32 * 2.0**-11 / 6 < np.mean(1 - found / exact) < 32 * 2.0**-11  # up to a unit per block, half on average


CONV = """g (float[2,8,13,11] x, float[6,8,3,3] w) => (float[2,6,13,11] y)
{ y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w) }"""


def direct(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the convolution of CONV in float64, written out."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifts = [(i, j) for i in range(3) for j in range(3)]
    return sum(np.einsum("nchw,fc->nfhw", padded[:, :, i : i + 13, j : j + 11], w[:, :, i, j].astype(np.float64))
               for i, j in shifts)  # fmt: skip


def test_winograd_costs_little_with_small_tiles_and_a_digit_with_large_ones(tmp_path):
    x = RNG.standard_normal((2, 8, 13, 11)).astype(np.float32)
    w = RNG.standard_normal((6, 8, 3, 3)).astype(np.float32)
    exact = direct(x, w)
    errors = {m: off(run(CONV, {"x": x, "w": w}, tmp_path, winograd=m, order="reversed")["y"], exact) for m in "024"}
    assert 0.3 < errors["2"] / errors["0"] < 3
    assert 3 < errors["4"] / errors["0"] < 30  # Lavin and Gray 2016: F(4x4) about ten times direct


@pytest.mark.parametrize(
    ("attributes", "shapes"),
    [
        ("pads = [1, 0], strides = [2]", ((2, 4, 9), (6, 4, 3))),
        ("pads = [2, 1, 0, 1], strides = [2, 1], dilations = [1, 2]", ((1, 4, 9, 8), (6, 4, 3, 2))),
        ("group = 4, auto_pad = \"SAME_UPPER\", strides = [2, 2]", ((1, 4, 9, 8), (8, 1, 3, 3))),
        ("group = 2", ((1, 4, 5, 6, 4), (4, 2, 2, 3, 2))),
    ],
)  # fmt: skip
def test_convolutions_of_every_kind_agree_with_onnxruntime(tmp_path, attributes, shapes):
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in shapes)
    b = RNG.standard_normal(len(w)).astype(np.float32)
    dims = [",".join(map(str, shape)) for shape in shapes]
    text = (f"g (float[{dims[0]}] x, float[{dims[1]}] w, float[{len(w)}] b) => (float[] y) "
            f"{{ y = Conv<{attributes}>(x, w, b) }}")  # fmt: skip
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]>\n{text.replace("float[] y", "float y")}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    feed = {"x": x, "w": w, "b": b}
    np.testing.assert_allclose(
        run(model, feed, tmp_path, order="reversed")["y"], run(model, feed, tmp_path)["y"], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("op", ["ReduceMean<keepdims = 0>(x, axes)", "ReduceSum(x, axes)", "Softmax<axis = 1>(x)",
                                "LayerNormalization<axis = -1>(x, s)"])  # fmt: skip
def test_sums_in_another_order_are_the_same_but_for_rounding(tmp_path, op):
    text = f"g (float[4,512] x) => (float y) <int64[1] axes = {{1}}, float[512] s> {{ s = Add(x0, x0)\n y = {op} }}"
    text = text.replace(", float[512] s>", ">").replace(
        " s = Add(x0, x0)\n", " s = ReduceMax<keepdims = 0>(x, first)\n"
    )
    text = text.replace("axes = {1}", "axes = {1}, int64[1] first = {0}")
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]>\n{text}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = RNG.standard_normal((4, 512)).astype(np.float32) + 3
    plain, other = (run(model, {"x": x}, tmp_path, order=order)["y"] for order in ("whole", "sequential"))
    assert plain.shape == other.shape
    assert 1e-8 < off(other, plain.astype(np.float64)) < 1e-5


def test_ties_of_quantizers(tmp_path):
    text = """g (float[6] x) => (int8[6] y) <float s = {0.5}, int8 z = {1}> { y = QuantizeLinear(x, s, z) }"""
    feed = {"x": np.array([0.25, 0.75, -0.25, -0.75, 0.3, 100], np.float32)}  # 0.5, 1.5, -0.5, -1.5 steps
    assert run(text, feed, tmp_path)["y"].tolist() == [1, 3, 1, -1, 2, 127]
    assert run(text, feed, tmp_path, ties="away")["y"].tolist() == [2, 3, 0, -1, 2, 127]


# --- storage ----------------------------------------------------------------------------------------------------------


def test_a_chain_is_rounded_once_when_it_is_fused(tmp_path):
    text = """g (float[64,64] x) => (float[64,64] y) <float a = {1.7}, float b = {0.3}> {
      [p] p = Mul(x, a)\n [q] q = Add(p, b)\n [r] r = Mul(q, a)\n [t] y = Sub(r, b) }"""
    x = rounded(RNG.standard_normal((64, 64)), SimulatedFormat.BF16)
    a, b = (float(rounded(np.array(c, np.float32), SimulatedFormat.BF16)) for c in (1.7, 0.3))
    exact = (x.astype(np.float64) * a + b) * a - b
    apart, fused = (off(run(text, {"x": x}, tmp_path, precision="bf16", fused=f)["y"], exact) for f in ("no", "yes"))
    assert 0.8 * 2.0**-8 * 0.49 < fused < 1.2 * 2.0**-8 * 0.49  # one rounding
    assert apart > 1.4 * fused
    session = SimulatedAccelerator().compile(tmp_path / "m.onnx", {"fused": "yes"})
    assert [region.nodes for region in session.plan().regions] == [("p", "q", "r", "t")]
    session.close()


def test_every_stored_value_is_in_the_format(tmp_path):
    model = encoder(layers=1, width=32, heads=2, tokens=8, vocabulary=50)
    onnx.save(model, tmp_path / "plain.onnx")
    whole = Model.load(tmp_path / "plain.onnx")
    marked = mark_outputs(whole, markable(whole)).save(tmp_path / "marked.onnx")
    session = SimulatedAccelerator().compile(marked, {"precision": "fp16", "accumulator": "fp16", "block": "16"})
    found = session.run(feed_for(model))
    session.close()
    floats = {name: array for name, array in found.items() if array.dtype == np.float32}
    assert len(floats) > 20
    assert all(np.array_equal(array, array.astype(np.float16).astype(np.float32)) for array in floats.values())


def test_subnormal_results_become_zero(tmp_path):
    text = "g (float[3] x) => (float[3] y) <float a = {1e-30}> { y = Mul(x, a) }"
    feed = {"x": np.array([1e-9, 1e-8, 1], np.float32)}
    assert run(text, feed, tmp_path)["y"][0] > 0
    assert run(text, feed, tmp_path, denormals="flush")["y"].tolist() == [0, 0, np.float32(1e-30)]


# --- the engine -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"order": "reversed", "fused": "true"}, {"winograd": "4"}])
@pytest.mark.parametrize("model", [encoder(layers=1, width=32, heads=2, tokens=8, vocabulary=50), conv_net(blocks=1)])
def test_in_fp32_it_agrees_with_onnxruntime_to_rounding(tmp_path, model, options):
    feed = feed_for(model)
    plain, other = run(model, feed, tmp_path), run(model, feed, tmp_path, **options)
    for name, array in plain.items():
        assert other[name].dtype == array.dtype
        assert off(other[name], array.astype(np.float64)) < 1e-5


@pytest.mark.parametrize("options", [{}, {"fused": "true", "order": "reversed"}])
def test_it_conforms(options):
    assert len(check_engine_conformance(SimulatedAccelerator(), options).passed) > 10


def test_a_planted_fault_comes_on_top(tmp_path):
    model = encoder(layers=1, width=32, heads=2, tokens=8, vocabulary=50)
    node = next(node.name for node in model.graph.node if node.op_type == "MatMul")
    freedoms = {"precision": "fp16", "accumulator": "fp16", "block": "32"}
    feed = feed_for(model)
    right, again = (run(model, feed, tmp_path, **freedoms) for _ in range(2))
    wrong = run(model, feed, tmp_path, **freedoms, kind="scale", node=node, amount="1.5")
    for name in right:
        np.testing.assert_array_equal(right[name], again[name])
        assert off(wrong[name], right[name].astype(np.float64)) > 1e-3


def test_a_fault_of_shape_reaches_the_output_or_stops_the_run(tmp_path):
    text = "g (float[1,4] x) => (float[1,4] y) { [n] z = Neg(x)\n [m] y = Add(z, x) }"
    feed = {"x": np.ones((1, 4), np.float32)}
    assert run(text, feed, tmp_path, kind="shape", node="m")["y"].shape == (4,)
    text = "g (float[3,4] x) => (float[3,4] y) { [n] z = Neg(x)\n [m] y = Add(z, x) }"
    with pytest.raises(RunFailed):
        run(text, {"x": np.ones((3, 4), np.float32)}, tmp_path, kind="shape", node="n")


def test_a_race_shows_in_some_runs(tmp_path):
    text = "g (float[4] x) => (float[4] y) { [n] y = Neg(x) }"
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]>\n{text}'), path)
    session = SimulatedAccelerator().compile(path, {"kind": "scale", "node": "n", "run_chance": "0.5"})
    seen = {session.run({"x": np.ones(4, np.float32)})["y"].tobytes() for _ in range(64)}
    session.close()
    assert len(seen) == 2  # all alike with a chance of 2**-63


def test_words_that_are_not_understood(tmp_path):
    for options in (
        {"operands": "fp8"},
        {"functions": "tanh:quick"},
        {"functions": "tan:1e-3"},
        {"functions": "tanh:2"},
        {"winograd": "3"},
        {"precision": "fp8e4m3"},
    ):
        with pytest.raises(UsageError):
            run(MATMUL, {"x": LEFT, "w": RIGHT}, tmp_path, **options)
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    with pytest.raises(BuildFailed):
        SimulatedAccelerator().compile(tmp_path / "m.onnx", {})


def test_as_a_script_engine(tmp_path):
    script = tmp_path / "accelerator.py"
    script.write_text("from tensortriage_testing import SimulatedAccelerator as Engine\n")
    model = conv_net(blocks=1)
    save_model(model, tmp_path / "m.onnx")
    options = {"precision": "bf16", "functions": "tanh:approx+softmax:5e-6"}
    session = ScriptEngine().compile(tmp_path / "m.onnx", {"file": str(script), **options})
    found = session.run(feed_for(model))
    session.close()
    for name, array in run(model, feed_for(model), tmp_path, **options).items():
        np.testing.assert_array_equal(found[name], array)

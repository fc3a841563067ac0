"""Expected values come from numpy and ml_dtypes: compute one operator in float32, then convert there and back."""

import ml_dtypes
import numpy as np
import pytest

import models
import running
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.cutting.explode import explode
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import Precision

FORMATS = {
    Precision.FP16: np.float16,
    Precision.BF16: ml_dtypes.bfloat16,
    Precision.FP8E4M3: ml_dtypes.float8_e4m3fn,
    Precision.FP8E5M2: ml_dtypes.float8_e5m2,
}


def rounded(array, precision):
    with np.errstate(all="ignore"):
        return np.asarray(array, np.float32).astype(FORMATS[precision]).astype(np.float32)


def run_rounded(model, precision, feed, **options):
    return running.run(round_results(model, precision, specs=value_specs(model), **options), feed)


def op_types(model):
    return [node.op_type for node in model.graph.nodes]


SUM = """
    g (float[N] x) => (float[N] y) <float[1] w = {0.1}> { [mul] a = Mul(x, w) [add] y = Add(a, x) }"""


@pytest.mark.parametrize("precision", FORMATS)
def test_inputs_constants_and_results_are_rounded(precision):
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    y = run_rounded(models.parse(SUM), precision, {"x": x})["y"]
    q = rounded(x, precision)
    product = rounded(q * rounded(0.1, precision), precision)
    np.testing.assert_array_equal(y, rounded(product + q, precision))
    assert not np.array_equal(y, x * np.float32(0.1) + x)


@pytest.mark.parametrize("precision", FORMATS)
def test_every_number_rounds_as_the_format_says(precision):
    """All float16 numbers and points between them, the halfway cases of the narrower formats among them."""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        x = np.concatenate([halves * np.float32(f) for f in (1, 1.03125, 1.0625, 1.125, 1.0001, 0.9999)])
    model = models.parse("g (float[N] x) => (float[N] y) { [a] y = Identity(x) }")
    np.testing.assert_array_equal(run_rounded(model, precision, {"x": x})["y"], rounded(x, precision))


@pytest.mark.parametrize(
    ("precision", "number", "expected"),
    [
        (Precision.FP16, 65519.9, 65504.0),
        (Precision.FP16, 65520.0, np.inf),
        (Precision.BF16, 3.4e38, np.inf),
        (Precision.FP8E5M2, -61439.0, -57344.0),
        (Precision.FP8E5M2, -61440.0, -np.inf),
        (Precision.FP8E4M3, 464.0, 448.0),
        (Precision.FP8E4M3, 470.0, np.nan),
        (Precision.FP8E4M3, 490.0, np.nan),
        (Precision.FP8E4M3, np.inf, np.nan),
    ],
)
def test_overflow_shows(precision, number, expected):
    model = models.parse("g (float[1] x) => (float[1] y) { [a] y = Identity(x) }")
    y = run_rounded(model, precision, {"x": np.array([number], np.float32)})["y"]
    np.testing.assert_array_equal(y, np.array([expected], np.float32))


def test_an_overflow_inside_the_model_shows():
    model = models.parse("g (float[2] x) => (float[2] y) { [square] a = Mul(x, x) [root] y = Sqrt(a) }")
    y = run_rounded(model, Precision.FP16, {"x": np.array([300, 3], np.float32)})["y"]
    np.testing.assert_array_equal(y, [np.inf, 3])


def test_int8_is_the_grid_between_the_extremes_of_each_tensor():
    """Formula of DynamicQuantizeLinear (onnx.ai): scale = (max - min) / 255 with the range stretched to hold 0."""
    x = np.random.default_rng(0).uniform(-1, 3, 50).astype(np.float32)
    y = run_rounded(models.parse("g (float[N] x) => (float[N] y) { [a] y = Identity(x) }"), Precision.INT8, {"x": x})[
        "y"
    ]
    scale = (x.max() - x.min()) / 255
    np.testing.assert_allclose(y, x, atol=scale * 0.51)
    assert len(np.unique(np.round(y / scale))) == len(np.unique(y))
    assert np.abs(y - x).max() > scale * 0.3


def test_moving_data_does_not_round_again():
    model = models.parse("""
        g (float[2, 3] x) => (float[3, 2] y) {
            [neg] a = Sqrt(x) [transpose] b = Transpose(a) [relu] c = Relu(b) [join] y = Max(c, c) }""")
    edited = round_results(model, Precision.FP16, specs=value_specs(model))
    assert op_types(edited) == ["Cast", "Cast", "Sqrt", "Cast", "Cast", "Transpose", "Relu", "Max"]


def test_what_is_picked_from_a_constant_table_is_rounded_not_the_table():
    model = models.parse("""
        g (int64[2] i) => (float[2] y) <float[4] table = {0.1, 0.2, 0.3, 0.4}> { [pick] y = Gather(table, i) }""")
    edited = round_results(model, Precision.BF16, specs=value_specs(model))
    assert edited.graph.node("pick").inputs == ("table", "i")
    y = running.run(edited, {"i": np.array([3, 1])})["y"]
    np.testing.assert_array_equal(y, rounded([0.4, 0.2], Precision.BF16))


def test_names_do_not_change():
    model = models.branchy()
    edited = round_results(model, Precision.BF16, specs=value_specs(model))
    assert set(model.graph.values) <= set(edited.graph.values)
    assert {node.name for node in model.graph.nodes} <= {node.name for node in edited.graph.nodes}
    assert [spec.name for spec in edited.outputs] == ["y", "z"]
    assert "exact::b" in edited.graph.values


def test_a_kept_node_computes_on_unrounded_constants_and_keeps_its_result():
    x = np.array([1.0001, 2.0003], np.float32)
    model = models.parse("""
        g (float[2] x) => (float[2] y, float[2] z) <float[1] w = {0.1}> {
            [mul] a = Mul(x, w) [add] y = Add(a, w) [copy] z = Identity(a) }""")
    outputs = run_rounded(model, Precision.BF16, {"x": x}, kept=["mul"])
    product = x * np.float32(0.1)
    np.testing.assert_array_equal(outputs["z"], rounded(product, Precision.BF16))
    expected = rounded(rounded(product, Precision.BF16) + rounded(0.1, Precision.BF16), Precision.BF16)
    np.testing.assert_array_equal(outputs["y"], expected)
    all_kept = run_rounded(model, Precision.BF16, {"x": x}, kept=["mul", "add", "copy"])
    np.testing.assert_array_equal(all_kept["y"], product + np.float32(0.1))


def test_an_unknown_kept_node():
    with pytest.raises(UsageError) as caught:
        run_rounded(models.branchy(), Precision.BF16, {}, kept=["lefft"])
    assert caught.value.slug == "node-unknown"
    assert "'left'" in caught.value.cure


def test_other_precisions_are_refused():
    with pytest.raises(UsageError) as caught:
        round_results(models.branchy(), Precision.TF32, specs={})
    assert caught.value.slug == "precision-not-emulated"


def test_shapes_computed_in_float_are_not_rounded():
    """257 is no bfloat16: rounding the half of 514 would slice 256 elements (TensorRT issue 4718)."""
    model = models.parse("""
        g (float[N] x) => (float[K] y, float[N] z) {
            [shape] s = Shape(x)
            [cast] f = Cast <to = 1> (s)
            [two] two = Constant <value = float {2.0}> ()
            [half] h = Div(f, two)
            [back] e = Cast <to = 7> (h)
            [zero] zero = Constant <value = int64[1] {0}> ()
            [slice] y = Slice(x, zero, e)
            [data] z = Div(x, f)
        }""")
    x = np.linspace(1, 2, 514, dtype=np.float32)
    outputs = run_rounded(model, Precision.BF16, {"x": x})
    assert outputs["y"].shape == (257,)
    # Where the same number is an operand of data it is rounded: 514 becomes 512.
    np.testing.assert_array_equal(outputs["z"], rounded(rounded(x, Precision.BF16) / np.float32(512), Precision.BF16))


def test_scales_of_resize_and_of_quantizers_are_not_rounded():
    model = models.parse("""
        g (float[1, 1, 3, 3] x) => (float[A, B, C, D] y, float[A, B, C, D] z)
        <float[4] scales = {1, 1, 1.001, 2.001}, float step = {0.1001}, uint8 zero = {0}> {
            [resize] y = Resize <mode = "nearest"> (x, , scales)
            [quantize] q = QuantizeLinear(x, step, zero)
            [back] z = DequantizeLinear(q, step, zero)
        }""")
    edited = round_results(model, Precision.BF16, specs=value_specs(model))
    assert edited.graph.node("resize").inputs[2] == "scales"
    assert edited.graph.node("quantize").inputs == ("x", "step", "zero")
    z = running.run(edited, {"x": np.full((1, 1, 3, 3), 0.3, np.float32)})["z"]
    np.testing.assert_array_equal(z, np.full((1, 1, 3, 3), np.float32(3) * np.float32(0.1001)))


def test_integers_are_left_alone_and_every_other_floating_point_type_is_rounded():
    model = models.parse("""
        g (int64[2] i, double[2] d, float16[2] h) => (int64[2] p, double[2] q, float16[2] r) {
            [a] p = Mul(i, i) [b] q = Mul(d, d) [c] r = Add(h, h) }""")
    edited = round_results(model, Precision.BF16, specs=value_specs(model))
    h = np.array([1.001, 3.003], np.float16)
    outputs = running.run(edited, {"i": np.array([257, 3]), "d": np.array([1.001, 3.0]), "h": h})
    np.testing.assert_array_equal(outputs["p"], [257 * 257, 9])
    np.testing.assert_array_equal(outputs["q"], [1, 9])
    np.testing.assert_array_equal(outputs["r"], [2, 6])  # bf16 has fewer digits than fp16: 1.001 and 3.003 are 1 and 3
    in_fp8 = run_rounded(model, Precision.FP8E4M3, {"i": np.array([257, 3]), "d": np.ones(2), "h": h})["r"]
    np.testing.assert_array_equal(in_fp8, np.array([2, 6], np.float16))


@pytest.mark.parametrize("choice", [True, False])
def test_inside_the_branches_of_an_if(choice):
    x = np.array([1.01, 4.03], np.float32)
    y = run_rounded(models.with_if(), Precision.BF16, {"c": np.array(choice), "x": x})["y"]
    q = rounded(x, Precision.BF16)
    branch = rounded(-q * np.array([1, 2], np.float32) if choice else np.sqrt(q), Precision.BF16)
    np.testing.assert_array_equal(y, rounded(np.exp(branch), Precision.BF16))


def test_inside_the_body_of_a_loop_every_turn():
    x = np.array([1.01, 100.7], np.float32)
    y = run_rounded(models.with_loop(), Precision.BF16, {"x": x})["y"]
    state = step = rounded(x, Precision.BF16)
    for _ in range(3):
        state = rounded(state + step, Precision.BF16)
    np.testing.assert_array_equal(y, state)


def test_constants_that_leave_a_body_are_rounded():
    model = models.parse("""
        g (bool c) => (float y) {
            [choice] y = If (c) <
                then_branch = t () => (float a) { [one] a = Constant <value = float {0.1}> () },
                else_branch = e () => (float b) { [two] b = Constant <value = float {0.3}> () }
            > }""")
    assert run_rounded(model, Precision.BF16, {"c": np.array(True)})["y"] == rounded(0.1, Precision.BF16)
    assert run_rounded(model, Precision.BF16, {"c": np.array(False)})["y"] == rounded(0.3, Precision.BF16)


def test_the_body_of_a_kept_node_is_kept():
    feed = {"c": np.array(True), "x": np.array([1.01, 4.03], np.float32)}
    y = run_rounded(models.with_if(), Precision.BF16, feed, kept=["choice", "before", "after"])["y"]
    np.testing.assert_array_equal(y, running.run(models.with_if(), feed)["y"])


FUNCTION = """
    <ir_version: 10, opset_import: ["": 18, "mine": 1]>
    g (float[2] x) => (float[2] y) { [call] a = mine.sum_of_squares(x) [end] y = Neg(a) }
    <domain: "mine", opset_import: ["": 18]> sum_of_squares (v) => (w) {
        [inner] s = Mul(v, v) [outer] w = Add(s, s) }"""


def test_functions_are_rounded_inside_and_kept_as_a_whole():
    x = np.array([1.01, 4.03], np.float32)
    model = models.parse(FUNCTION)
    square = rounded(rounded(x, Precision.BF16) ** 2, Precision.BF16)
    np.testing.assert_array_equal(run_rounded(model, Precision.BF16, {"x": x})["y"], -(square + square))
    kept = run_rounded(model, Precision.BF16, {"x": x}, kept=["call"])["y"]
    np.testing.assert_array_equal(kept, -rounded(x * x + x * x, Precision.BF16))


def test_an_exploded_model_shows_the_cost_of_each_result_alone():
    x = np.array([[0.51, -1.49, 2.01], [3.003, -0.251, 0.1]], np.float32)
    golden, specs = running.record(models.branchy(), {"x": x})
    exploded = explode(models.branchy(), specs=specs)
    edited = round_results(exploded.model, Precision.BF16, specs=value_specs(exploded.model))
    outputs = running.run(edited, {name: golden[value] for name, value in exploded.feeds.items()})
    expected = rounded(np.sqrt(rounded(golden["a"], Precision.BF16)), Precision.BF16)
    np.testing.assert_array_equal(outputs["z"], expected)


def test_old_opsets_are_raised_when_the_format_needs_it():
    model = models.parse("""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[2, 1] x) => (float[2] y) <float[2] w = {0.1, 0.2}> {
            [flat] f = Squeeze <axes = [1]> (x) [mul] y = Mul(f, w) }""")
    x = np.array([[1.01], [2.02]], np.float32)
    for precision in (Precision.FP16, Precision.BF16, Precision.FP8E5M2):
        edited = round_results(model, precision, specs=value_specs(model))
        assert edited.graph.node("mul").op_type == "Mul"
        expected = rounded(rounded(x[:, 0], precision) * rounded([0.1, 0.2], precision), precision)
        np.testing.assert_array_equal(running.run(edited, {"x": x})["y"], expected)


def test_a_value_of_unknown_type_is_an_error_not_left_alone():
    foreign = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "foreign": 1]>
        g (float[2] x) => (float[2] y) { [a] b = foreign.Magic(x) [c] y = Abs(b) }""")
    with pytest.raises(ModelError) as caught:
        round_results(foreign, Precision.FP16, specs={})
    assert caught.value.slug == "value-type-unknown"

"""Expected values: numpy in the lower type where ONNX Runtime has kernels for it, else what the structure must be."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
import running
from tensortriage.errors import UsageError
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.values.dtype import DType, Precision

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


def converted(model, precision=Precision.FP16, **options):
    result = convert(model, precision, specs=value_specs(model), **options)
    onnx.checker.check_model(ir.to_proto(result.ir), full_check=True)
    return result


def casts(model):
    return [(node.inputs[0], node.outputs[0]) for node in model.graph.nodes if node.op_type == "Cast"]


def dtypes(model):
    return {value.name: DType(kind.dtype.value) for value, kind in infer_types(model.ir, {}).items()}


def test_everything_becomes_fp16_behind_casts_at_the_border():
    model = models.mlp()
    result = converted(model)
    assert casts(result) == [("x", "fp16::x"), ("fp16::y", "y")]
    assert {spec.dtype for spec in (*result.inputs, *result.outputs)} == {DType.FLOAT}
    assert {spec.dtype for spec in result.graph.initializers.values()} == {DType.FLOAT16}
    assert list(result.graph.initializers) == list(model.graph.initializers)
    assert [n.name for n in result.graph.nodes if n.op_type != "Cast"] == [n.name for n in model.graph.nodes]
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    expected, y = running.run(model, {"x": x})["y"], running.run(result, {"x": x})["y"]
    np.testing.assert_allclose(y, expected, rtol=0.01, atol=0.01)
    assert not np.array_equal(y, expected)


def test_io_types_can_change_with_the_rest():
    result = converted(models.mlp(), keep_io_types=False)
    assert casts(result) == []
    assert {spec.dtype for spec in (*result.inputs, *result.outputs)} == {DType.FLOAT16}


def test_a_kept_output_node_is_cast_when_io_types_change():
    result = converted(models.mlp(), keep_io_types=False, kept_nodes=["/layer.1/Gemm"])
    assert casts(result) == [("r", "fp32::r"), ("fp32::y", "y")]
    assert result.outputs[0].dtype is DType.FLOAT16


def test_one_cast_per_value_and_direction():
    model = models.parse("""
        g (float[2] x) => (float[2] y, float[2] z) {
            [a] a = Exp(x) [b] b = Sin(a) [c] c = Cos(a) [d] d = Tan(a) [e] y = Sum(b, c, d) [f] z = Neg(b) }""")
    result = converted(model, kept_nodes=["b", "c", "d"])
    assert casts(result) == [
        ("x", "fp16::x"), ("a", "fp32::a"), ("b", "fp16::b"), ("c", "fp16::c"), ("d", "fp16::d"),
        ("fp16::y", "y"), ("fp16::z", "z"),
    ]  # fmt: skip
    kept = converted(model, kept_op_types=["Sin", "Cos", "Tan"])
    assert casts(kept) == casts(result)


def test_a_kept_pair_exchanges_float32_directly():
    result = converted(models.branchy(), kept_nodes=["left", "join"])
    assert ("b", "fp16::b") not in casts(result)
    assert dtypes(result)["b"] is DType.FLOAT
    assert dtypes(result)["c"] is DType.FLOAT16


def test_a_constant_used_in_both_types_exists_in_both():
    model = models.parse("""
        g (float[2] x) => (float[2] y) <float[2] w = {0.1, 0.2}> { [a] a = Mul(x, w) [b] y = Add(a, w) }""")
    result = converted(model, kept_nodes=["b"])
    assert {n: s.dtype for n, s in result.graph.initializers.items()} == {"w": DType.FLOAT, "fp16::w": DType.FLOAT16}
    assert [source for source, _ in casts(result)] == ["x", "a"]


def test_constants_beyond_the_range_become_infinite():
    model = models.parse("""
        g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1e5, -3e38}> {
            [fill] c = Constant <value = float {7e4}> () [a] y = Mul(x, w) [b] z = Add(x, c) }""")
    outputs = running.run(converted(model), {"x": np.ones(2, np.float32)})
    np.testing.assert_array_equal(outputs["y"], [np.inf, -np.inf])
    np.testing.assert_array_equal(outputs["z"], [np.inf, np.inf])


def test_weights_are_converted_only_when_they_are_written(tmp_path):
    model = Model.load(models.with_external_data(tmp_path / "in"))
    result = convert(model, Precision.FP16, specs=value_specs(model))
    assert isinstance(result.ir.graph.initializers["W"].const_value, ir.LazyTensor)
    again = Model.load(result.save(tmp_path / "out.onnx"))
    np.testing.assert_array_equal(again.graph.weight("W"), np.arange(32, dtype=np.float16).reshape(4, 8))
    assert model.graph.weight("W").dtype == np.float32


def test_operators_whose_schema_refuses_the_type_stay_float32():
    """Conv takes bfloat16 from opset 22 on; NonMaxSuppression and Range take float32 alone (onnx.ai)."""
    text = """
        <ir_version: 10, opset_import: ["": %d]>
        g (float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) <float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
            [before] a = Mul(x, x) [conv] b = Conv(a, w) [after] y = Mul(b, b) }"""
    old, new = (converted(models.parse(text % opset), Precision.BF16) for opset in (18, 22))
    assert (dtypes(old)["b"], old.graph.initializers["w"].dtype) == (DType.FLOAT, DType.FLOAT)
    assert (dtypes(new)["b"], new.graph.initializers["w"].dtype) == (DType.BFLOAT16, DType.BFLOAT16)
    detection = models.parse("""
        g (float[1, 5, 4] boxes, float[1, 1, 5] scores) => (int64[N, 3] picked, float[K] r) <float one = {1}> {
            [twice] big = Add(boxes, boxes) [sums] s = Add(scores, scores) [nms] picked = NonMaxSuppression(big, s)
            [top] t = ReduceMax <keepdims = 0> (s) [zero] zero = Sub(one, one) [range] r = Range(zero, t, one) }""")
    result = converted(detection)
    assert dtypes(result)["big"] is DType.FLOAT16
    assert result.graph.node("nms").inputs == ("fp32::big", "fp32::s")
    assert dtypes(result)["r"] is DType.FLOAT
    boxes = np.array([[[0, 0, i + 1, 1] for i in range(5)]], np.float32)
    scores = np.linspace(0.1, 1.6, 5, dtype=np.float32).reshape(1, 1, 5)
    expected, outputs = (running.run(m, {"boxes": boxes, "scores": scores}) for m in (detection, result))
    np.testing.assert_array_equal(outputs["picked"], expected["picked"])
    np.testing.assert_array_equal(outputs["r"], expected["r"])


def test_operators_that_mean_the_bits_or_belong_to_others_stay_float32():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 26, "ai.onnx.ml": 3]>
        g (float[2] x) => (int32[2] y, float[2] z) {
            [bits] y = BitCast <to = 6> (x) [scale] s = ai.onnx.ml.Scaler <offset = [0.0], scale = [2.0]> (x)
            [neg] z = Neg(s) }""")
    result = converted(model)
    assert result.graph.node("bits").inputs == result.graph.node("scale").inputs == ("x",)
    assert dtypes(result)["s"] is DType.FLOAT


def test_second_results_of_layer_normalization_stay_float32():
    model = models.parse("""
        g (float[2, 8] x) => (float[2, 8] y, float[2, 1] m, float[2, 1] z) <float[8] w = {1, 1, 1, 1, 1, 1, 1, 1}> {
            [norm] y, m, d = LayerNormalization(x, w) [after] z = Neg(d) }""")
    result = converted(model)
    assert {n: dtypes(result)[n] for n in ("fp16::y", "m", "d")} == {
        "fp16::y": DType.FLOAT16, "m": DType.FLOAT, "d": DType.FLOAT,
    }  # fmt: skip
    # Their schema lets them be bfloat16, but stash_type, float32 by default, decides.
    assert dtypes(converted(model, Precision.BF16))["d"] is DType.FLOAT
    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    for name, array in running.run(result, {"x": x}).items():
        np.testing.assert_allclose(array, running.run(model, {"x": x})[name], rtol=0.01, atol=0.01)


def test_attributes_that_name_a_type_follow():
    model = models.parse("""
        g (int64[2] i) => (float[2] y) {
            [cast] a = Cast <to = 1> (i) [shape] s = Shape(a) [fill] b = ConstantOfShape <value = float[1] {2.5}> (s)
            [plain] c = ConstantOfShape(s) [two] two = Constant <value = int64 {2}> () [window] h = HannWindow(two)
            [sum] y = Sum(a, b, c, h) }""")
    result = converted(model)
    assert {n: dtypes(result)[n] for n in "abch"} == dict.fromkeys("abch", DType.FLOAT16)
    assert casts(result)[1:] == [("fp16::y", "y")]
    # A periodic Hann window of 2 is 0, 1.
    np.testing.assert_array_equal(running.run(result, {"i": np.array([1, 2])})["y"], [3.5, 5.5])


def test_random_numbers_are_drawn_in_the_lower_type():
    model = models.parse(
        "g (float[2] x) => (float[2] y) { [noise] n = RandomNormal <shape = [2]> () [y] y = Add(x, n) }"
    )
    assert dtypes(converted(model))["n"] is DType.FLOAT16


def test_shapes_scales_and_quantizers_stay():
    model = models.parse("""
        g (float[1, 1, 3, 3] x) => (float[A, B, C, D] y, float[A, B, C, D] z)
        <float[4] scales = {1, 1, 2, 2}, float step = {0.1}, uint8 zero = {0}> {
            [resize] y = Resize <mode = "nearest"> (x, , scales)
            [quantize] q = QuantizeLinear(x, step, zero) [back] d = DequantizeLinear(q, step, zero)
            [neg] z = Neg(d) }""")
    result = converted(model)
    assert {n: result.graph.initializers[n].dtype for n in ("scales", "step")} == dict.fromkeys(
        ("scales", "step"), DType.FLOAT
    )
    assert result.graph.node("quantize").inputs[0] == "x"
    assert dtypes(result)["d"] is DType.FLOAT
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    for name, array in running.run(result, {"x": x}).items():
        np.testing.assert_allclose(array, running.run(model, {"x": x})[name], rtol=0.001)


def test_slice_bounds_computed_in_float_survive_bf16():
    model = models.parse("""
        g (float[N] x) => (float[K] y) {
            [shape] s = Shape(x) [cast] f = Cast <to = 1> (s) [two] two = Constant <value = float {2.0}> ()
            [half] h = Div(f, two) [back] e = Cast <to = 7> (h) [zero] zero = Constant <value = int64[1] {0}> ()
            [move] m = Neg(x) [slice] y = Slice(m, zero, e) }""")
    result = converted(model, Precision.BF16)
    assert {n: dtypes(result)[n] for n in "fhm"} == {"f": DType.FLOAT, "h": DType.FLOAT, "m": DType.BFLOAT16}
    assert result.graph.node("half").inputs == ("f", "two")


@pytest.mark.parametrize("choice", [True, False])
def test_branches_are_converted_inside(choice):
    result = converted(models.with_if())
    assert result.graph.node("choice").inputs == ("c",)
    scaled = next(n for n in ir.traversal.RecursiveGraphIterator(result.ir.graph) if n.name == "scaled")
    assert {value.dtype for value in scaled.inputs} == {ir.DataType.FLOAT16}
    feed = {"c": np.array(choice), "x": np.array([1.01, 4.03], np.float32)}
    y, expected = (running.run(m, feed)["y"] for m in (result, models.with_if()))
    np.testing.assert_allclose(y, expected, rtol=0.01)


def test_the_state_of_a_loop_is_computed_low():
    """ONNX Runtime's CPU provider computes fp16 in float32 and drops the Casts in between, so only types can tell."""
    result = converted(models.with_loop())
    total = next(n for n in ir.traversal.RecursiveGraphIterator(result.ir.graph) if n.name == "sum")
    assert {value.dtype for value in (*total.inputs, *total.outputs)} == {ir.DataType.FLOAT16}
    assert result.graph.node("loop").inputs == ("turns", "start", "x")
    x = np.array([1.001, 100.7], np.float32)
    np.testing.assert_allclose(running.run(result, {"x": x})["y"], 4 * x, rtol=2**-10)


def test_a_kept_node_keeps_its_body():
    result = converted(models.with_loop(), kept_nodes=["loop"])
    assert casts(result) == [("x", "fp16::x"), ("step", "fp32::step")]


def test_functions_are_inlined_and_converted():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "mine": 1]>
        g (float[2] x) => (float[2] y) { [call] a = mine.twice(x) [end] y = Neg(a) }
        <domain: "mine", opset_import: ["": 18]> twice (v) => (w) {
            [half] h = Constant <value = float {0.5}> () [inner] u = Mul(v, h) [outer] w = Add(u, v) }""")
    result = converted(model)
    assert casts(result) == [("x", "fp16::x"), ("fp16::y", "y")]
    assert dtypes(result)["a"] is DType.FLOAT16
    np.testing.assert_array_equal(running.run(result, {"x": np.array([2, 4], np.float32)})["y"], [-3, -6])


def test_sequences_stay_float32():
    model = models.parse("""
        g (float[4] x) => (float[4] y) {
            [a] a = Neg(x) [split] parts = SplitToSequence <axis = 0> (a)
            [join] b = ConcatFromSequence <axis = 0> (parts) [c] y = Abs(b) }""")
    result = converted(model)
    assert casts(result) == [("x", "fp16::x"), ("a", "fp32::a"), ("b", "fp16::b"), ("fp16::y", "y")]
    np.testing.assert_array_equal(running.run(result, {"x": np.arange(4, dtype=np.float32)})["y"], np.arange(4))


@pytest.mark.lengthy
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_light_models_of_onnx_run_in_fp16(path):
    """Weights of these models are constant fills, so numbers grow at will; where fp16 holds them, results agree."""
    model = Model.load(path)
    result = converted(model)
    assert len(casts(result)) == 2
    session = running.build(result)
    shape = tuple(session.get_inputs()[0].shape)
    assert session.get_inputs()[0].type == session.get_outputs()[0].type == "tensor(float)"
    if len(model.graph.nodes) < 110:  # the larger ones are only built, to keep the test quick
        feed = {session.get_inputs()[0].name: np.random.default_rng(0).random(shape, np.float32)}
        (y,), (expected,) = (running.run(m, feed).values() for m in (result, model))
        finite = np.isfinite(y)
        np.testing.assert_allclose(y[finite], expected[finite], rtol=0.01, atol=1e-3)


@pytest.mark.lengthy
@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_light_models_of_onnx_are_typed_right_in_bf16(path):
    """ONNX Runtime resolves all types before it looks for kernels, of which its CPU provider lacks most in bf16."""
    result = converted(Model.load(path), Precision.BF16)
    result.check()
    assert len(casts(result)) >= 2
    with pytest.raises(Exception, match="NOT_IMPLEMENTED : Could not find an implementation"):
        running.build(result)


def test_bf16_weights_hold_rounded_numbers():
    model = models.mlp()
    result = converted(model, Precision.BF16)
    for name in ("w1", "b1", "w2", "b2"):
        expected = model.graph.weight(name).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(result.graph.weight(name), expected, strict=True)


def test_bad_requests():
    for options, slug in (
        ({"precision": Precision.FP8E4M3}, "precision-not-typed"),
        ({"kept_nodes": ["nope"]}, "node-unknown"),
    ):
        with pytest.raises(UsageError) as caught:
            converted(models.mlp(), **options)
        assert caught.value.slug == slug

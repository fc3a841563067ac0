"""What is rounded where. Expected values are what IEEE 754 says, by numpy's own narrow types."""

import numpy as np
import pytest
from onnx import helper

from engines.onnx_models import F, parsed, save, value
from models import parse
from tensortriage.engines.float64.arithmetic import EXACT, RESULTS_ROUNDED, read_arithmetic
from tensortriage.engines.float64.engine import Float64Engine
from tensortriage.engines.float64.number_rounding import Rounding
from tensortriage.engines.float64.typed_steps import ExactSteps, Finish, ReadArgument, TypedSteps
from tensortriage.engines.options import read_options
from tensortriage.errors import ModelError
from tensortriage.values.dtype import DType


def run(path, options, **feed):
    session = Float64Engine().compile(path, options)
    try:
        return session.run(feed)
    finally:
        session.close()


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_results_have_the_types_of_the_model_and_are_rounded_once_per_operator(tmp_path):
    text = "g (float[3] x, float[3] z) => (float[3] y, float[3] q) { q = Div(x, z)\n y = Mul(q, x) }"
    x, z = np.float32([1, 2, 10]), np.float32([3, 7, 0.1])
    outputs = run(parsed(tmp_path / "m.onnx", text), {"rounding": "results"}, x=x, z=z)
    assert outputs["q"].dtype == outputs["y"].dtype == np.float32
    assert np.array_equal(outputs["q"], x / z)  # IEEE 754: numpy's float32 operations are correctly rounded
    assert np.array_equal(outputs["y"], (x / z) * x)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_narrow_types_round_and_overflow(tmp_path, dtype):
    nodes = [helper.make_node("Mul", ["x", "x"], ["y"]), helper.make_node("Cast", ["y"], ["z"], to=F)]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        [value("x", dtype.value, [3])],
        [value("y", dtype.value, [3]), value("z", F, [3])],
    )
    x = np.array([1.1, 300.0, -2e-4]).astype(dtype.numpy)
    session = Float64Engine().compile(path, {"rounding": "results"})
    found = session.run({"x": x})
    assert session.outputs[0].dtype is dtype
    assert found["y"].dtype == dtype.numpy
    with np.errstate(over="ignore"):
        expected = (x.astype(np.float32) ** 2).astype(dtype.numpy)  # 8 or 11 digits squared fit float32's 24
    np.testing.assert_array_equal(found["y"], expected)
    assert np.isinf(found["y"][1]) == (dtype is DType.FLOAT16)  # 90000 is beyond 65504
    np.testing.assert_array_equal(found["z"], expected.astype(np.float32))


def test_a_format_rounds_weights_inputs_and_results_exactly_once(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    w = normal(1, 50)
    path = save(tmp_path / "m.onnx", nodes, [value("x", F, [50])], [value("y", F, [50])], {"w": w})
    x = normal(2, 50)

    def short(numbers):
        return numbers.astype(np.float16).astype(np.float32)

    expected = short(short(short(x) * short(w)) + short(x))
    assert np.array_equal(run(path, {"format": "fp16"}, x=x)["y"], expected)


def test_fused_chains_are_rounded_once_even_where_marked(tmp_path):
    text = "g (float[200] x, float[200] z) => (float[200] y, float[200] p) { p = Mul(x, z)\n y = Add(p, x) }"
    x, z = normal(15, 200), normal(16, 200)
    found = run(parsed(tmp_path / "m.onnx", text), {"rounding": "results", "fused": "true"}, x=x, z=z)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(found["y"], (wide * z + wide).astype(np.float32))
    np.testing.assert_array_equal(found["p"], x * z)
    assert np.any(found["y"] != x * z + x)


def test_results_with_two_readers_are_rounded_when_fused(tmp_path):
    body = "p = Mul(x, z)\n a = Add(p, x)\n b = Sub(p, z)\n y = Mul(a, b)"
    text = f"g (float[200] x, float[200] z) => (float[200] y) {{ {body} }}"
    x, z = normal(17, 200), normal(18, 200)
    found = run(parsed(tmp_path / "m.onnx", text), {"rounding": "results", "fused": "true"}, x=x, z=z)["y"]
    p = (x * z).astype(np.float64)
    a, b = p + x, p - z  # read by one Mul each
    np.testing.assert_array_equal(found, (a * b).astype(np.float32))


def test_subnormal_results_are_flushed(tmp_path):
    path = parsed(tmp_path / "m.onnx", "g (float[2] x, float[2] z) => (float[2] y) { y = Mul(x, z) }")
    feed = {"x": np.float32([1e-20, 1e-10]), "z": np.float32([1e-20, 1e-10])}
    assert run(path, {"rounding": "results"}, **feed)["y"][0] > 0
    flushed = run(path, {"rounding": "results", "denormals": "flush"}, **feed)["y"]
    assert flushed[0] == 0 < flushed[1]


def test_bodies_and_functions_are_rounded_as_well(tmp_path):
    text = """g (bool c, float[1] x, float[1] z) => (float[1] y) {
        y = If(c) <
            then_branch = a () => (float[1] p) { s = Div(x, z)\n p = Mul(s, x) },
            else_branch = e () => (float[1] q) { q = Neg(x) }
        >
    }"""
    x, z = np.float32([10]), np.float32([0.3])
    found = run(parsed(tmp_path / "m.onnx", text), {"rounding": "results"}, c=np.array(True), x=x, z=z)["y"]
    assert found == x / z * x

    inner = helper.make_function(
        "mine", "Ratio", ["a", "b"], ["y"],
        [helper.make_node("Div", ["a", "b"], ["d"]), helper.make_node("Mul", ["d", "a"], ["y"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    path = save(
        tmp_path / "f.onnx",
        [helper.make_node("Ratio", ["x", "z"], ["y"], domain="mine")],
        [value("x", F, [1]), value("z", F, [1])],
        [value("y", F, [1])],
        functions=[inner],
        domains=["mine"],
    )
    assert run(path, {"rounding": "results"}, x=x, z=z)["y"] == x / z * x


# Single steps


def steps(text, **options):
    """Return the typed steps of a text, and what each node rounds, by its first output."""
    given = read_options(options, Float64Engine.options)
    made = TypedSteps(parse(text), read_arithmetic(given))
    return made, {node.outputs[0].name: made.step(node) for node in made.model.graph}


HALF = Rounding((DType.FLOAT16,))
SINGLE = Rounding((DType.FLOAT,))


def test_nothing_is_rounded_by_exact_steps():
    model = parse("g (float[2] x) => (float[2] y) { y = Exp(x) }")
    made = ExactSteps(model)
    (node,) = made.model.graph
    step = made.step(node)
    assert (step.arithmetic, step.operands, step.results) == (EXACT, (), ())
    assert made.output(made.model.graph.outputs[0]) is None


def test_what_computes_is_rounded_to_its_type_and_what_moves_data_or_counts_is_not():
    text = """g (float[2] x) => (float[2] y, int64[1] n, double[2] d) {
        a = Mul(x, x)
        y = Identity(a)
        n = Shape(x)
        d = Cast<to = 11>(a)
    }"""
    _, found = steps(text, rounding="results")
    assert [found[name].results for name in "ayn"] == [(Finish(None, SINGLE),), (), ()]
    assert found["d"].results == (Finish(None, Rounding((DType.DOUBLE,))),)
    assert found["n"].arithmetic == found["d"].arithmetic == EXACT
    assert all(step.operands == () for step in found.values())


def test_a_format_rounds_what_comes_from_outside_where_it_is_read():
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Mul(x, w) y = Add(a, x) }"
    _, found = steps(text, format="fp16")
    both = Rounding((DType.FLOAT, DType.FLOAT16))
    assert found["a"].operands == (both, both)
    assert found["y"].operands == (None, both)  # a was rounded where it was made
    assert found["a"].results == (Finish(None, both),)


def test_errors_of_functions_are_those_of_the_first_result_of_float_types():
    _, found = steps("g (float[2] x) => (float[2] s, float[2] t, float[2] n) { s = Sin(x) t = Tanh(x) n = Neg(x) }",
                     functions="gpu")  # fmt: skip
    assert found["t"].results[0].error is not None
    assert found["t"].operands == ()
    assert isinstance(found["s"].operands[0], ReadArgument)  # reduced to one period before
    assert found["n"].results == ()


def test_a_quantizer_computes_in_float32():
    text = "g (float[2] x) => (uint8[2] y) <float s = {0.1}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    _, found = steps(text, rounding="results", functions="npu")
    assert found["y"].arithmetic.rounds
    assert found["y"].results == ()


def test_an_output_that_was_passed_on_unrounded_is_rounded_at_the_end():
    text = "g (float[2] x) => (float[2] a, float[2] y) { a = Mul(x, x) y = Neg(a) }"
    made, found = steps(text, rounding="results", fused="true")
    assert found["a"].results == ()
    assert [made.output(value) for value in made.model.graph.outputs] == [SINGLE, None]
    assert found["y"].results == (Finish(None, SINGLE),)
    made, found = steps(text, rounding="results")
    assert found["a"].results == (Finish(None, SINGLE),)
    assert [made.output(value) for value in made.model.graph.outputs] == [None, None]


def test_errors_are_made_larger_but_for_what_every_engine_rounds_alike():
    _, found = steps("g (float[2] x) => (float[2] y) { a = Mul(x, x) y = Add(a, x) }", rounding="results", amplify="8")
    assert [found[name].results[0].amplify for name in "ay"] == [8, 1]


def test_a_value_of_no_known_type_is_refused():
    model = parse("g (float[2] x) => (float[2] y) { a = test.domain.Made(x) y = Neg(a) }")
    with pytest.raises(ModelError) as caught:
        TypedSteps(model, RESULTS_ROUNDED)
    assert caught.value.slug == "value-type-unknown"


def test_the_error_of_a_result_in_float32_is_multiplied():
    third = np.array([1 / 3, np.inf, 1.0])
    error = np.float64(np.float32(1 / 3)) - 1 / 3
    found = Finish(None, None, 4)(third)
    np.testing.assert_allclose(found[0] - 1 / 3, 4 * error, rtol=1e-9)
    assert found[1:].tolist() == [np.inf, 1.0]
    exact = third - 1e-3  # what the kernel gives without errors of its own
    np.testing.assert_allclose(Finish(None, None, 4)(third, exact)[0], exact[0] + 4 * 1e-3, rtol=1e-6)
    whole = np.array([1, 2])
    assert Finish(None, SINGLE, 4)(whole) is whole  # integers are what they are
    assert Finish(None, HALF)(np.array([1 / 3])).item() == np.float16(1 / 3)


def test_a_function_errs_before_its_result_is_rounded():
    error = read_arithmetic(read_options({"functions": "npu"}, Float64Engine.options)).functions.error("Tanh")
    y = np.linspace(0.2, 0.9, 50)
    found = Finish(error, None)(y)
    assert 0 < np.max(np.abs(found - y)) <= 2.0**-10  # half precision, in which tables of such units are
    np.testing.assert_array_equal(Finish(error, HALF)(y), found.astype(np.float16))


def test_an_argument_is_rounded_and_then_read_with_its_error():
    assert ReadArgument(0.5, None)(np.array([2.0])).tolist() == [3.0]
    assert ReadArgument(0.5, HALF)(np.array([1 / 3])).item() == 1.5 * np.float64(np.float16(1 / 3))
    assert ReadArgument(0.5, None)(np.array([2])).tolist() == [2]

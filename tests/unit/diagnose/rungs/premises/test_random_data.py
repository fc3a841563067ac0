"""Random data on which a healthy engine only takes a freedom of its hardware are no reason to call it sensitive."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from diagnosing import ask, step
from engine_scripts import engine_file
from machine import exact_int8
from tensortriage_testing import feed_for, mlp, quantized

QUESTION = "is the target right on made-up data as well?"
WEIGHT = "w"
MATRIX = np.random.default_rng(0).integers(-8, 9, (32, 16)).astype(np.float32)
FEED = {"x": np.arange(32, dtype=np.float32)[None] - 16}


def diagnosed(tmp_path, hardware):
    """Diagnose a product with operands in TF32 (11 bits): the real data are small whole numbers, which it holds."""
    file = engine_file("from tensortriage_testing import SimulatedAccelerator as Engine\n")
    target = f"script:{file},operands=tf32,hardware={hardware}"
    verdict, _ = ask(tmp_path, product(), FEED, target)
    return verdict


def product():
    """Return the product of a row and a matrix of small whole numbers."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", WEIGHT], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16])],
        [numpy_helper.from_array(MATRIX, WEIGHT)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.lengthy
def test_a_gpu_may_shorten_the_operands_of_random_data(tmp_path):
    verdict = diagnosed(tmp_path, "gpu")
    assert verdict.verdict == "match", verdict.summary
    assert step(verdict, QUESTION).answer.startswith("yes: operands in TF32, usual on GPUs explains their error")


@pytest.mark.lengthy
def test_a_cpu_that_fails_on_random_data_only_is_sensitive(tmp_path):
    verdict = diagnosed(tmp_path, "cpu")
    assert verdict.verdict == "input-sensitive", verdict.summary


@exact_int8
def test_integer_arithmetic_that_shows_on_random_data_only_is_none_of_it(tmp_path):
    """ONNX Runtime rounds biases to int32; on the real data of this model that moves nothing, on random data a step."""
    model = mlp(seed=5)
    verdict, _ = ask(tmp_path, quantized(model, feed_for(model)), feed_for(model), "onnxruntime")
    assert verdict.verdict == "match", verdict.summary
    answer = step(verdict, QUESTION).answer
    if answer.startswith("yes: within"):
        pytest.skip("the kernels of this processor put no result of these numbers on the other side of a step")
    assert answer.startswith("yes: biases in int32 explains their error")


INTEGERS = f"""
import numpy as np
import onnxruntime


class Engine:
    def compile(self, model, options):
        session = onnxruntime.InferenceSession(str(model))
        names = [output.name for output in session.get_outputs()]
        return Session(lambda feed: dict(zip(names, map(stored, session.run(names, feed)))))


class Session:
    def __init__(self, run):
        self.run = run


def stored(array):
    \"\"\"Return an array as int8 holds it, in a range that somebody calibrated.\"\"\"
    step = {np.abs(FEED["x"] @ MATRIX).max() / 127}
    return (np.clip(np.rint(array / step), -127, 127) * step).astype(np.float32)
"""


def test_an_engine_with_ranges_of_its_own_is_not_asked_about_random_data(tmp_path):
    """The largest real result is the end of its range, and random ones may be beyond: nothing is wrong with either."""
    file = engine_file(INTEGERS)
    verdict, _ = ask(tmp_path, product(), FEED, f"script:{file},precision=int8")
    assert verdict.verdict == "rounding", verdict.summary
    assert step(verdict, QUESTION).answer.startswith("skipped: the ranges of its integers")


WHOLE_NUMBERS_ONLY = """
import numpy as np
import onnxruntime


class Engine:
    def compile(self, model, options):
        session = onnxruntime.InferenceSession(str(model))
        names = [output.name for output in session.get_outputs()]
        return Session(lambda feed: dict(zip(names, session.run(names, {n: np.rint(a) for n, a in feed.items()}))))


class Session:
    def __init__(self, run):
        self.run = run
"""
"""Right on the real data, whole numbers, and on no others."""


def test_a_reference_that_is_wrong_on_random_data_accuses_nobody(tmp_path):
    reference = f"script:{engine_file(WHOLE_NUMBERS_ONLY)}"
    verdict, _ = ask(tmp_path, product(), FEED, "onnxruntime", reference=reference)
    assert (verdict.verdict, verdict.exit_code) == ("match", 0), verdict.summary
    assert "float64 replaces it" in step(verdict, "is the reference right on made-up data?").answer
    assert step(verdict, QUESTION).answer.startswith("yes: within")


WRONG_WHEN_DEPLOYED = WHOLE_NUMBERS_ONLY.replace("np.rint(a)", "np.rint(a) if len(names) == 1 else a")
"""Wrong where nothing but the output is shown, as a race that comes and goes."""


def test_a_reference_is_judged_by_the_answer_that_the_target_is_compared_with(tmp_path):
    """Of a model with an inner value more: asked for all of them, this reference is right."""
    text = "g (float[1,32] x) => (float[1,32] y) { [one] a = Mul(x, x)\n [two] y = Add(a, x) }"
    reference = f"script:{engine_file(WRONG_WHEN_DEPLOYED)}"
    verdict, _ = ask(tmp_path, text, FEED, "onnxruntime", reference=reference)
    assert (verdict.verdict, verdict.exit_code) == ("match", 0), verdict.summary
    assert "float64 replaces it" in step(verdict, "is the reference right on made-up data?").answer


WITH_BIAS = """g (float[2,4] x) => (float[2,4] y) <float[4] w = {1, 2, 3, 4}, float[4] b = {4, 3, 2, 1}> {
    [product] p = Mul(x, w)
    [sum] y = Add(p, b)
}"""


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("target", "more", "verdict"),
    [
        ("onnxruntime", {}, "match"),
        ("onnxruntime", {"random_too": False}, "inconclusive"),
        ("fault:node=product,kind=broadcast", {}, "inconclusive"),
    ],
)
def test_inputs_of_one_value_show_what_made_up_data_show(tmp_path, target, more, verdict):
    """Rows that are alike hide that the first stands in place of all."""
    found, _ = ask(tmp_path, WITH_BIAS, {"x": np.zeros((2, 4), np.float32)}, target, **more)
    assert found.verdict == verdict, found.summary
    assert "input 'x' is zero everywhere" in found.summary
    assert found.summary.endswith("give real data")
    assert found.confidence == (0.9 if verdict == "match" else 1.0)

"""Whether the integers of an engine's file are the model's weights, rounded: then the engine is judged by them."""

import numpy as np
import pytest
from onnx import numpy_helper

from models import proto
from registered_engines import register
from stored_file import stored, write_file
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.rungs.quantization.stored_weights import stored_weights
from tensortriage.values.dtype import Precision

RNG = np.random.default_rng(7)
WEIGHTS = {name: RNG.standard_normal((16, 16)).astype(np.float32) for name in ("one", "two")}
FEED = {"x": RNG.standard_normal((8, 16)).astype(np.float32)}


HIDDEN = np.maximum(FEED["x"] @ WEIGHTS["one"], 0.0)


def network(share=0.0):
    """x -> MatMul -> Relu -> MatMul -> Sub -> y; the last leaves out a share of what is there on the feed."""
    message = proto("""g (float[8, 16] x) => (float[8, 16] y) {
        [first] a = MatMul(x, one)
        [kink] b = Relu(a)
        [second] c = MatMul(b, two)
        [last] y = Sub(c, most)
    }""")
    tensors = {**WEIGHTS, "most": np.float32(share) * (HIDDEN @ WEIGHTS["two"])}
    message.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in tensors.items())
    return message


@pytest.fixture
def answered(investigate, tmp_path, monkeypatch):
    """Return a function that asks about a file with these weights; the answer, and what the step said."""
    register(monkeypatch, tmp_path, stored="stored_file:StoredFile")

    def answer(narrow=(), computed=None, share=0.0, **changed):
        weights = {name: stored(array) for name, array in WEIGHTS.items()} | changed
        file = write_file(tmp_path / "file.onnx", network(share), weights, narrow=narrow, computed=computed)
        inv = investigate(network(share), FEED, target=f"stored:file={file},precision=int8")
        found = stored_weights(inv, Evidence())
        return found, inv.record.steps[-1].answer

    return answer


def test_the_engine_is_judged_on_the_file_whose_weights_are_the_models(answered):
    found, told = answered()
    assert found.verdict is None
    assert told.startswith("yes: all 2 weights of the file are the model's, rounded, which costs 0.")
    assert found.question.precision is Precision.FP32
    assert np.allclose(found.question.model.graph.weight("one"), stored(WEIGHTS["one"])[0])
    assert 0.002 < found.findings["quantization"].error < 0.02


def test_only_what_integers_meet_is_judged_as_such(answered):
    question = answered(narrow=[1])[0].question
    assert (question.precision, question.kept) == (Precision.INT8, ("first", "kink", "last"))
    assert answered(narrow=None)[0].question is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w * np.float32(1.02), "1.02 times the original's"),
        (lambda w: np.roll(w, 1), "has a weight 'two'"),
        (lambda w: w[:, ::-1], "holds the original's index 15"),
    ],
)
def test_a_weight_that_is_another_is_named(answered, change, words):
    found, told = answered(two=stored(change(WEIGHTS["two"])))
    assert (found.verdict.kind.value, [each.node for each in found.verdict.culprits]) == ("model-changed", ["second"])
    assert words in found.verdict.summary
    assert told.startswith("no: 1 of 2 are not")


def test_all_weights_that_are_others_are_named_the_worst_first(answered):
    found, _ = answered(one=stored(WEIGHTS["one"] * 1.2), two=stored(WEIGHTS["two"] * 1.1))
    assert [each.node for each in found.verdict.culprits] == ["first", "second"]


def test_rounding_that_makes_up_for_rounding_is_no_fault(answered):
    """Numbers are up to two steps away, but no further off in what they compute."""
    now, step = stored(WEIGHTS["two"])
    off = now - WEIGHTS["two"]
    for row in range(16):  # each number once up or down, where that brings the result nearer
        for sign in (1.0, -1.0):
            moved = off.copy()
            moved[row] += sign * step[0]
            nearer = ((HIDDEN @ moved) ** 2).sum(0) < ((HIDDEN @ off) ** 2).sum(0)
            off[row, nearer] = moved[row, nearer]
    found, told = answered(two=(WEIGHTS["two"] + off, step))
    assert found.verdict is None
    assert "that of MatMul 'second' not rounded to nearest, which does no harm here" in told


def test_weights_that_the_engine_does_not_compute_with_so_are_no_fault(answered):
    """What is folded into them may be taken out again elsewhere."""
    found, told = answered(two=stored(WEIGHTS["two"] * 1.3), computed={"two": stored(WEIGHTS["two"])[0]})
    assert (found.verdict, found.question) == (None, None)
    assert told == "unknown: 1 of 2 weights differ from the model's, but the engine's results match neither"


def test_weights_that_are_not_found_leave_the_question_as_it_was(answered):
    found, told = answered(two=stored(RNG.standard_normal((16, 15))), computed={"two": WEIGHTS["two"]})
    assert (found.verdict, found.question) == (None, None)
    assert told == "unknown: 1 of 2 are not found in the model"


def test_a_weight_that_is_another_is_named_beside_one_that_is_not_found(answered):
    computed = {"two": WEIGHTS["two"]}
    found, _ = answered(one=stored(WEIGHTS["one"] * 1.05), two=stored(RNG.standard_normal((16, 15))), computed=computed)
    assert [each.node for each in found.verdict.culprits] == ["first"]


def test_a_file_whose_weights_leave_nothing_is_no_rounding(answered):
    found, _ = answered(share=0.95, two=stored(WEIGHTS["two"], bits=4))
    assert found.verdict.kind.value == "quantization"
    assert found.verdict.summary.startswith("this quantization destroys the answer: all of the signal at output 'y'")


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, None), (1.02, "model-changed")])
def test_a_normalization_that_a_file_holds_in_its_weights_is_folded(
    investigate, tmp_path, monkeypatch, factor, verdict
):
    register(monkeypatch, tmp_path, stored="stored_file:StoredFile")
    row = "{" + ", ".join(f"{number:.3f}" for number in RNG.uniform(0.5, 1.5, 16)) + "}"
    model = proto(f"""g (float[8, 16] x) => (float[8, 16] y) <float[16] scale = {row}, float[16] bias = {row},
            float[16] mean = {row}, float[16] variance = {row}> {{
        [first] a = Gemm(x, one, bias)
        [norm] y = BatchNormalization<epsilon = 0.0>(a, scale, bias, mean, variance)
    }}""")
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS["one"], "one"))
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    factors = held["scale"] / np.sqrt(held["variance"])
    other = proto("g (float[8, 16] x) => (float[8, 16] y) { [first] y = Gemm(x, one, bias) }")
    bias = (held["bias"] - held["mean"]) * factors + held["bias"]
    other.graph.initializer.append(numpy_helper.from_array(bias.astype(np.float32), "bias"))
    other.graph.initializer.append(numpy_helper.from_array(WEIGHTS["one"], "one"))
    file = write_file(tmp_path / "file.onnx", other, {"one": stored(WEIGHTS["one"] * factors * np.float32(factor))})
    found = stored_weights(investigate(model, FEED, target=f"stored:file={file},precision=int8"), Evidence())
    assert found.verdict.kind.value == verdict if verdict else found.verdict is None
    if verdict is None:
        assert found.findings["quantization"].fit == "the one weight of the file is the model's, rounded"

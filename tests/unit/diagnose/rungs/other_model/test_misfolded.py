"""BatchNormalizations folded wrongly by hand: what the file's numbers say was done."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tensortriage.diagnose.rungs.other_model.misfolded import misfolded
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence
from tensortriage_testing import save_model

RANDOM = np.random.default_rng(0)
EPSILON = 1e-3
W = RANDOM.standard_normal((6, 4, 3, 3))
BIAS, SHIFT, MEAN = RANDOM.standard_normal((3, 6))
GAIN, VARIANCE = 1 + 0.3 * RANDOM.standard_normal(6), RANDOM.uniform(0.05, 1, 6)
FACTOR = GAIN / np.sqrt(VARIANCE + EPSILON)


def network(op, arrays, *, folded):
    node = {
        "Conv": helper.make_node("Conv", ["x", "w", "b"], ["y" if folded else "c"], name="op"),
        "Gemm": helper.make_node("Gemm", ["x", "w", "b"], ["y" if folded else "c"], name="op"),
    }[op]
    names = ["c", "gain", "shift", "mean", "variance"]
    norm = [] if folded else [helper.make_node("BatchNormalization", names, ["y"], name="norm", epsilon=EPSILON)]
    shapes = (["N", 4, 5, 5], ["N", 6, 3, 3]) if op == "Conv" else (["N", 36], ["N", 6])
    graph = helper.make_graph(
        [node, *norm], "g",
        [helper.make_tensor_value_info("x", 1, shapes[0])], [helper.make_tensor_value_info("y", 1, shapes[1])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
@pytest.mark.parametrize(
    ("factor", "bias", "words"),
    [
        (FACTOR, SHIFT + (BIAS - MEAN) * FACTOR, ""),
        (FACTOR, SHIFT + (BIAS + MEAN) * FACTOR, "adds the mean instead of subtracting it"),
        (FACTOR, SHIFT - MEAN * FACTOR, "omits the original bias"),
        (FACTOR, SHIFT + BIAS - MEAN * FACTOR, "does not multiply the original bias by the factors"),
        (FACTOR, (BIAS - MEAN) * FACTOR, "omits the shift"),
        (GAIN / np.sqrt(VARIANCE + 1e-5), None, "uses an epsilon of 1e-05 instead of 0.001"),
        (GAIN / np.sqrt(VARIANCE), None, "uses an epsilon of 0 instead of 0.001"),
        (GAIN / (VARIANCE + EPSILON), None, "divides by the variance, not by its root"),
        (1 / np.sqrt(VARIANCE + EPSILON), None, "omits the scale"),
        (RANDOM.uniform(0.5, 2, 6), None, "its factors are not scale / sqrt(variance + epsilon)"),
        (FACTOR, RANDOM.standard_normal(6), "its bias is not shift + (bias - mean) * factor"),
    ],
)
def test_each_mistake(tmp_path, op, factor, bias, words):
    bias = SHIFT + (BIAS - MEAN) * factor if bias is None else bias
    weight = W if op == "Conv" else W.reshape(6, -1).T
    scaled = weight * (factor[:, None, None, None] if op == "Conv" else factor)
    plain = {"w": weight, "b": BIAS, "gain": GAIN, "shift": SHIFT, "mean": MEAN, "variance": VARIANCE}
    model = Model.load(save_model(network(op, plain, folded=False), tmp_path / "model.onnx"))
    file = Model.load(save_model(network(op, {"w": scaled, "b": bias}, folded=True), tmp_path / "file.onnx"))
    told = misfolded(model, Correspondence.of(model, file), "op")
    assert told == (f"folds BatchNormalization 'norm' wrongly: {words}" if words else "")


def test_a_weight_that_is_another_is_not_folded(tmp_path):
    plain = {"w": W, "b": BIAS, "gain": GAIN, "shift": SHIFT, "mean": MEAN, "variance": VARIANCE}
    model = Model.load(save_model(network("Conv", plain, folded=False), tmp_path / "model.onnx"))
    others = {"w": RANDOM.standard_normal(W.shape), "b": BIAS}
    file = Model.load(save_model(network("Conv", others, folded=True), tmp_path / "file.onnx"))
    assert misfolded(model, Correspondence.of(model, file), "op") == ""


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
@pytest.mark.parametrize(("factor", "twice"), [(FACTOR, True), (RANDOM.uniform(0.5, 2, 6), False)])
def test_a_normalization_that_is_folded_and_kept(tmp_path, op, factor, twice):
    """As a converter left it (tensorflow-onnx#1494); weights that were rescaled fold nothing."""
    weight = W if op == "Conv" else W.reshape(6, -1).T
    plain = {"w": weight, "b": BIAS, "gain": GAIN, "shift": SHIFT, "mean": MEAN, "variance": VARIANCE}
    model = Model.load(save_model(network(op, plain, folded=False), tmp_path / "model.onnx"))
    scaled = weight * (factor[:, None, None, None] if op == "Conv" else factor)
    others = {**plain, "w": scaled, "b": SHIFT + (BIAS - MEAN) * factor}
    file = Model.load(save_model(network(op, others, folded=False), tmp_path / "file.onnx"))
    told = misfolded(model, Correspondence.of(model, file), "op")
    words = (
        "folds BatchNormalization 'norm', which the file computes as well, so that it counts twice: leave 'norm' out"
    )
    assert told == (words if twice else "")

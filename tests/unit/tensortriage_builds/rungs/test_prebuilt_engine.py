"""A file that was made before, in place of the model: a healthy one passes, another one is told from the engine."""

import numpy as np
import onnx
import onnxruntime
import pytest

from diagnosing import ask, step
from tensortriage_testing import feed_for, mlp, save_model

QUESTION = "is the given file at fault, or the engine's own build?"


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    model = mlp(width=12, layers=1, features=6, batch=2)
    return save_model(model, folder / "model.onnx"), feed_for(model, batch=2)


def optimized(path, folder):
    """Return what ONNX Runtime writes of a model once it is optimized."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(path, options)
    return folder / "optimized.onnx"


def test_a_file_of_the_same_model_matches(network, tmp_path):
    path, feed = network
    verdict, _ = ask(tmp_path, path, feed, f"onnxruntime:file={optimized(path, tmp_path)}")
    assert verdict.verdict == "match"


def test_a_file_of_other_weights_is_not_blamed_on_an_op(network, tmp_path):
    path, feed = network
    other = onnx.load(path)
    weight = next(each for each in other.graph.initializer if len(each.dims) == 2)
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) * np.float32(1.1), weight.name))
    onnx.save(other, tmp_path / "other.onnx")
    file = optimized(tmp_path / "other.onnx", tmp_path)
    verdict, _ = ask(tmp_path, path, feed, f"onnxruntime:file={file}")
    assert (verdict.verdict, verdict.culprits) == ("model-changed", ())
    assert verdict.summary.endswith("and the build made here agrees with the reference")
    assert step(verdict, QUESTION).answer.startswith("the file: output")


def test_a_file_for_other_shapes_is_refused(network, tmp_path):
    _, feed = network
    other = save_model(mlp(width=12, layers=1, features=6, batch=3), tmp_path / "three.onnx")
    model = mlp(width=12, layers=1, features=6, batch=2)
    verdict, _ = ask(tmp_path, model, feed, f"onnxruntime:file={optimized(other, tmp_path)}")
    assert verdict.verdict == "build-failed"
    assert "the file has the inputs" in verdict.summary

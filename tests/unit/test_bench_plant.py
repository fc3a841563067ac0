"""The plant of bench/gpu changes what is built, and nothing that lacks the node."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from diagnosing import CHAIN_FEED, softmax_chain

pytestmark = pytest.mark.lengthy

SCRIPT = Path(__file__).parents[2] / "bench" / "gpu" / "plant.py"


@pytest.fixture
def plant(monkeypatch):
    monkeypatch.delenv("PLANT", raising=False)  # with it, importing the script plants
    spec = importlib.util.spec_from_file_location("plant", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, CHAIN_FEED)[0]


def test_a_result_is_scaled_or_nan_and_another_model_is_left_alone(plant, tmp_path):
    file = tmp_path / "model.onnx"
    onnx.save(softmax_chain(), file)
    right = run(file)
    np.testing.assert_allclose(run(plant.Plant("last|scale|1.02", tmp_path).file(file)), right * 1.02, rtol=1e-6)
    wrong = run(plant.Plant("softmax|nan|1", tmp_path).file(file))
    assert np.isnan(wrong[:, 0]).all()  # y = s * x element by element
    np.testing.assert_array_equal(wrong[:, 1:], right[:, 1:])
    assert plant.Plant("stranger|scale|2", tmp_path).file(file) == file


def test_every_second_build_that_has_the_node_is_wrong(plant, tmp_path):
    file = tmp_path / "model.onnx"
    onnx.save(softmax_chain(), file)
    planted = [plant.Plant("last|every2|2", tmp_path).file(file) != file for _ in range(4)]
    assert planted == [False, True, False, True]

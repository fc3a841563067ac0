"""Activations that an engine quantizes unasked; the real engine, whose default it is."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from machine import exact_int8
from tensortriage.diagnose.state.verdict import VerdictKind
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest
from tensortriage_engines.openvino.engine import OpenVinoEngine

pytest.importorskip("openvino")
TERMS, COLUMNS, BLOCK = 256, 64, 32


def compressed(path, block=BLOCK):
    """Write a product by int4 weights with a scale for a block of them, in standard operators, between activations."""
    random = np.random.default_rng(0)
    whole = random.integers(-8, 8, (TERMS, COLUMNS))
    weight = onnx.helper.make_tensor(
        "w", onnx.TensorProto.INT4, whole.shape, whole.astype(ml_dtypes.int4).astype(np.int8).ravel().tolist()
    )
    scale = random.uniform(0.01, 0.02, (TERMS // block, COLUMNS)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Tanh", ["x"], ["t"], name="before"),
        onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["d"], name="real", axis=0, block_size=block),
        onnx.helper.make_node("MatMul", ["t", "d"], ["m"], name="product"),
        onnx.helper.make_node("Sigmoid", ["m"], ["y"], name="after"),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [16, TERMS])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [16, COLUMNS])],
        [weight, onnx.numpy_helper.from_array(scale, "s")],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), path)
    np.savez(path.with_suffix(".npz"), x=random.standard_normal((16, TERMS), np.float32))
    return path


def verdict_on(path, folder, target):
    feeding = FeedRequest(paths=(str(path.with_suffix(".npz")),))
    return diagnose(
        DiagnoseRequest(
            model=path, target=target, reference="onnxruntime:optimization=none", feeding=feeding, case=folder
        )
    )


@pytest.mark.lengthy
@exact_int8  # elsewhere OpenVINO multiplies the weights out and keeps the activations
def test_what_its_groups_of_activations_cost_is_rounding(tmp_path):
    path = compressed(tmp_path / "m.onnx")
    found = verdict_on(path, tmp_path / "case", "openvino:precision=fp32")
    assert found.kind is VerdictKind.ROUNDING
    assert "activations in int8" in found.summary


@pytest.mark.lengthy
@exact_int8
def test_products_by_compressed_weights_cost_what_their_groups_are_predicted_to(tmp_path):
    path = compressed(tmp_path / "m.onnx", block=128)
    found = verdict_on(path, tmp_path / "case", "openvino:precision=fp32,config.DYNAMIC_QUANTIZATION_GROUP_SIZE=128")
    assert found.kind is VerdictKind.ROUNDING
    assert "activations in int8" in found.summary


def test_it_is_known_which_options_switch_it_off():
    engine = OpenVinoEngine()
    assert engine.quantizes_activations({"precision": "fp32"})
    assert not engine.quantizes_activations({"config.DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})
    assert not engine.quantizes_activations({"hint.execution": "ACCURACY"})

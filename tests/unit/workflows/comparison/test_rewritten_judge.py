"""A quantized file against results of its network: what its own rounding costs passes, a mistake in it does not."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static

from registered_engines import register
from tensortriage.engines.spec import EngineSpec
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage.workflows.comparison.participants import Saved
from tensortriage_testing import feed_for, mlp, save_model

MODEL = mlp(width=48)
PLAIN = EngineSpec.parse("onnxruntime:optimization=none")
WAYS = ("QDQ", "QOperator", "dynamic")


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self):
        self._left = iter([feed_for(MODEL)])

    def get_next(self):
        return next(self._left, None)


def rolled(message):
    """Put the rows of the first stored matrix elsewhere."""
    weight = next(t for t in message.graph.initializer if len(t.dims) == 2 and t.data_type in (2, 3))
    weight.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(weight), 1, axis=0), weight.name))


def compared(folder, way, plant, *, golden, target="onnxruntime"):
    """Run a quantized file against its network: on an engine, or against results that one gave earlier."""
    path, other, feed = save_model(MODEL, folder / "model.onnx"), folder / "other.onnx", folder / "feed.npz"
    np.savez(feed, **feed_for(MODEL))
    if way == "dynamic":
        quantize_dynamic(path, other)
    else:
        quantize_static(path, other, Samples(), quant_format=QuantFormat[way])
    message = onnx.load(other)
    plant(message)
    onnx.save(message, other)
    feeding = FeedRequest(paths=(str(feed),))
    if not golden:
        asked = CompareRequest(
            model=path, target_model=other, reference=PLAIN, targets=[EngineSpec.parse(target)], feeding=feeding
        )
        return compare(asked)
    kept = []
    compare(CompareRequest(model=path, targets=[PLAIN], feeding=feeding), record=lambda *told: kept.append(told[2]))
    saved = Saved("golden", [dict(kept[0])])
    return compare(CompareRequest(model=other, targets=[EngineSpec.parse(target)], saved=[saved], feeding=feeding))


@pytest.mark.parametrize("golden", [False, True], ids=["live", "golden"])
@pytest.mark.parametrize("way", WAYS)
def test_a_sound_file_passes(tmp_path, way, golden):
    result = compared(tmp_path, way, lambda message: None, golden=golden)
    assert result.exit_code == 0, result
    assert not result.disagreements
    (row,) = result.comparisons[0].comparison.rows
    assert row.figure > 1e-3


@pytest.mark.parametrize("golden", [False, True], ids=["live", "golden"])
@pytest.mark.parametrize("way", WAYS)
def test_a_mistake_in_it_fails(tmp_path, way, golden):
    result = compared(tmp_path, way, rolled, golden=golden)
    assert result.exit_code == 1
    assert bool(result.disagreements) is golden


@pytest.mark.parametrize("golden", [False, True], ids=["live", "golden"])
def test_an_engine_that_does_not_compute_the_file_fails_though_rounding_costs_more(monkeypatch, tmp_path, golden):
    """1 % at the last Gemm; the file's rounding costs the output as much, which excuses no engine."""
    register(monkeypatch, tmp_path, faulty="tensortriage_testing:FaultyEngine")
    fault = "faulty:node=NODE,kind=scale,amount=1.01"
    last = [node.name for node in MODEL.graph.node if node.op_type in ("Gemm", "MatMul")][-1]
    result = compared(tmp_path, "QDQ", lambda message: None, golden=golden, target=fault.replace("NODE", last))
    assert result.exit_code == 1
    assert not result.disagreements
    (row,) = result.comparisons[0].comparison.rows
    assert row.judgement.limit.startswith("against the file itself")


def test_what_cannot_be_evaluated_cannot_be_judged(tmp_path):
    """An operator of ONNX Runtime that has no float64 arithmetic: engines agree, and that proves nothing."""
    nodes = [
        helper.make_node("Inverse", ["x"], ["i"], name="inverse", domain="com.microsoft"),
        helper.make_node("MatMul", ["i", "x"], ["y"], name="product"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 6])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = save_model(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "model.onnx")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "feed.npz", x=rng.standard_normal((6, 6)).astype(np.float32))
    right = np.eye(6, dtype=np.float32) * np.float32(1 + 3e-6)
    asked = CompareRequest(
        model=path,
        targets=[PLAIN],
        saved=[Saved("golden", [{"y": right}])],
        feeding=FeedRequest(paths=(str(tmp_path / "feed.npz"),)),
    )
    result = compare(asked)
    assert result.exit_code == 4, result
    assert "Inverse" in result.unevaluated

"""What cannot be cut into pieces that fit is told before anything is run."""

import logging

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.engines.base import Limits
from tensortriage.errors import UsageError
from tensortriage.model.model import Model
from tensortriage.runs.blocks.memory import BASE_BYTES
from tensortriage.workflows.common.memory_cuts import cut_to_memory
from tensortriage.workflows.diagnosis.diagnose import DiagnoseRequest, diagnose
from tensortriage_testing import save_model

WORDS, WIDTH = 1 << 16, 64
TABLE = 4 * WORDS * WIDTH


@pytest.fixture
def model(tmp_path):
    """An embedding of 16 MiB that is the head as well, and small products between."""
    weights = [numpy_helper.from_array(np.zeros((WORDS, WIDTH), np.float32), "table")]
    nodes, last = [helper.make_node("Gather", ["table", "ids"], ["e"], "embed")], "e"
    for number in range(4):
        weights.append(numpy_helper.from_array(np.zeros((WIDTH, WIDTH), np.float32), f"w{number}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"h{number}"], f"mix{number}"))
        last = f"h{number}"
    nodes.append(helper.make_node("Transpose", ["table"], ["turned"], "turn", perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", [last, "turned"], ["logits"], "head"))
    ends = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 3]),
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 3, WORDS]),
    ]
    graph = helper.make_graph(nodes, "tied", ends[:1], ends[1:], weights)
    path = tmp_path / "tied.onnx"
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return Model.load(path)


def test_a_weight_that_is_larger_than_memory_is_refused_by_name(model):
    with pytest.raises(UsageError) as caught:
        cut_to_memory(model, TABLE // 2)
    assert caught.value.slug == "block-too-large"
    assert "'table'" in caught.value.message
    assert "'embed'" in caught.value.message
    assert f"--memory-limit to {(3 * TABLE + BASE_BYTES) / 1e6:.0f} MB" in caught.value.cure


def test_a_weight_that_may_be_too_large_is_told(model, caplog):
    with caplog.at_level(logging.WARNING):
        assert cut_to_memory(model, 2 * TABLE) is not None
    assert "'table'" in caplog.text
    caplog.clear()
    assert cut_to_memory(model, 3 * TABLE + 2 * BASE_BYTES) is None
    assert not caplog.text


def test_the_weights_of_a_model_that_is_refused_are_not_read(model, tmp_path, monkeypatch):
    monkeypatch.setattr(Model, "fingerprint", property(lambda _: pytest.fail("all weights are read")))
    request = DiagnoseRequest(
        model=tmp_path / "tied.onnx",
        target="emulate:precision=fp16",
        limits=Limits(memory_bytes=TABLE // 2),
        case=tmp_path / "case",
    )
    with pytest.raises(UsageError) as caught:
        diagnose(request)
    assert caught.value.slug == "block-too-large"

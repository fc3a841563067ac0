"""A repro in a fresh process: that it fails again, that it passes, and that nothing could be asked are told apart."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tensortriage.engines.base import Limits
from tensortriage.model.io.tensor_pb import write_tensor
from tensortriage.reduce.engines.by_engine import fails_again, otherwise
from tensortriage.reduce.failure import Failure, FailureKind
from tensortriage.testing import save_model

X = np.array([[-1.0, 2.0]], np.float32)


@pytest.fixture
def written(tmp_path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 2)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"], "neg")], "g", ends[:1], ends[1:])
    save_model(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx"
    )
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    write_tensor(folder / "input_0.pb", "x", X)
    write_tensor(folder / "output_0.pb", "y", 2 * -X)  # what ONNX Runtime gives is off by half of it
    return tmp_path


def test_what_a_repro_does_in_a_fresh_process(written):
    asked = (written, "onnxruntime")
    assert otherwise(*asked, Failure(FailureKind.WRONG, "y", 0.5), Limits()) == ""
    assert fails_again(*asked, Failure(FailureKind.WRONG, "y", 0.5), Limits())
    assert "'y' is wrong by 0.5" in otherwise(*asked, Failure(FailureKind.SHAPE, "y", 0.0), Limits())
    (written / "test_data_set_0/input_0.pb").write_bytes(b"\xff")
    assert otherwise(*asked, Failure(FailureKind.WRONG, "y", 0.5), Limits()).startswith("it could not be run: ")

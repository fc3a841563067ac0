"""Quantizing from Python."""

import onnx

from running_cli import EXAMPLES
from tensortriage.api import FeedRequest, Source, Target
from tensortriage_quantize import api


def test_the_documented_call_runs_with_a_request_alone(tmp_path):
    feeding = FeedRequest(paths=[str(EXAMPLES / "digits.npz")], most=4)
    target = Target(tmp_path / "o.onnx")
    found = api.quantize(
        api.QuantizeRequest(source=Source(EXAMPLES / "digits_cnn.onnx"), target=target, feeding=feeding)
    )
    assert isinstance(found, api.QuantizeResult)
    assert (found.precision, len(found.samples), found.inputs) == (api.QuantizeOptions().precision.value, 1, "real")
    written = {node.op_type for node in onnx.load(target.path).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= written

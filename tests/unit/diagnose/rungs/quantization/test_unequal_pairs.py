"""A DequantizeLinear with another scale or zero point than its QuantizeLinear is told from the file alone."""

import numpy as np
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from diagnosing import ask, step
from tensortriage.diagnose.rungs.quantization.unequal_pairs import unequal_pairs
from tensortriage.model.model import Model
from tensortriage.model.quantization.qdq import quantizers
from tensortriage_testing import feed_for, mlp, quantized, save_model

VALUE = "/layer.1/Relu_output_0"


def parted(model, word, change):
    """Give the DequantizeLinear of a value a scale, or zero point, of its own."""
    index = {"scale": 1, "zero_point": 2}[word]
    node = next(node for node in model.graph.node if node.name == f"{VALUE}_DequantizeLinear")
    own = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[index])
    array = np.asarray(change(numpy_helper.to_array(own)), numpy_helper.to_array(own).dtype)
    model.graph.initializer.append(numpy_helper.from_array(array, "own"))
    node.input[index] = "own"
    return model


@pytest.mark.parametrize(
    ("word", "change", "told"),
    [("scale", lambda array: array * 2, "its scale is"), ("zero_point", lambda array: array + 40, "its zero point is")],
)
def test_the_pair_is_named_and_mended(tmp_path, word, change, told):
    model = mlp()
    feed = feed_for(model)
    other = save_model(parted(quantized(model, feed), word, change), tmp_path / "other.onnx")
    path = save_model(model, tmp_path / "float.onnx")
    verdict, _ = ask(tmp_path, path, feed, "onnxruntime:optimization=none", target_model=other)
    assert verdict.verdict == "quantization"
    assert [culprit.node for culprit in verdict.culprits] == [f"{VALUE}_DequantizeLinear"]
    assert told in verdict.culprits[0].reason
    assert step(verdict, "is the target's model a sound quantization?").answer.startswith("no")
    assert verdict.remedy is not None
    assert verdict.remedy.error_after < verdict.remedy.error_before / 2


@pytest.mark.parametrize("copies", [1, 3])
def test_the_same_number_under_another_name_or_several_times_is_no_other(copies):
    other = parted(quantized(mlp(), feed_for(mlp())), "zero_point", lambda array: np.full(copies, array))
    graph = Model.from_ir(ir.from_proto(other)).graph
    assert unequal_pairs(graph, quantizers(graph)) == []

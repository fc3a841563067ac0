"""Files on integers written as pairs compute the same, and their steps belong to the nodes of the file."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static

from machine import exact_int8
from tensortriage.model.model import Model
from tensortriage.model.quantization.as_pairs import as_pairs, owner_of
from tensortriage.model.quantization.qdq import quantizers
from tensortriage_testing import conv_net, feed_for, mlp

MODELS = {"mlp": lambda: mlp(width=24), "conv_net": lambda: conv_net(blocks=1, channels=8)}
INTEGER = {"QLinearConv", "QLinearMatMul", "QLinearAdd", "QGemm", "MatMulInteger", "ConvInteger"}


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self, feed):
        self._left = iter([feed])

    def get_next(self):
        return next(self._left, None)


def outputs(model, path, feed):
    model.save(path)
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)


def made(folder, name, way):
    """Return a quantized file and its feed."""
    model = MODELS[name]()
    feed = feed_for(model)
    onnx.save(model, folder / "float.onnx")
    if way == "dynamic":
        quantize_dynamic(folder / "float.onnx", folder / "q.onnx")
    else:
        quantize_static(folder / "float.onnx", folder / "q.onnx", Samples(feed), quant_format=QuantFormat[way])
    return Model.load(folder / "q.onnx"), feed


@exact_int8
@pytest.mark.parametrize("name", MODELS)
def test_operators_on_integers_become_pairs_that_compute_the_same(tmp_path, name):
    """Both are by definition: products of dequantized integers, quantized; they may fall on two sides of one step."""
    file, feed = made(tmp_path, name, "QOperator")
    pairs = as_pairs(file)
    assert INTEGER.isdisjoint(node.op_type for node in pairs.graph.nodes)
    assert quantizers(pairs.graph)
    for one, other in zip(
        outputs(file, tmp_path / "a.onnx", feed), outputs(pairs, tmp_path / "b.onnx", feed), strict=True
    ):
        scale = np.abs(one).max()
        np.testing.assert_allclose(other, one, atol=2 / 255 * scale)


@pytest.mark.parametrize("name", MODELS)
def test_dynamic_quantization_leaves_weights_as_pairs_and_activations_as_they_are(tmp_path, name):
    file, feed = made(tmp_path, name, "dynamic")
    pairs = as_pairs(file)
    kinds = {node.op_type for node in pairs.graph.nodes}
    assert INTEGER.isdisjoint(kinds)
    assert "DynamicQuantizeLinear" not in kinds
    assert all(pair.of_weight for pair in quantizers(pairs.graph))
    for one, other in zip(
        outputs(file, tmp_path / "a.onnx", feed), outputs(pairs, tmp_path / "b.onnx", feed), strict=True
    ):
        assert np.sqrt(np.mean((one - other) ** 2)) < 0.05 * np.sqrt(np.mean(one**2))


@pytest.mark.parametrize("way", ["QOperator", "dynamic"])
def test_steps_belong_to_nodes_of_the_file(tmp_path, way):
    file, _ = made(tmp_path, "mlp", way)
    for node in as_pairs(file).graph.nodes:
        assert owner_of(file.graph, node.name) is not None, node.name


def test_a_file_without_such_operators_is_returned_as_it_is():
    model = Model.from_ir(ir.from_proto(mlp()))
    assert as_pairs(model) is model
    assert owner_of(model.graph, "nobody/3") is None

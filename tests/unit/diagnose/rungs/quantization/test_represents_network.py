"""Quantized files without pairs to match: sound ones cost their rounding, and mistakes in them are another model."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

from diagnosing import ask, step
from machine import exact_int8
from tensortriage_testing import encoder, feed_for, mlp, quantized, save_model

pytestmark = pytest.mark.slow

QUESTION = "does the target's file represent"
WAYS = ("QOperator", "dynamic", "8 bits")


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self, feed):
        self._left = iter([feed])

    def get_next(self):
        return next(self._left, None)


def encoder_and(folder, way):
    """Return the file of a small encoder whose mask is -100, and a quantized one as a message."""
    model = encoder(layers=1, width=32, heads=2, tokens=8, batch=2)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.size == 1 and array.dtype == np.float32 and abs(float(array.ravel()[0])) >= 1e3:
            tensor.CopyFrom(numpy_helper.from_array(np.full_like(array, -100.0), tensor.name))
    path, other = save_model(model, folder / "float.onnx"), folder / "other.onnx"
    if way == "QOperator":
        quantize_static(path, other, Samples(feed_for(model)), quant_format=QuantFormat.QOperator)
    elif way == "dynamic":
        quantize_dynamic(path, other)
    else:
        made = MatMulNBitsQuantizer(onnx.load(path), bits=8, block_size=32, is_symmetric=False)
        made.process()
        made.model.save_model_to_file(str(other))
    return path, feed_for(model), onnx.load(other)


def verdict_of(folder, way, plant=None):
    path, feed, other = encoder_and(folder, way)
    if plant:
        plant(other)
    onnx.save(other, folder / "other.onnx")
    return ask(folder, path, feed, "onnxruntime:optimization=none", target_model=folder / "other.onnx")[0]


def rolled(other):
    """Put the rows of one stored matrix elsewhere."""
    weight = next(t for t in other.graph.initializer if t.data_type in (2, 3) and np.prod(t.dims) >= 1024)
    weight.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(weight), 3, axis=0), weight.name))


@pytest.mark.parametrize("way", ["QOperator", pytest.param("dynamic", marks=exact_int8), "8 bits"])
def test_a_sound_file_costs_its_rounding(tmp_path, way):
    verdict = verdict_of(tmp_path, way)
    assert step(verdict, QUESTION).answer.startswith("yes")
    assert verdict.verdict == "rounding", verdict.summary
    assert "quantization explains the error" in verdict.summary


@pytest.mark.lengthy
@pytest.mark.parametrize("way", WAYS)
def test_a_weight_put_elsewhere_is_another_model(tmp_path, way):
    verdict = verdict_of(tmp_path, way, rolled)
    assert step(verdict, QUESTION).answer.startswith("no")
    assert verdict.verdict == "model-changed", verdict.summary


def with_biases_moved(folder, count):
    """Diagnose a quantized network some of whose biases, which are float32, were moved by three times their size."""
    model = mlp(width=48)
    other, moved = quantized(model, feed_for(model)), 0
    for tensor in other.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim == 1 and tensor.name.endswith("bias") and moved < count:
            change = 3.0 * float(array.std()) * np.random.default_rng(moved).standard_normal(array.shape)
            tensor.CopyFrom(numpy_helper.from_array((array + change).astype(np.float32), tensor.name))
            moved += 1
    assert moved == count
    path, file = save_model(model, folder / "float.onnx"), save_model(other, folder / "other.onnx")
    return ask(folder, path, feed_for(model), "onnxruntime:optimization=none", target_model=file)[0]


def test_biases_of_several_layers_may_have_been_corrected_for_the_rounding(tmp_path):
    verdict = with_biases_moved(tmp_path, 3)
    answer = step(verdict, QUESTION).answer
    assert answer.startswith("yes")
    assert "with 3 biases as they were" in answer
    assert verdict.verdict == "rounding", verdict.summary


def test_one_bias_that_is_another_is_a_mistake(tmp_path):
    verdict = with_biases_moved(tmp_path, 1)
    assert step(verdict, QUESTION).answer.startswith("no")
    assert verdict.verdict == "model-changed", verdict.summary

"""Biases as ONNX Runtime's quantizer stores them, made wrong by hand: by another scale, and by steps that lose them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_static

from diagnosing import ask
from models import proto
from tensortriage_testing import save_model

RNG = np.random.default_rng(7)
NUMBERS = {
    "W": (RNG.standard_normal((12, 8)) / 4).ravel(),
    "B": 3 * RNG.standard_normal(8),
    "V": RNG.standard_normal(40) / 4,
}
NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,12] x) => (float[4,5] y) <float[12,8] w = {W}, float[8] b = {B}, float[8,5] v = {V}> {
  [one] a = Gemm(x, w, b)
  [act] r = Relu(a)
  [two] y = MatMul(r, v)
}"""
for name, numbers in NUMBERS.items():
    NET = NET.replace(f"{{{name}}}", "{" + ", ".join(f"{each:.5f}" for each in numbers) + "}")
FEED = {"x": RNG.standard_normal((4, 12)).astype(np.float32)}


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self):
        self._left = iter([FEED])

    def get_next(self):
        return next(self._left, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("biases")
    path = save_model(proto(NET), folder / "float.onnx")
    quantize_static(
        path, folder / "sound.onnx", Samples(), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8
    )
    return path, onnx.load(folder / "sound.onnx")


@pytest.fixture
def verdict_on(files, tmp_path):
    def verdict(**changes):
        path, changed = files[0], onnx.ModelProto()
        changed.CopyFrom(files[1])
        for tensor in changed.graph.initializer:
            if tensor.name in changes:
                array = numpy_helper.to_array(tensor)
                tensor.CopyFrom(numpy_helper.from_array(changes[tensor.name](array).astype(array.dtype), tensor.name))
        other = save_model(changed, tmp_path / "other.onnx")
        return ask(tmp_path, path, FEED, "onnxruntime:optimization=none", target_model=other)[0]

    return verdict


def test_a_sound_file_is_not_accused(verdict_on):
    assert verdict_on().verdict == "rounding"


@pytest.mark.parametrize("factor", [4.0, 0.5])
def test_another_scale_is_named_with_the_right_one_and_mended(verdict_on, factor):
    verdict = verdict_on(b_quantized_scale=lambda array: array * factor)
    assert verdict.verdict == "quantization"
    assert verdict.culprits[0].node.startswith("b_DequantizeLinear")
    assert "is right, as that of its input times that of its weights" in verdict.summary
    assert verdict.remedy is not None
    assert verdict.remedy.error_after < verdict.remedy.error_before / 10


def test_steps_that_lose_the_biases_are_left_out_as_activations_are(verdict_on):
    """Steps of 20 where biases are about 3: all become 0, and with them half of the answer."""
    verdict = verdict_on(b_quantized_scale=lambda array: np.full_like(array, 20.0), b_quantized=np.zeros_like)
    assert verdict.verdict == "quantization"
    assert "without the quantizer at 'b_DequantizeLinear'" in verdict.summary
    assert verdict.remedy is not None
    assert verdict.remedy.error_after < verdict.remedy.error_before / 10

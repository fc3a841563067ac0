"""What is said of files of ONNX Runtime's quantizer whose integers or calibration data were made wrong."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from diagnosing import ask

NETWORK = """<ir_version: 8, opset_import: ["": 17]>
g (float[4,3,16,16] x) => (float[4,6] y) {
    c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
    r = Relu(c)
    d = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r, w2)
    s = Relu(d)
    p = GlobalAveragePool(s)
    f = Flatten(p)
    y = Gemm(f, w3)
}"""
RANDOM = np.random.default_rng(3)
SHAPES = {"w1": (12, 3, 3, 3), "b1": (12,), "w2": (16, 12, 3, 3), "w3": (16, 6)}
WEIGHTS = {name: (RANDOM.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in SHAPES.items()}
FEED = {"x": RANDOM.uniform(-2, 2.2, (4, 3, 16, 16)).astype(np.float32)}


class Samples(CalibrationDataReader):
    def __init__(self, feed):
        self.left = [feed]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.fixture
def answer(tmp_path):
    """Return the verdict on a quantized file, calibrated on some data, after changes of its constants."""

    def asked(data=FEED["x"], **changes):
        model = parser.parse_model(NETWORK)
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in WEIGHTS.items())
        for node in model.graph.node:
            node.name = f"make_{node.output[0]}"
        onnx.save(model, tmp_path / "m.onnx")
        quantize_static(
            tmp_path / "m.onnx", tmp_path / "q.onnx", Samples({"x": data}), quant_format=QuantFormat.QDQ,
            per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        file = onnx.load(tmp_path / "q.onnx")
        tensors = {tensor.name: tensor for tensor in file.graph.initializer}
        for name, change in changes.items():
            was = {each: numpy_helper.to_array(tensors[each]) for each in (name, f"{name[:2]}_scale")}
            array = change(was[name], was[f"{name[:2]}_scale"])
            tensors[name].CopyFrom(numpy_helper.from_array(array.astype(was[name].dtype), name))
        onnx.save(file, tmp_path / "q.onnx")
        target = {"target_model": tmp_path / "q.onnx"}
        return ask(tmp_path, tmp_path / "m.onnx", FEED, "onnxruntime:optimization=none", **target)[0]

    return asked


def down(name):
    shape = [-1] + [1] * (len(SHAPES[name]) - 1)
    return lambda _, scale: np.clip(np.floor(WEIGHTS[name] / scale.reshape(shape)), -128, 127)


def test_a_sound_file_is_told_nothing(answer):
    verdict = answer()
    assert verdict.verdict == "rounding"
    (step,) = [step for step in verdict.steps if step.question == "was a quantizer made wrong?"]
    assert step.answer.startswith("no")


def test_weights_that_are_rounded_down(answer):
    """It was `rounding`: every quantizer fits, and what it costs was not asked why."""
    verdict = answer(w1_quantized=down("w1"), w2_quantized=down("w2"))
    assert verdict.verdict == "quantization"
    first, second = ("'w1_DequantizeLinear'", "'w2_DequantizeLinear'")
    assert f"{first} and DequantizeLinear {second} is rounded down" in verdict.summary
    assert "the error of output 'y' falls from" in verdict.summary


def test_scales_of_other_channels(answer):
    verdict = answer(w2_scale=lambda scale, _: np.roll(scale, 2))
    assert "DequantizeLinear 'w2_DequantizeLinear' has the scales of its channels moved by 2" in verdict.summary


def test_calibration_on_what_the_network_never_gets(answer):
    verdict = answer(data=np.clip(FEED["x"] * 60 + 120, 0, 255).astype(np.float32))
    assert verdict.verdict == "quantization"
    assert "was calibrated on inputs from 0 to 25" in verdict.summary
    assert "pixels from 0 to 255" in verdict.summary

"""What is said of files of ONNX Runtime's quantizer whose integers or calibration data were made wrong."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
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
    assert f"{first} and DequantizeLinear {second} are rounded down" in verdict.summary
    assert "the error of output 'y' falls from" in verdict.summary


def test_scales_of_other_channels(answer):
    verdict = answer(w2_scale=lambda scale, _: np.roll(scale, 2))
    assert "DequantizeLinear 'w2_DequantizeLinear' has the scales of its channels moved by 2" in verdict.summary


def test_calibration_on_what_the_network_never_gets(answer):
    verdict = answer(data=np.clip(FEED["x"] * 60 + 120, 0, 255).astype(np.float32))
    assert verdict.verdict == "quantization"
    assert "was calibrated on inputs from 0 to 25" in verdict.summary
    assert "pixels from 0 to 255" in verdict.summary


BLOCKS = """<ir_version: 10, opset_import: ["": 21]>
g (float[6,48] x) => (float[6,8] y) {
    d = DequantizeLinear<axis=0, block_size=16>(q, s, z)
    a = MatMul(x, d)
    r = Relu(a)
    y = MatMul(r, v)
}"""


def blocks(tmp_path, zero_points):
    """Return the verdict on a weight in blocks of 4 bits, after a change of its zero points."""
    tmp_path.mkdir(exist_ok=True)
    random = np.random.default_rng(5)
    w = (random.standard_normal((48, 32)) + 0.4).astype(np.float32)
    v = random.standard_normal((32, 8)).astype(np.float32)
    real = w.reshape(3, 16, 32)
    low, high = np.minimum(real.min(1), 0), np.maximum(real.max(1), 0)
    scale = ((high - low) / 15).astype(np.float32)
    zero = np.rint(-low / scale)
    whole = np.clip(np.rint(real / scale[:, None]) + zero[:, None], 0, 15).reshape(48, 32)
    constants = {"s": scale, "v": v}
    file = parser.parse_model(BLOCKS)
    for name, array in (("q", whole), ("z", np.clip(zero_points(zero), 0, 15))):
        flat = array.astype(np.uint8).ravel()
        raw = (flat[0::2] | flat[1::2] << 4).tobytes()
        file.graph.initializer.append(helper.make_tensor(name, TensorProto.UINT4, array.shape, raw, raw=True))
    network = parser.parse_model(
        BLOCKS.replace("d = DequantizeLinear<axis=0, block_size=16>(q, s, z)", "").replace("d)", "w)")
    )
    for name, model, arrays in (("m", network, {"w": w, "v": v}), ("q", file, constants)):
        model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in arrays.items())
        for node in model.graph.node:
            node.name = f"make_{node.output[0]}"
        onnx.save(model, tmp_path / f"{name}.onnx")
    feed = {"x": random.uniform(0, 1, (6, 48)).astype(np.float32)}
    target = {"target_model": tmp_path / "q.onnx"}
    return ask(tmp_path, tmp_path / "m.onnx", feed, "onnxruntime:optimization=none", **target)[0]


def test_zero_points_of_blocks_that_are_one_off(tmp_path):
    """It was `model-changed` at the MatMul, without a reason (text-generation-inference#2120)."""
    verdict = blocks(tmp_path, lambda zero: zero + 1)
    assert verdict.verdict == "model-changed"
    assert verdict.summary.startswith(
        "DequantizeLinear 'make_d' has zero points that are 1 too large; with that put ri"
    )
    assert verdict.culprits[0].node in ("make_a", "make_d")
    assert blocks(tmp_path / "sound", lambda zero: zero).verdict == "rounding"

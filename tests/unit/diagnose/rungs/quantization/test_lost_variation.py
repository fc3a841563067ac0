"""What is lost of what varies in an output: expected values are those of the definition on numbers made for it."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from diagnosing import ask
from models import parse
from tensortriage.diagnose.rungs.quantization.lost_variation import channel_axis, lost_variation

RNG = np.random.default_rng(5)
HEAD = '<ir_version: 8, opset_import: ["": 17]> '


def test_a_constant_part_is_no_signal():
    """Noise of 0.5 in channels of deviation 1 is half of what varies, wherever these lie."""
    x = RNG.standard_normal((1, 4, 60, 60))
    right = x + np.array([-20.0, 3.0, 400.0, 0.0]).reshape(1, 4, 1, 1)
    found = right + 0.5 * RNG.standard_normal(right.shape)
    assert lost_variation(right, found, 1) == pytest.approx(0.5, rel=0.02)
    # Along another axis the channels' constants vary too, and hide it.
    assert lost_variation(right, found, -1) < 0.01


def test_channels_weigh_as_their_variance():
    """R2 of each channel is 0 and 1; of deviations 1 and 3 the lost one holds a tenth of the variance."""
    right = np.stack([RNG.standard_normal(20_000), 3 * RNG.standard_normal(20_000)], axis=1)
    found = right.copy()
    found[:, 0] = right[:, 0].mean()
    assert lost_variation(right, found, -1) == pytest.approx(np.sqrt(0.1), rel=0.03)


@pytest.mark.parametrize(
    ("right", "axis"),
    [(np.zeros((2, 3, 4)), 1), (np.zeros((9, 3)), 1), (np.arange(60).reshape(20, 3), 1), (np.zeros((20, 3)), None)],
    ids=["nothing varies", "few samples", "integers", "no axis"],
)
def test_nothing_is_said_where_it_is_not_known(right, axis):
    assert lost_variation(right, right + 1, axis) == 0.0


@pytest.mark.parametrize(
    ("body", "axis"),
    [
        ("c = Conv(x, w) y = Sigmoid(c)", 1),
        ("c = MatMul(x, w) y = Relu(c)", -1),
        ("c = Conv(x, w) y = Transpose<perm=[0,2,3,1]>(c)", None),
        ("y = Relu(x)", None),
    ],
)
def test_the_axis_is_that_of_the_last_op_with_channels(body, axis):
    model = parse(HEAD + f"g (float[1,2,5,5] x, float[2,2,1,1] w) => (float[1,2,5,5] y) {{ {body} }}")
    assert channel_axis(model.graph, "y") == axis


@pytest.mark.slow
@pytest.mark.parametrize("spread", [20000.0, 1.0], ids=["gains of very different size", "gains alike"])
def test_gains_of_a_layer_normalization_with_one_scale(tmp_path, spread):
    """Outputs of -12 hide in their size that rows differ by the small gains alone, which one scale for all makes 0."""
    rng = np.random.default_rng(5)  # of 81 others one keeps a little more than half
    gain = np.geomspace(1, spread, 16).astype(np.float32)
    weight = (rng.standard_normal((16, 5)) / gain[:, None]).astype(np.float32)
    text = (
        HEAD
        + """g (float[1,40,16] x) => (float[1,40,5] y) {
        [ln] n = LayerNormalization<axis=-1>(x, gain, shift) [mm] m = MatMul(n, w) [add] y = Add(m, b) }"""
    )
    file = onnx.parser.parse_model(text)
    arrays = {"gain": gain, "shift": np.zeros(16, np.float32), "w": weight, "b": np.full(5, -12, np.float32)}
    file.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(file, tmp_path / "float.onnx")
    node = file.graph.node[0]
    step = {"s": np.array(gain.max() / 255, np.float32), "z": np.array(0, np.uint8)}
    file.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in step.items())
    pair = [
        onnx.helper.make_node("QuantizeLinear", ["gain", "s", "z"], ["q"], "quantize"),
        onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], "dequantize"),
    ]
    node.input[1] = "d"
    for each in reversed(pair):
        file.graph.node.insert(0, each)
    onnx.save(file, tmp_path / "int8.onnx")
    x = rng.standard_normal((1, 40, 16)).astype(np.float32)
    verdict, _ = ask(tmp_path, tmp_path / "float.onnx", {"x": x}, "onnxruntime", target_model=tmp_path / "int8.onnx")
    if spread == 1.0:
        assert verdict.exit_code == 0, verdict.summary
        return
    assert (verdict.verdict, verdict.exit_code) == ("quantization", 1), verdict.summary
    assert "of what varies within its channels" in verdict.summary
    assert verdict.culprits[0].node == "quantize"

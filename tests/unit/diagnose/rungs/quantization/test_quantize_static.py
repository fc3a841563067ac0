"""Files of ONNX Runtime's quantize_static: BatchNormalizations folded before, Relus taken over by quantizers."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from diagnosing import ask, step
from tensortriage_testing import encoder, feed_for, mlp, save_model

PLAIN = "onnxruntime:optimization=none"
FEED = {"x": np.random.default_rng(1).standard_normal((4, 3, 12, 12)).astype(np.float32)}
QUESTION = "is the target's model a sound"


class Samples(CalibrationDataReader):
    def __init__(self, feed=FEED):
        self.left = [feed]

    def get_next(self):
        return self.left.pop() if self.left else None


def net():
    """Three Conv, BatchNormalization, Relu, one of them grouped, a residual and a classifier."""
    rng = np.random.default_rng(0)
    tensors = {"axes": np.array([2, 3]), "w": rng.standard_normal((8, 5)).astype(np.float32)}
    nodes, value = [], "x"
    for i, (channels, groups) in enumerate([(3, 1), (8, 1), (8, 4)]):
        shape = (8, channels // groups, 3, 3)
        tensors[f"w{i}"] = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        tensors |= {f"{word}{i}": rng.uniform(0.5, 1.5, 8).astype(np.float32) for word in "sv"}
        tensors |= {f"{word}{i}": rng.uniform(-0.5, 0.5, 8).astype(np.float32) for word in "bm"}
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], f"conv{i}", pads=[1] * 4, group=groups))
        nodes.append(
            helper.make_node("BatchNormalization", [f"c{i}", *(f"{word}{i}" for word in "sbmv")], [f"n{i}"], f"norm{i}")
        )
        nodes.append(helper.make_node("Relu", [f"n{i}"], [f"r{i}"], f"relu{i}"))
        value = f"r{i}"
    nodes.append(helper.make_node("Add", ["r1", "r2"], ["a"], "add"))
    nodes.append(helper.make_node("ReduceMean", ["a", "axes"], ["p"], "pool", keepdims=0))
    nodes.append(helper.make_node("MatMul", ["p", "w"], ["y"], "classify"))
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", 1, (4, 3, 12, 12))], [helper.make_tensor_value_info("y", 1, (4, 5))],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def small(folder, plant=None, **options):
    """Return the model quantized as the documentation of ONNX Runtime says: pre-processed, then calibrated.

    ``plant`` changes a weight (name to a function of its array) of what is quantized, not of ``net.onnx``.
    """
    source, other = save_model(net(), folder / "net.onnx"), net()
    for tensor in other.graph.initializer:
        if plant and tensor.name in plant:
            tensor.CopyFrom(numpy_helper.from_array(plant[tensor.name](numpy_helper.to_array(tensor)), tensor.name))
    if plant:
        source = save_model(other, folder / "other.onnx")
    quant_pre_process(str(source), str(folder / "folded.onnx"), skip_symbolic_shape=True)
    assert not any(n.op_type == "BatchNormalization" for n in onnx.load(folder / "folded.onnx").graph.node)
    quantize_static(
        str(folder / "folded.onnx"), str(folder / "int8.onnx"), Samples(), quant_format=QuantFormat.QDQ,
        weight_type=QuantType.QInt8, **options,
    )  # fmt: skip
    return onnx.load(folder / "int8.onnx")


def verdict_of(folder, changed):
    path = save_model(changed, folder / "changed.onnx")
    return ask(folder, folder / "net.onnx", FEED, PLAIN, target_model=path)[0]


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_sound_file_with_folded_norms_is_rounding(tmp_path, per_channel):
    verdict = verdict_of(tmp_path, small(tmp_path, per_channel=per_channel))
    assert verdict.verdict == "rounding", verdict.summary
    assert step(verdict, QUESTION).answer.startswith("yes")


@pytest.mark.lengthy
@pytest.mark.parametrize("factor", [0.1, 100.0])
@pytest.mark.parametrize("place", [1, 2, 4])
def test_a_bad_scale_in_it_is_named(tmp_path, factor, place):
    changed = small(tmp_path)
    node = [n for n in changed.graph.node if n.op_type == "QuantizeLinear"][place]
    tensor = next(t for t in changed.graph.initializer if t.name == node.input[1])
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    verdict = verdict_of(tmp_path, changed)
    assert (verdict.verdict, verdict.culprits[0].node) == ("quantization", node.name), verdict.summary


def test_another_weight_is_not_excused_by_folding(tmp_path):
    changed = small(tmp_path)
    tensor = next(t for t in changed.graph.initializer if t.data_type == onnx.TensorProto.INT8 and len(t.dims) == 4)
    tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), tensor.name))
    assert verdict_of(tmp_path, changed).verdict == "model-changed"


@pytest.mark.lengthy
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weight_type", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("planted", [False, True])
def test_weights_in_seven_bits_on_purpose(tmp_path, per_channel, weight_type, planted):
    """As ``reduce_range`` makes them; a scale four times too large among them is named still."""
    model, feed = mlp(), feed_for(mlp())
    quantize_static(
        str(save_model(model, tmp_path / "net.onnx")), str(tmp_path / "int8.onnx"), Samples(feed),
        activation_type=QuantType.QUInt8, weight_type=weight_type, per_channel=per_channel, reduce_range=True,
    )  # fmt: skip
    changed = onnx.load(tmp_path / "int8.onnx")
    scale = next(t for t in changed.graph.initializer if t.name.endswith("layer.2.weight_scale"))
    if planted:
        scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(4), scale.name))
    path = save_model(changed, tmp_path / "changed.onnx")
    verdict = ask(tmp_path, tmp_path / "net.onnx", feed, PLAIN, target_model=path)[0]
    assert verdict.verdict == ("quantization" if planted else "rounding"), verdict.summary
    if planted:
        assert "layer.2.weight" in verdict.culprits[0].node


def rescaled(weight):
    return weight * np.where(np.arange(8) == 1, 1.05, 1.0).astype(np.float32).reshape(8, 1, 1, 1)


def exchanged(weight):
    return weight[[0, 2, 1, *range(3, 8)]]


@pytest.mark.lengthy
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("change", "words"), [(rescaled, "times the original's"), (exchanged, "holds the original's")])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_weight_changed_before_it_was_quantized(tmp_path, place, change, words, per_channel):
    """A channel 5 % off moves the outputs less than quantization does; exchanged ones fit no scale of a channel."""
    verdict = verdict_of(tmp_path, small(tmp_path, {f"w{place}": change}, per_channel=per_channel))
    if verdict.verdict == "rounding":  # per tensor, a grouped channel whose numbers are small beside the step
        assert (place, change, per_channel) == (2, rescaled, False)
        return
    assert (verdict.verdict, verdict.culprits[0].node) == ("model-changed", f"conv{place}"), verdict.summary
    assert words in verdict.culprits[0].reason


@pytest.mark.lengthy
@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_that_were_rescaled_together_are_the_originals(tmp_path, per_channel):
    """Equalization: a Relu between two Gemms lets a factor through, so that the network is what it was."""
    model, other, feed = mlp(), mlp(), feed_for(mlp())
    first, second = [node for node in model.graph.node if node.op_type == "Gemm"][:2]
    tensors = {tensor.name: tensor for tensor in other.graph.initializer}
    width = tensors[first.input[1]].dims[1]
    factors = np.random.default_rng(3).uniform(0.5, 2.0, width).astype(np.float32)
    shaped = {first.input[1]: factors, first.input[2]: factors, second.input[1]: 1.0 / factors[:, None]}
    for name, factor in shaped.items():
        tensors[name].CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensors[name]) * factor, name))
    save_model(model, tmp_path / "net.onnx")
    quantize_static(
        str(save_model(other, tmp_path / "other.onnx")), str(tmp_path / "int8.onnx"), Samples(feed),
        weight_type=QuantType.QInt8, per_channel=per_channel,
    )  # fmt: skip
    path = save_model(onnx.load(tmp_path / "int8.onnx"), tmp_path / "changed.onnx")
    verdict = ask(tmp_path, tmp_path / "net.onnx", feed, PLAIN, target_model=path)[0]
    assert verdict.verdict == "rounding", verdict.summary


def transformer(folder, feed):
    """Quantize an encoder whose MatMul and Add the pre-processing rewrote to Gemm between two Reshapes."""
    source = save_model(encoder(layers=1), folder / "net.onnx")
    quant_pre_process(str(source), str(folder / "fused.onnx"), skip_symbolic_shape=True)
    assert sum(node.op_type == "Gemm" for node in onnx.load(folder / "fused.onnx").graph.node) > 1
    quantize_static(
        str(folder / "fused.onnx"), str(folder / "int8.onnx"), Samples(feed), quant_format=QuantFormat.QDQ,
        weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "Gemm"],
    )  # fmt: skip
    return onnx.load(folder / "int8.onnx")


@pytest.mark.lengthy
@pytest.mark.parametrize("factor", [1.0, 40.0])
def test_weights_whose_readers_were_rewritten_are_found_by_their_numbers(tmp_path, factor):
    feed = feed_for(encoder(layers=1))
    changed = transformer(tmp_path, feed)
    node = [n for n in changed.graph.node if n.op_type == "QuantizeLinear"][9]
    tensor = next(t for t in changed.graph.initializer if t.name == node.input[1])
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    path = save_model(changed, tmp_path / "changed.onnx")
    verdict = ask(tmp_path, tmp_path / "net.onnx", feed, PLAIN, target_model=path)[0]
    found = [culprit.node for culprit in verdict.culprits]
    assert (verdict.verdict, found) == (("rounding", []) if factor == 1.0 else ("quantization", [node.name]))

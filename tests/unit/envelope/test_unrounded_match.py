"""Files that ONNX Runtime's quantizers made stand for their network; with one mistake they do not."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat, quantize_dynamic, quantize_static

from tensortriage.engines.spec import EngineSpec
from tensortriage.envelope.explanations import UNROUNDED
from tensortriage.envelope.unrounded_match import UnroundedMatch, enough, is_rounded
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab
from tensortriage_testing import feed_for, mlp

MODEL = mlp(width=48)
FEEDS = [feed_for(MODEL, seed=seed) for seed in range(3)]


class Samples:
    """What ONNX Runtime calibrates on."""

    def __init__(self):
        self._left = iter(FEEDS)

    def get_next(self):
        return next(self._left, None)


def made(folder, way):
    """Return the network quantized in some way, as a message."""
    source, target = folder / "model.onnx", folder / f"{way}.onnx"
    onnx.save(MODEL, source)
    if way == "dynamic":
        quantize_dynamic(source, target)
    else:
        quantize_static(source, target, Samples(), quant_format=QuantFormat[way], per_channel=way == "QDQ")
    return onnx.load(target)


def standing_of(message):
    with Lab() as lab:
        feeds = [Feed(f"feed {number}", tensors, Origin.REAL) for number, tensors in enumerate(FEEDS)]
        whole = Model.from_ir(ir.from_proto(MODEL))
        network = [(feed, lab.outputs(EngineSpec("float64"), whole, feed)) for feed in feeds]
        return UnroundedMatch.of(lab.remembering, Model.from_ir(ir.from_proto(message)), network, {})


def weight_of(message):
    """Return the first matrix that is stored in integers."""
    return next(t for t in message.graph.initializer if len(t.dims) == 2 and t.data_type in (2, 3))


@pytest.mark.parametrize("way", ["QDQ", "QOperator", "dynamic"])
def test_a_quantized_file_stands_for_its_network(tmp_path, way):
    standing = standing_of(made(tmp_path, way))
    assert standing.is_same
    figure = max(standing.outputs.values(), key=lambda each: each.cost)
    assert figure.noise > 0.0
    assert 0.0 < figure.cost < 0.1


@pytest.mark.parametrize("way", ["QDQ", "QOperator", "dynamic"])
def test_with_rows_of_a_weight_exchanged_it_does_not(tmp_path, way):
    message = made(tmp_path, way)
    weight = weight_of(message)
    rolled = np.roll(numpy_helper.to_array(weight), 1, axis=0)
    weight.CopyFrom(numpy_helper.from_array(rolled, weight.name))
    assert not standing_of(message).is_same


def test_ranges_that_cut_off_are_part_of_the_cost(tmp_path):
    """Steps a quarter as large cut off most of what is beyond a quarter of the range: it is the same network still."""
    message = made(tmp_path, "QDQ")
    fed = [node for node in message.graph.node if node.op_type == "QuantizeLinear"][1]
    step = next(tensor for tensor in message.graph.initializer if tensor.name == fed.input[1])
    step.CopyFrom(numpy_helper.from_array((numpy_helper.to_array(step) / 4).astype(np.float32), step.name))
    standing = standing_of(message)
    assert standing.is_same
    assert standing.unrounded != UNROUNDED
    assert max(standing.outputs.values(), key=lambda each: each.cost).cutting > 0.1


def test_what_is_rounded_is_known(tmp_path):
    assert not is_rounded(Model.from_ir(ir.from_proto(MODEL)))
    assert is_rounded(Model.from_ir(ir.from_proto(made(tmp_path, "dynamic"))))


def test_small_outputs_take_more_feeds():
    """A thousand elements leave chance 0.8 dB, of 3: `gap_allowance_db`."""
    assert enough([{"y": np.zeros(1000)}])
    assert not enough([{"y": np.zeros(1000), "z": np.zeros(10)}])
    assert enough([{"y": np.zeros(10)}] * 4)
    assert not enough([])


def test_an_output_that_the_file_lacks_or_has_in_another_shape_is_none_of_the_network(tmp_path):
    message = made(tmp_path, "QDQ")
    with Lab() as lab:
        file, feed = Model.from_ir(ir.from_proto(message)), Feed("feed", FEEDS[0], Origin.REAL)
        outputs = lab.outputs(EngineSpec("float64"), Model.from_ir(ir.from_proto(MODEL)), feed)
        for given in ({**outputs, "more": np.zeros(3)}, {name: array[None] for name, array in outputs.items()}):
            assert not UnroundedMatch.of(lab.remembering, file, [(feed, given)], {}).is_same
        assert UnroundedMatch.of(lab.remembering, file, [(feed, outputs)], {}).is_same


def test_results_of_the_file_itself_are_not_the_network_s(tmp_path):
    message = made(tmp_path, "QDQ")
    with Lab() as lab:
        file, feed = Model.from_ir(ir.from_proto(message)), Feed("feed", FEEDS[0], Origin.REAL)
        own = lab.outputs(EngineSpec("float64"), file, feed)
        standing = UnroundedMatch.of(lab.remembering, file, [(feed, own)], {})
    assert not any(each.is_of_network for each in standing.outputs.values())

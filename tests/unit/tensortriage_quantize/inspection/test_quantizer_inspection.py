"""Every pair judged, of a calibrated model and of one whose scales were learned with its weights."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantType, quantize_static

from quantization_aware import scaled, trained
from tensortriage.errors import ModelError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage_quantize.inspection.quantizer_inspection import inspect_quantizers
from tensortriage_testing import conv_net, feed_for, mlp, quantized, save_model

PLANTED = "/layer.1/Relu_output_0"


@pytest.fixture
def feeds():
    model = mlp()
    feed = feed_for(model)
    turned = {name: array[::-1].copy() for name, array in feed.items()}
    return model, [Feed("usual", feed, Origin.REAL), Feed("turned", turned, Origin.REAL)]


def asked(tmp_path, model, feeds, original=None):
    loaded = Model.load(save_model(model, tmp_path / "q.onnx"))
    return inspect_quantizers(
        loaded, feeds, original=None if original is None else Model.load(save_model(original, tmp_path / "f.onnx"))
    )


def test_scales_that_were_learned_fit(tmp_path, feeds):
    model, both = feeds
    small = trained(model, both[0].tensors)
    onnx.checker.check_model(small)
    found = asked(tmp_path, small, both)
    assert {row.kind for row in found.pairs} == {"fits"}
    assert len(found.pairs) == sum(node.op_type == "DequantizeLinear" for node in small.graph.node)
    assert sum(row.weight for row in found.pairs) == 5
    assert found.fixed == found.recalibrate == ()
    alone = np.array([row.alone for row in found.pairs])
    assert (np.diff(alone) <= 0).all()
    # errors of independent roundings add in power
    assert found.error == pytest.approx(np.sqrt(np.square(alone).sum()), rel=0.6)


@pytest.mark.parametrize(
    ("factor", "kind", "share", "words"),
    [(0.1, "scale-too-small", 1.0, "too small"), (60.0, "scale-too-large", 0.0, "too large")],
)
def test_a_scale_that_training_left_wrong(tmp_path, feeds, factor, kind, share, words):
    model, both = feeds
    small = trained(model, both[0].tensors)
    scaled(small, f"{PLANTED}_scale", factor)
    found = asked(tmp_path, small, both)
    first = found.pairs[0]
    assert (first.node, first.value, first.kind) == (f"{PLANTED}_QuantizeLinear", PLANTED, kind)
    assert words in first.words
    assert first.clipping_share == pytest.approx(share, abs=0.05)
    assert found.remove == first.node
    assert found.error_without == first.without < 0.3 * found.error
    assert [row.kind for row in found.pairs[1:]] == ["fits"] * (len(found.pairs) - 1)


def test_the_feed_to_recalibrate_on_is_the_one_whose_numbers_are_cut_off(tmp_path, feeds):
    model, (usual, _) = feeds
    small = trained(model, usual.tensors)
    large = Feed("large", {name: array * np.float32(8.0) for name, array in usual.tensors.items()}, Origin.REAL)
    found = asked(tmp_path, small, [usual, large])
    assert found.recalibrate == ("large",)
    outgrown = {row.value: row for row in found.pairs if row.kind != "fits"}
    assert outgrown["x"].observed_on == "large"
    assert outgrown["x"].observed[1] == pytest.approx(8.0 * float(usual.tensors["x"].max()))
    assert asked(tmp_path, small, [usual]).recalibrate == ()


def test_stored_weights_are_judged_where_the_original_is_known(tmp_path, feeds):
    model, (usual, _) = feeds
    small = quantized(model, usual.tensors)
    scaled(small, weight_scale(small), 0.3)
    without = asked(tmp_path, small, [usual])
    assert len(without.fixed) == 5
    assert not any(row.weight for row in without.pairs)
    known = asked(tmp_path, small, [usual], original=model)
    assert (known.fixed, known.pairs[0].weight, known.pairs[0].kind != "fits") == ((), True, True)
    assert known.remove == known.pairs[0].node


def has(model, name):
    return any(tensor.name == name for tensor in model.graph.initializer)


def weight_scale(model):
    return next(n.input[1] for n in model.graph.node if n.op_type == "DequantizeLinear" and has(model, n.input[0]))


def test_a_model_without_pairs(tmp_path, feeds):
    model, both = feeds
    with pytest.raises(ModelError) as none:
        asked(tmp_path, model, both)
    assert none.value.slug == "quantizers-none"


@pytest.mark.parametrize("kind", [QuantType.QUInt8, QuantType.QInt8])
def test_a_relu_that_lives_in_the_zero_point_is_no_cut_off(tmp_path, kind):
    """A sound file of ONNX Runtime's quantizer, which drops the Relus: told as cut off by 95 %, calibrate again."""
    model = conv_net(blocks=2, channels=8)
    feed = feed_for(model)
    onnx.save(model, tmp_path / "float.onnx")
    once = iter([feed])
    reader = SimpleNamespace(get_next=lambda: next(once, None))
    quantize_static(str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), reader, activation_type=kind)
    small = Model.load(tmp_path / "q.onnx")
    assert not any(node.op_type == "Relu" for node in small.graph.nodes)
    for original in (None, Model.load(tmp_path / "float.onnx")):
        found = inspect_quantizers(small, [Feed("f", feed, Origin.REAL)], original=original)
        assert {row.kind for row in found.pairs} <= {"fits", ""}
        assert found.error < 0.1
        assert found.recalibrate == ()
        assert sum(row.design == "ReLU" for row in found.pairs) >= 2


@pytest.mark.parametrize("larger", [1.4, 2.5, 0.8])
def test_a_range_that_begins_at_zero_accuses_nobody_without_the_float_model(tmp_path, larger):
    """Every Relu went into its quantizer, and samples were larger or smaller than these: no ReLU fits exactly."""
    model = conv_net(blocks=2, channels=8)
    feed = feed_for(model)
    onnx.save(model, tmp_path / "float.onnx")
    once = iter([{name: np.float32(larger) * array for name, array in feed.items()}])
    reader = SimpleNamespace(get_next=lambda: next(once, None))
    quantize_static(str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), reader)
    found = inspect_quantizers(Model.load(tmp_path / "q.onnx"), [Feed("f", feed, Origin.REAL)])
    relus = [row for row in found.pairs if row.design.startswith("ReLU")]
    assert len(relus) >= 2
    assert all((row.clipped or 0.0) < 0.2 for row in relus)  # nothing below 0 counts as cut off
    assert larger < 1.0 or (found.recalibrate, {row.kind for row in relus} <= {"", "fits"}) == ((), True)

"""Floors come from the model and the feed alone, and hold what healthy engines differ by."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.envelope.distances import EvaluatedModel, StoredValues
from tensortriage.envelope.floors import envelope_floors, healthy_in
from tensortriage.envelope.limits import of_rounding
from tensortriage.envelope.reference import disputes, outside_envelope
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.jitter import jitter
from tensortriage.model.mixed_precision.convert_precision import convert
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.values.dtype import Precision
from tensortriage.values.store import MemoryStore
from tensortriage_testing import encoder, feed_for, mlp, save_model

pytestmark = pytest.mark.slow


@pytest.fixture
def lab(tmp_path):
    with Case(tmp_path / "case") as case:
        lab = Lab(case)
        yield lab
        lab.close()


def loaded(proto, tmp_path, name="model.onnx"):
    return Model.load(save_model(proto, tmp_path / name))


def outputs(model, feed, lab, spec=PLAIN):
    return dict(lab.outputs(spec, model, feed))


def floors_in(precision, lab, model, feed, values, judged=None):
    evaluated, healthy = EvaluatedModel(lab, model, feed), healthy_in(model, precision)
    return envelope_floors(evaluated, values, healthy, judged=judged, what="the outputs")


def masked_softmax():
    """Return a graph that adds -1e9 to every score of a row before its Softmax: float32 absorbs the scores."""
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "mask"], ["scores"], name="add"),
            helper.make_node("Softmax", ["scores"], ["y"], axis=-1, name="softmax"),
        ],
        "masked",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16])],
        [numpy_helper.from_array(np.full((1, 16), -1e9, np.float32), "mask")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    "proto", [mlp(seed=1), pytest.param(encoder(seed=2), marks=pytest.mark.lengthy)], ids=["mlp", "encoder"]
)
def test_onnx_runtime_at_every_level_is_within_the_fp32_envelope(proto, lab, tmp_path):
    model, feed = loaded(proto, tmp_path), Feed("feed", feed_for(proto), Origin.REAL)
    for level in ("none", "basic", "extended", "all"):
        found = outputs(model, feed, lab, EngineSpec("onnxruntime", {"optimization": level}))
        judged = StoredValues(level, MemoryStore(found), list(found))
        floors = floors_in(Precision.FP32, lab, model, feed, list(found), judged)
        assert outside_envelope(floors, list(found)) == {}
        assert all(0.0 < floor < 1e-4 for floor in floors.fp32.values())


def test_a_mask_that_absorbs_its_addend_widens_nothing(lab, tmp_path):
    model = loaded(masked_softmax(), tmp_path)
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    feed = Feed("feed", {"x": x}, Origin.REAL)
    floors = floors_in(Precision.FP32, lab, model, feed, ["y"])
    exact = outputs(model, feed, lab, EngineSpec("float64"))["y"]
    rounded = outputs(model, feed, lab)["y"]
    assert error_of(measure(rounded, exact)) > 0.5  # float64 keeps what float32 absorbs: softmax(x), not 1/16
    assert MATCH_FACTOR * floors.fp32["y"] < 1e-5  # and yet the envelope is that of float32


@pytest.mark.lengthy
def test_a_narrow_format_has_the_floor_of_its_rounding(lab, tmp_path):
    proto = encoder(seed=3)
    model, feed = loaded(proto, tmp_path), Feed("feed", feed_for(proto), Origin.REAL)
    names = [spec.name for spec in model.outputs]
    found = {
        precision: floors_in(precision, lab, model, feed, names).target[names[0]]
        for precision in (Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16)
    }
    # fp16 and TF32 keep 10 bits of a fraction and bf16 keeps 7 (IEEE 754, NVIDIA A100 whitepaper)
    assert found[Precision.FP32] < found[Precision.TF32] < found[Precision.BF16]
    assert 4.0 < found[Precision.BF16] / found[Precision.FP16] < 16.0


def test_tf32_costs_nothing_where_no_product_is_near(lab, tmp_path):
    """It shortens the operands of products; what never was one has the floor of fp32."""
    text = (
        "<ir_version: 8, opset_import: ['': 17]> g (float[2,64] x) => (float[2,64] y) { a = Tanh(x)\n y = Mul(a, x) }"
    )
    model = loaded(onnx.parser.parse_model(text.replace("'", '"')), tmp_path)
    feed = Feed("feed", {"x": np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)}, Origin.REAL)
    found = floors_in(Precision.TF32, lab, model, feed, ["a", "y"])
    assert found.target == found.fp32


def weights_changed(proto, change):
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for tensor in changed.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 2 and array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(array)), tensor.name))
            return changed
    raise AssertionError("no weight")


def an_eighth_of_the_rows(weight):
    weight = weight.copy()
    weight[: max(1, len(weight) // 8)] *= 1.25
    return weight


@pytest.mark.parametrize(
    "change", [an_eighth_of_the_rows, lambda w: w * 1.003, lambda w: w * 1.01], ids=["eighth", "0.3 %", "1 %"]
)
def test_values_of_another_model_are_disputed_and_the_first_is_named(change, lab, tmp_path):
    proto = mlp(seed=5)
    model, feed = loaded(proto, tmp_path), Feed("feed", feed_for(proto), Origin.REAL)
    values = [name for node in model.graph.nodes for name in node.outputs]
    other = loaded(weights_changed(proto, change), tmp_path, "other.onnx")
    saved = lab.values(PLAIN, other, feed, values)
    found = disputes(lab, model, feed, values, saved)
    weight = next(t.name for t in proto.graph.initializer if len(t.dims) == 2)
    user = next(node for node in model.graph.nodes if weight in node.inputs)
    assert found[0].value == user.outputs[0]
    assert found[0].error > found[0].limit


def test_values_of_the_same_model_in_float64_are_not_disputed(lab, tmp_path):
    model = loaded(masked_softmax(), tmp_path)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    feed = Feed("feed", {"x": x}, Origin.REAL)
    exact = outputs(model, feed, lab, EngineSpec("float64"))
    assert exact["y"].dtype == np.float64
    assert disputes(lab, model, feed, ["y"], MemoryStore(exact)) == ()


def test_another_shape_is_disputed(lab, tmp_path):
    proto = mlp(seed=5)
    model, feed = loaded(proto, tmp_path), Feed("feed", feed_for(proto), Origin.REAL)
    found = outputs(model, feed, lab)
    name, array = next(iter(found.items()))
    (dispute,) = disputes(lab, model, feed, [name], MemoryStore({name: array[:, :-1]}))
    assert dispute.shape == array[:, :-1].shape


@pytest.mark.parametrize(("divisor", "highest"), [(2.0, 2**20), (3.0, 2**20), (2.0, 2**27)])
def test_whole_numbers_that_are_divided_as_floats_move_nothing(divisor, highest, lab, tmp_path):
    """Exporters write i // 2 as Cast, Div, Floor, Cast: no CPU gives another row of the table for it."""
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("Div", ["f", "divisor"], ["d"]),
            helper.make_node("Floor", ["d"], ["whole"]),
            helper.make_node("Cast", ["whole"], ["k"], to=TensorProto.INT64),
            helper.make_node("Mod", ["k", "rows"], ["row"]),
            helper.make_node("Gather", ["table", "row"], ["y"]),
        ],
        "looked_up",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 8])],
        [
            numpy_helper.from_array(np.float32(divisor), "divisor"),
            numpy_helper.from_array(np.int64(97), "rows"),
            numpy_helper.from_array(rng.standard_normal((97, 8)).astype(np.float32), "table"),
        ],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model, feed = loaded(proto, tmp_path), Feed("feed", {"i": rng.integers(0, highest, 64)}, Origin.REAL)
    floors = floors_in(Precision.FP32, lab, model, feed, ["y"])
    assert floors.fp32["y"] < 1e-6


def test_a_whole_number_on_the_edge_may_fall_to_either_side_in_a_narrow_format(lab, tmp_path):
    """The bucket of distance 16 in T5's attention is floor(log(16 / 8) / log(16) * 8): 2 or, with one rounding more, 1.

    ONNX Runtime drops the casts between two fp16 operators, so its answers to the typed file show the other side.
    """
    text = """<ir_version: 8, opset_import: ["": 16]>
      g (float[40] distance, float[8,4] bias) => (float[40,4] y) <float eighth = {0.125}, float log16 = {2.7725887},
         float eight = {8.0}> {
        near = Mul(distance, eighth)
        logarithm = Log(near)
        share = Div(logarithm, log16)
        whole = Mul(share, eight)
        bucket = Cast<to=7>(whole)
        y = Gather(bias, bucket)
      }"""
    model = loaded(onnx.parser.parse_model(text), tmp_path)
    bias = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    feed = Feed("feed", {"distance": np.arange(8, 48, dtype=np.float32), "bias": bias}, Origin.REAL)
    typed = convert(model, Precision.FP16, specs=value_specs(model))
    right, rounded = outputs(model, feed, lab)["y"], outputs(typed, feed, lab)["y"]
    found = floors_in(Precision.FP16, lab, model, feed, ["y"])
    error = error_of(measure(right, rounded.astype(np.float32)))
    assert 1e-2 < error <= of_rounding(found.target["y"], right.size)
    assert error_of(found.emulated["y"]) < 0.1 * error  # rounding every result alone does not move it


def test_the_largest_number_of_a_mask_stays_finite_when_it_is_jittered(recwarn):
    most = np.finfo(np.float32).max
    moved = jitter({"mask": np.array([most, -most, 1.0] * 16, np.float32)})["mask"]
    assert np.isfinite(moved).all()
    assert len(np.unique(moved[2::3])) == 3  # one unit in the last place up, down, or none
    assert not recwarn.list

"""Expected values are those of the full model in ONNX Runtime without optimizations."""

import numpy as np
import pytest
from onnx import parser

import models
import running
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.cutting.explode import explode

CACHED = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (int64[1, T] t, float[1, 1, 16] q, float[1, 1, 8] k, float[1, 1, 8] v, float[1, 1, P, 8] pk, float[1, 1, P, 8] pv)
      => (float[1, 1, 16] y, float[1, 1, T, 8] ok, float[1, 1, T, 8] ov)
    <int64 one = {1}, int32[1] last = {9}> {
        [shape] s = Shape(t)  [length] n = Gather(s, one)  [narrow] total = Cast <to = 6> (n)
        [attend] y, ok, ov = com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1>
            (q, k, v, pk, pv, last, total)
    }"""
X = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 0.0]], np.float32)


def explode_and_run(model, feed, units=None, *, frozen=True, **options):
    golden, specs = running.record(model, feed)
    shapes = {name: golden[name] for name in model.graph.shape_like if name in golden} if frozen else {}
    exploded = explode(model, units, specs=specs, shape_values=shapes)
    fed = {name: golden[value] for name, value in exploded.feeds.items()}
    return exploded, golden, running.run(exploded.model, fed, **options)


@pytest.mark.parametrize("optimization", ["DISABLE_ALL", "ENABLE_ALL"])
def test_every_node_gets_its_own_golden_inputs(optimization):
    exploded, golden, outputs = explode_and_run(models.branchy(), {"x": X}, optimization=optimization)
    assert dict(exploded.feeds) == {"golden::x": "x", "golden::a": "a", "golden::b": "b", "golden::c": "c"}
    assert set(exploded.outputs) == {"a", "b", "c", "y", "z"} == set(outputs)
    for name, array in outputs.items():
        np.testing.assert_allclose(array, golden[name], rtol=1e-6, err_msg=name)
    assert [node.name for node in exploded.model.graph.nodes] == ["start", "left", "right", "join", "side"]


def test_an_error_does_not_travel():
    model = models.branchy()
    golden, specs = running.record(model, {"x": X})
    exploded = explode(model, specs=specs)
    fed = {name: golden[value] for name, value in exploded.feeds.items()}
    fed["golden::x"] = X + 100
    outputs = running.run(exploded.model, fed)
    assert not np.array_equal(outputs["a"], golden["a"])
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_nodes_of_a_unit_stay_wired_and_hide_what_is_inside():
    exploded, golden, outputs = explode_and_run(models.branchy(), {"x": X}, [["left", "right", "join"], ["side"]])
    assert dict(exploded.feeds) == {"golden::a": "a"}
    assert set(outputs) == {"y", "z"}
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_a_value_used_outside_its_unit_or_by_nobody_is_an_output():
    model = models.parse("""
        g (float[2] x) => (float[2] y) { [a] b = Neg(x) [c] y = Abs(b) [d] e = Exp(b) [dead] z = Sin(e) }""")
    exploded, *_ = explode_and_run(model, {"x": X[0, :2]}, [["a", "c"], ["d", "dead"]])
    assert set(exploded.outputs) == {"b", "y", "z"}


RESHAPES = """
    g (float[N, 6] x, int64[1] n) => (float[K, 3] y, int64[1] m) {
        [shape] s = Shape(x)
        [zero] zero = Constant <value = int64 {0}> ()
        [rows] r = Gather(s, zero)
        [two] two = Constant <value = int64[1] {2}> ()
        [double] d = Mul(r, two)
        [three] three = Constant <value = int64[1] {3}> ()
        [target] t = Concat <axis = 0> (d, three)
        [reshape] y = Reshape(x, t)
        [data] m = Add(n, d)
    }"""


@pytest.mark.parametrize("optimization", ["DISABLE_ALL", "ENABLE_ALL"])
def test_shapes_are_frozen_where_they_decide_shapes_and_fed_where_they_are_data(optimization):
    feed = {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "n": np.array([5])}
    exploded, golden, outputs = explode_and_run(models.parse(RESHAPES), feed, optimization=optimization)
    assert set(exploded.feeds.values()) == {"x", "n", "d"}
    graph = exploded.model.graph
    assert graph.node("reshape").inputs == ("golden::x", "frozen::t")
    assert graph.node("double").inputs == ("frozen::r", "two")
    assert graph.node("data").inputs == ("golden::n", "golden::d")
    assert set(outputs) == {"s", "r", "d", "t", "y", "m"}
    for name, array in outputs.items():
        np.testing.assert_array_equal(array, golden[name], err_msg=name)


def test_the_size_of_a_decoders_cache_is_frozen_too():
    parsed = parser.parse_model(CACHED)
    feed = {"t": np.ones((1, 10), np.int64), "q": np.ones((1, 1, 16), np.float32)}
    feed |= dict.fromkeys(("k", "v"), np.ones((1, 1, 8), np.float32))
    feed |= dict.fromkeys(("pk", "pv"), np.ones((1, 1, 9, 8), np.float32))
    exploded, golden, outputs = explode_and_run(models.of_message(parsed), feed)
    assert exploded.model.graph.node("attend").inputs[6] == "frozen::total"
    assert outputs["ok"].shape == (1, 1, 10, 8)
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_without_golden_shapes_they_are_fed():
    feed = {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "n": np.array([5])}
    exploded, golden, outputs = explode_and_run(models.parse(RESHAPES), feed, frozen=False)
    assert exploded.model.graph.node("reshape").inputs == ("golden::x", "golden::t")
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_nodes_with_bodies_stay_whole_and_are_fed_their_captures():
    feed = {"c": np.array(True), "x": np.array([1, 4], np.float32)}
    exploded, golden, outputs = explode_and_run(models.with_if(), feed)
    assert set(exploded.feeds.values()) == {"c", "x", "a", "r"}
    np.testing.assert_array_equal(outputs["r"], golden["r"])
    _, golden, outputs = explode_and_run(models.with_loop(), {"x": np.array([1, -2], np.float32)})
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_nodes_that_exchange_sequences_stay_together():
    model = models.parse("""
        g (float[4] x) => (float[4] y) {
            [start] a = Neg(x)
            [split] parts = SplitToSequence <axis = 0> (a)
            [more] all = SequenceInsert(parts, x)
            [join] b = ConcatFromSequence <axis = 0> (all)
            [four] four = Constant <value = int64[1] {4}> ()
            [zero] zero = Constant <value = int64[1] {0}> ()
            [end] y = Slice(b, zero, four)
        }""")
    for units in (None, [[node.name] for node in model.graph.nodes]):
        exploded, golden, outputs = explode_and_run(model, {"x": X.ravel()[:4]}, units)
        assert set(exploded.feeds.values()) == {"x", "a", "b"}
        assert set(outputs) == {"a", "b", "y"}
        np.testing.assert_array_equal(outputs["b"], golden["b"])


def test_weights_and_constants_are_shared():
    model = models.mlp()
    exploded, golden, outputs = explode_and_run(model, {"x": np.ones((3, 4), np.float32)})
    for name, value in exploded.model.ir.graph.initializers.items():
        assert value.const_value is model.ir.graph.initializers[name].const_value
    np.testing.assert_array_equal(outputs["y"], golden["y"])


def test_a_node_of_constants_only_keeps_them():
    model = models.parse("""
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { [a] v = Neg(w) [b] y = Add(x, v) }""")
    exploded, golden, outputs = explode_and_run(model, {"x": X[0, :2]})
    assert exploded.model.graph.node("a").inputs == ("w",)
    np.testing.assert_array_equal(outputs["v"], golden["v"])


def test_a_model_without_tensors_to_compare():
    model = models.parse("g (float[2] x) => (seq(float) y) { [split] y = SplitToSequence(x) }")
    with pytest.raises(ModelError) as caught:
        explode(model, specs={})
    assert caught.value.slug == "nothing-to-explode"


@pytest.mark.parametrize(
    ("units", "slug"),
    [
        ([["left"], ["nope"]], "node-unknown"),
        ([["left"], []], "unit-empty"),
        ([["left", "right"], ["right"]], "unit-overlap"),
    ],
)
def test_bad_units(units, slug):
    model = models.branchy()
    _, specs = running.record(model, {"x": X})
    with pytest.raises(UsageError) as caught:
        explode(model, units, specs=specs)
    assert caught.value.slug == slug


def test_only_the_ends_of_a_unit_are_outputs_when_asked():
    model = models.parse("""
        g (float[2] x) => (float[2] y, float[2] c) {
            [a] b = Neg(x) [c] c = Abs(b) [d] y = Exp(c) [e] z = Sin(b) }""")
    _, specs = running.record(model, {"x": X[0, :2]})
    leaving = explode(model, [["a", "c"], ["d"]], specs=specs)
    ends = explode(model, [["a", "c"], ["d"]], specs=specs, ends_only=True)
    assert set(leaving.outputs) == {"b", "c", "y"}  # b is used outside, by e
    assert set(ends.outputs) == {"c", "y"}  # but marking it would part a and c
    whole = explode(model, [["a", "c", "d"]], specs=specs, ends_only=True)
    assert set(whole.outputs) == {"c", "y"}  # an output of the model stays one

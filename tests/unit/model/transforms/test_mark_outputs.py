"""Expected values are those of the unedited model in ONNX Runtime without optimizations, bit for bit."""

import numpy as np
import pytest

import models
import running
from tensortriage.errors import DataError, ModelError, UsageError
from tensortriage.model.transforms.mark_outputs import (
    freeze,
    inject,
    mark_outputs,
    markable,
    needed_for,
    select_outputs,
)
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

X = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 0.0]], np.float32)


def names(values):
    return [value.name for value in values]


def test_markable_are_the_tensors_that_nodes_make():
    model = models.parse("""
        g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
            [c] c = Constant <value = float {1.5}> ()
            [a] a = Add(x, c)
            [s] parts = SplitToSequence <axis = 0> (a)
            [i] same = Identity(parts)
            [n] count = SequenceLength(same)
            [j] b = ConcatFromSequence <axis = 0> (same)
            [y] y = Add(b, w)
        }""")
    assert markable(model) == ("a", "count", "b", "y")


def test_marking_adds_outputs_behind_those_there_are():
    model = models.branchy()
    marked = mark_outputs(model, ["b", "z", "a", "b"])
    assert names(marked.outputs) == ["y", "z", "b", "a"]
    outputs = running.run(marked, {"x": X})
    np.testing.assert_array_equal(outputs["a"], np.abs(X))
    assert names(model.outputs) == ["y", "z"]


def test_selecting_replaces_the_outputs():
    selected = select_outputs(models.branchy(), ["c", "y"])
    assert names(selected.outputs) == ["c", "y"]
    np.testing.assert_array_equal(running.run(selected, {"x": X})["c"], -np.abs(X))


def test_what_an_output_does_not_need_can_be_left_out():
    model = models.branchy()
    pruned = needed_for(model, ["c"])
    assert [node.name for node in pruned.graph.nodes] == ["start", "right"]
    assert pruned.outputs[0].dtype is DType.FLOAT  # found by inference, since the model declares no inner value
    np.testing.assert_array_equal(running.run(pruned, {"x": X})["c"], -np.abs(X))
    assert len(model.graph.nodes) == 5


@pytest.mark.parametrize(
    ("edit", "values", "slug"),
    [
        (mark_outputs, ["nope"], "value-unknown"),
        (mark_outputs, ["x"], "value-not-markable"),
        (select_outputs, [], "outputs-empty"),
        (select_outputs, ["x"], "value-not-markable"),
        (needed_for, ["x"], "value-not-markable"),
    ],
)
def test_values_that_cannot_be_outputs(edit, values, slug):
    with pytest.raises(UsageError) as caught:
        edit(models.branchy(), values)
    assert caught.value.slug == slug


def test_a_frozen_input_is_no_input_any_more():
    frozen = freeze(models.branchy(), {"x": X})
    assert frozen.inputs == ()
    expected = running.run(models.branchy(), {"x": X})
    for name, array in running.run(frozen, {}).items():
        np.testing.assert_array_equal(array, expected[name])


def test_nodes_that_only_served_a_frozen_value_go():
    frozen = freeze(models.branchy(), {"b": X})
    assert names(frozen.graph.nodes) == ["start", "right", "join", "side"]
    np.testing.assert_array_equal(running.run(frozen, {"x": X})["y"], X - np.abs(X))


def test_a_frozen_output_stays_an_output():
    frozen = freeze(models.branchy(), {"y": X})
    assert names(frozen.outputs) == ["y", "z"]
    assert names(frozen.graph.nodes) == ["start", "side"]
    np.testing.assert_array_equal(running.run(frozen, {"x": X})["y"], X)


def test_a_node_with_another_output_in_use_stays():
    model = models.parse("""
        g (float[4] x) => (float[2] y) { [split] a, b = Split <num_outputs = 2> (x) [end] y = Add(a, b) }""")
    frozen = freeze(model, {"a": np.array([10, 20], np.float32)})
    np.testing.assert_array_equal(running.run(frozen, {"x": np.arange(4, dtype=np.float32)})["y"], [12, 23])


def test_frozen_captures_reach_bodies():
    feed = {"c": np.array(True), "x": np.array([1, 4], np.float32)}
    frozen = freeze(models.with_if(), {"a": np.array([3, 5], np.float32)})
    assert names(frozen.graph.nodes) == ["choice", "after"]
    np.testing.assert_array_equal(running.run(frozen, feed)["y"], np.exp(np.array([3, 10], np.float32)))


def test_nodes_that_only_served_a_body_go_with_it():
    frozen = freeze(models.with_if(), {"r": np.array([1, 2], np.float32)})
    assert names(frozen.graph.nodes) == ["after"]
    assert dict(frozen.graph.initializers).keys() == {"r"}


def test_freezing_an_initializer_replaces_it():
    model = models.mlp()
    frozen = freeze(model, {"b2": np.array([1, 2], np.float32)})
    feed = {"x": np.ones((1, 4), np.float32)}
    moved = running.run(frozen, feed)["y"] - running.run(model, feed)["y"]
    np.testing.assert_allclose(moved, np.array([[1, 2]]) - model.graph.weight("b2"), rtol=1e-5)


def test_a_frozen_value_keeps_its_type():
    with pytest.raises(DataError) as caught:
        freeze(models.branchy(), {"x": X.astype(np.float64)})
    assert caught.value.slug == "dtype-mismatch"


def injected(model, values, feed):
    golden, specs = running.record(model, feed)
    edited = inject(model, values, specs=specs)
    idle = {f"inject::{v}": np.zeros((1,) * golden[v].ndim, golden[v].dtype) for v in values}
    idle |= {f"use::{v}": np.array(False) for v in values}
    return edited, golden, {**feed, **idle}


@pytest.mark.parametrize("optimization", ["DISABLE_ALL", "ENABLE_ALL"])
def test_without_use_nothing_changes(optimization):
    model = models.parse("""
        g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
            [zeros] a = Neg(x) [inverse] y = Reciprocal(a) [other] b = Exp(a) [end] z = Add(b, x) }""")
    feed = {"x": np.array([[0, -0.0, 1], [-1, np.inf, np.nan]], np.float32)}
    edited, golden, idle = injected(model, ["x", "a", "b", "z"], feed)
    outputs = running.run(edited, idle, optimization=optimization)
    assert list(outputs) == ["y", "z"]
    # 1 / -0.0 is -inf and 1 / 0.0 is inf: the sign of a zero must get through.
    np.testing.assert_array_equal(np.signbit(outputs["y"]), np.signbit(golden["y"]))
    for name in ("y", "z"):
        np.testing.assert_array_equal(outputs[name].view(np.uint32)[0], golden[name].view(np.uint32)[0])
        np.testing.assert_array_equal(outputs[name], golden[name])


def test_an_injected_value_is_what_everything_downstream_sees():
    edited, golden, idle = injected(models.branchy(), ["a", "b"], {"x": X})
    other = golden["a"] + 1
    outputs = running.run(edited, {**idle, "inject::a": other, "use::a": np.array(True)})
    np.testing.assert_array_equal(outputs["z"], np.sqrt(other))
    np.testing.assert_allclose(outputs["y"], np.exp(other) - other, rtol=1e-6)
    outputs = running.run(edited, {**idle, "inject::b": other, "use::b": np.array(True)})
    np.testing.assert_array_equal(outputs["z"], golden["z"])
    np.testing.assert_array_equal(outputs["y"], other - golden["a"])


def test_injecting_the_golden_value_changes_nothing():
    edited, golden, idle = injected(models.branchy(), ["x", "a", "b", "y"], {"x": X})
    for value in ("x", "a", "b", "y"):
        outputs = running.run(edited, {**idle, f"inject::{value}": golden[value], f"use::{value}": np.array(True)})
        for name, array in outputs.items():
            np.testing.assert_array_equal(array, golden[name])


def test_an_injected_output_shows_under_its_name():
    edited, _, idle = injected(models.branchy(), ["y"], {"x": X})
    outputs = running.run(edited, {**idle, "inject::y": X, "use::y": np.array(True)})
    np.testing.assert_array_equal(outputs["y"], X)
    assert "before::y" in edited.graph.values


def test_bodies_see_injected_captures():
    feed = {"c": np.array(True), "x": np.array([1, 4], np.float32)}
    edited, _, idle = injected(models.with_if(), ["a"], feed)
    outputs = running.run(edited, {**idle, "inject::a": np.array([3, 5], np.float32), "use::a": np.array(True)})
    np.testing.assert_array_equal(outputs["y"], np.exp(np.array([3, 10], np.float32)))


def test_attention_of_fewer_heads_of_keys_is_built_for_injected_values_of_fixed_shapes():
    """ONNX Runtime refuses the MatMul: it gives an Attention of unknown width that of its values, 4, where it is 8."""
    model = models.parse("""<ir_version: 10, opset_import: ["": 23]>
        g (float[1,2,8] q, float[1,2,4] k, float[1,2,4] v, float[8,3] w) => (float[1,2,3] y) {
            [neg] m = Neg(q)
            [keys] n = Neg(k)
            [values] o = Neg(v)
            [attend] a = Attention<q_num_heads = 4, kv_num_heads = 2>(m, n, o)
            [out] y = MatMul(a, w)
        }""")
    rng = np.random.default_rng(0)
    feed = {name: rng.standard_normal(shape).astype(np.float32)
            for name, shape in (("q", (1, 2, 8)), ("k", (1, 2, 4)), ("v", (1, 2, 4)), ("w", (8, 3)))}  # fmt: skip
    inner = {"m": -feed["q"], "n": -feed["k"], "o": -feed["v"]}
    specs = {name: ValueSpec(name, DType.FLOAT, array.shape) for name, array in inner.items()}
    edited = inject(model, inner, specs=specs, fixed=True)
    used = {key: value for name, array in inner.items() for key, value in
            ((f"inject::{name}", array), (f"use::{name}", np.array(name == "m")))}  # fmt: skip
    np.testing.assert_array_equal(running.run(edited, {**feed, **used})["y"], running.run(model, feed)["y"])


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool", "double"])
def test_any_type_can_be_injected(dtype):
    model = models.parse(f"g ({dtype}[2] x) => ({dtype}[2] y) {{ [a] b = Identity(x) [c] y = Identity(b) }}")
    numpy_type = "float64" if dtype == "double" else dtype
    edited, golden, idle = injected(model, ["b"], {"x": np.array([0, 1], numpy_type)})
    np.testing.assert_array_equal(running.run(edited, idle)["y"], golden["y"])
    other = np.array([1, 1], numpy_type)
    np.testing.assert_array_equal(
        running.run(edited, {**idle, "inject::b": other, "use::b": np.array(True)})["y"], other
    )


def test_an_injected_initializer_counts_for_all_its_users():
    model = models.mlp()
    edited, golden, idle = injected(model, ["x"], {"x": np.ones((3, 4), np.float32)})
    edited = inject(edited, ["b2"], specs={})
    feed = {**idle, "inject::b2": model.graph.weight("b2") + 1, "use::b2": np.array(True)}
    np.testing.assert_allclose(running.run(edited, feed)["y"], golden["y"] + 1, rtol=1e-5)


def test_injecting_into_old_models_and_models_without_standard_operators():
    old = models.parse("""
        <ir_version: 3, opset_import: ["": 9]>
        g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { [a] b = Neg(x) [c] y = Add(b, w) }""")
    trees = models.parse("""
        <ir_version: 8, opset_import: ["ai.onnx.ml": 3]>
        g (float[2] x) => (float[2] y) {
            [a] b = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x)
            [c] y = ai.onnx.ml.Scaler <offset = [0.0], scale = [3.0]> (b) }""")
    for model in (old, trees):
        edited, golden, idle = injected(model, ["b"], {"x": np.array([1, 2], np.float32)})
        np.testing.assert_array_equal(running.run(edited, idle)["y"], golden["y"])
        outputs = running.run(edited, {**idle, "inject::b": golden["b"] + 1, "use::b": np.array(True)})
        assert not np.array_equal(outputs["y"], golden["y"])


def test_injecting_twice_into_one_value():
    model = models.branchy()
    _, specs = running.record(model, {"x": X})
    again = inject(inject(model, ["a"], specs=specs), ["b"], specs=specs)
    assert {"inject::a", "inject::b"} <= {spec.name for spec in again.inputs}
    with pytest.raises(UsageError) as caught:
        inject(again, ["a"], specs=specs)
    assert caught.value.slug == "value-injected"


def test_injecting_what_is_not_known():
    with pytest.raises(UsageError) as caught:
        inject(models.branchy(), ["nope"], specs={})
    assert caught.value.slug == "value-unknown"
    foreign = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "foreign": 1]>
        g (float[2] x) => (float[2] y) { [a] b = foreign.Magic(x) [c] y = Abs(b) }""")
    with pytest.raises(ModelError) as caught:
        inject(foreign, ["b"], specs={})
    assert caught.value.slug == "value-type-unknown"


def test_outputs_that_the_file_leaves_untyped_get_their_type():
    """ONNX wants an element type for every output; TensorRT 8.5 refuses a model without."""
    model = models.branchy()
    for node in model.ir.graph:
        for value in node.outputs:
            value.type = value.type if value.is_graph_output() else None
    marked = mark_outputs(model, ["a"])
    assert [(spec.name, spec.dtype) for spec in marked.outputs if spec.name == "a"] == [("a", DType.FLOAT)]

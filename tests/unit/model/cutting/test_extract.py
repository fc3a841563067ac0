"""Expected values are those of the full model in ONNX Runtime without optimizations, bit for bit."""

import numpy as np
import onnx_ir as ir
import pytest

import models
import running
from tensortriage.errors import ModelError, UsageError
from tensortriage.model.cutting.extract import extract
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs

X = np.array([[0.5, -1.5, 2.0], [3.0, -0.25, 0.0]], np.float32)


def names(values):
    return [value.name for value in values]


def assert_cut_equals_full(model, nodes, feed, **options):
    golden, specs = running.record(model, feed)
    cut = extract(model, nodes, specs=specs, **options)
    outputs = running.run(cut, golden)
    assert outputs
    for name, array in outputs.items():
        np.testing.assert_array_equal(array, golden[name], strict=True)
    return cut


def test_values_that_cross_the_border_become_typed_inputs_and_outputs():
    cut = assert_cut_equals_full(models.branchy(), ["left", "right"], {"x": X})
    assert [(spec.name, spec.dtype.label, spec.shape) for spec in cut.inputs] == [("a", "float32", (2, 3))]
    assert names(cut.outputs) == ["b", "c"]
    assert names(cut.graph.nodes) == ["left", "right"]


def test_the_whole_model_extracted_is_the_model():
    model = models.branchy()
    cut = assert_cut_equals_full(model, names(model.graph.nodes), {"x": X})
    assert names(cut.inputs) == ["x"]
    assert names(cut.outputs) == ["y", "z"]
    assert cut.fingerprint == model.fingerprint


def test_chosen_outputs_come_in_the_order_asked_for():
    cut = assert_cut_equals_full(models.branchy(), ["start", "left"], {"x": X}, outputs=["b", "a"])
    assert names(cut.outputs) == ["b", "a"]


def test_weights_are_shared_not_copied():
    model = models.mlp()
    cut = extract(model, ["/layer.1/Gemm"], specs=value_specs(model))
    assert set(cut.ir.graph.initializers) == {"w2", "b2"}
    for name, value in cut.ir.graph.initializers.items():
        assert value.const_value is model.ir.graph.initializers[name].const_value


def test_external_weights_stay_where_they_are(tmp_path):
    model = Model.load(models.with_external_data(tmp_path))
    cut = extract(model, ["matmul"], specs=value_specs(model))
    assert cut.ir.graph.initializers["W"].const_value is model.ir.graph.initializers["W"].const_value


def test_constants_are_pulled_in_and_omitted_operands_stay_omitted():
    model = models.parse("""
        g (float[3] x) => (float[3] y) {
            [start] a = Neg(x)
            [most] high = Constant <value = float {1.5}> ()
            [clip] b = Clip(a, , high)
            [end] y = Abs(b)
        }""")
    cut = assert_cut_equals_full(model, ["clip"], {"x": np.array([-3, 0, 2], np.float32)})
    assert names(cut.inputs) == ["a"]
    assert cut.graph.node("clip").inputs == ("a", "", "high")
    assert sorted(names(cut.graph.nodes)) == ["clip", "most"]


def test_a_constant_asked_for_by_name_is_not_doubled():
    model = models.parse("""
        g (float[3] x) => (float[3] y) {
            [one] c = Constant <value = float {1.5}> ()
            [add] y = Add(x, c)
        }""")
    cut = extract(model, ["one", "add"], specs=value_specs(model))
    assert names(cut.graph.nodes) == ["one", "add"]


def test_of_several_outputs_those_used_outside_come_out():
    model = models.parse("""
        g (float[4] x) => (float[2] y) {
            [split] a, b = Split <num_outputs = 2> (x)
            [inner] c = Neg(a)
            [outer] y = Add(b, c)
        }""")
    cut = assert_cut_equals_full(model, ["split", "inner"], {"x": np.arange(4, dtype=np.float32)})
    assert names(cut.outputs) == ["b", "c"]


def test_captures_of_bodies_become_inputs():
    model = models.with_if()
    for choice in (True, False):
        feed = {"c": np.array(choice), "x": np.array([1, 4], np.float32)}
        cut = assert_cut_equals_full(model, ["choice"], feed)
    assert set(names(cut.inputs)) == {"c", "x", "a"}
    assert set(cut.ir.graph.initializers) == {"w"}


def test_a_loop_is_cut_with_its_body():
    cut = assert_cut_equals_full(models.with_loop(), ["loop"], {"x": np.array([1, -2], np.float32)})
    assert set(names(cut.inputs)) == {"x", "step"}


def test_inputs_follow_the_order_of_the_model():
    model = models.parse("g (float[2] p, float[2] q) => (float[2] y) { [a] u = Neg(q) [b] y = Add(u, p) }")
    assert names(extract(model, ["a", "b"], specs=value_specs(model)).inputs) == ["p", "q"]


def test_functions_in_use_opsets_and_metadata_are_kept():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "mine": 1]>
        g (float[2] x) => (float[2] y) { [call] a = mine.twice(x) [end] y = Neg(a) }
        <domain: "mine", opset_import: ["": 18]> twice (v) => (w) { w = Add(v, v) }
        <domain: "mine", opset_import: ["": 18]> unused (v) => (w) { w = Mul(v, v) }""")
    model.ir.metadata_props["author"] = "somebody"
    cut = assert_cut_equals_full(model, ["call"], {"x": np.array([1, 2], np.float32)})
    assert [name for _, name, _ in cut.ir.functions] == ["twice"]
    assert cut.ir.opset_imports == model.ir.opset_imports
    assert cut.ir.metadata_props["author"] == "somebody"


def test_types_are_inferred_where_nothing_was_recorded():
    model = models.parse("g (float[2] x) => (int64[1] y) { [a] s = Shape(x) [b] t = Neg(s) [c] y = Abs(t) }")
    cut = extract(model, ["c"], specs={})
    assert [(spec.name, spec.dtype.label, spec.shape) for spec in cut.inputs] == [("t", "int64", None)]
    np.testing.assert_array_equal(running.run(cut, {"t": np.array([-2])})["y"], [2])


def test_an_unknown_type_is_an_error_not_a_guess():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "foreign": 1]>
        g (float[2] x) => (float[2] y) { [a] b = foreign.Magic(x) [c] y = Abs(b) }""")
    with pytest.raises(ModelError) as caught:
        extract(model, ["c"], specs={})
    assert caught.value.slug == "value-type-unknown"
    assert "'b'" in caught.value.message


def test_a_node_nobody_uses_gives_its_own_output():
    model = models.parse("g (float[2] x) => (float[2] y) { [a] y = Neg(x) [dead] z = Abs(x) }")
    assert names(extract(model, ["dead"], specs=value_specs(model)).outputs) == ["z"]


def test_old_models_keep_initializers_among_the_inputs():
    model = models.parse("""
        <ir_version: 3, opset_import: ["": 9]>
        g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { [a] b = Neg(x) [c] y = Add(b, w) }""")
    cut = assert_cut_equals_full(model, ["c"], {"x": np.array([1, 2], np.float32)})
    assert names(cut.inputs) == ["b"]
    assert "w" in names(cut.ir.graph.inputs)


def test_the_model_is_not_changed():
    model = models.branchy()
    before = ir.to_proto(model.ir).SerializeToString(deterministic=True)
    extract(model, ["left"], specs=value_specs(model))
    assert ir.to_proto(model.ir).SerializeToString(deterministic=True) == before


@pytest.mark.parametrize(
    ("nodes", "outputs", "slug", "cure"),
    [
        (["lefft"], None, "node-unknown", "'left'"),
        ([], None, "extract-empty", "at least one"),
        (["left"], ["c"], "output-not-made", "triage inspect model"),
    ],
)
def test_bad_requests(nodes, outputs, slug, cure):
    model = models.branchy()
    with pytest.raises(UsageError) as caught:
        extract(model, nodes, specs=value_specs(model), outputs=outputs)
    assert caught.value.slug == slug
    assert cure in caught.value.cure


def test_a_node_inside_a_body_is_refused_with_its_owner():
    with pytest.raises(UsageError) as caught:
        extract(models.with_if(), ["scaled"], specs={})
    assert caught.value.slug == "node-in-body"
    assert "'choice'" in caught.value.cure

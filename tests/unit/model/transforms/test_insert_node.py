import numpy as np
import pytest

import models
import running
from tensortriage.errors import UsageError
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.insert_node import NewNode, insert_node

X = np.array([[1, -2, 3], [0, 5, -6]], np.float32)


def test_what_lay_between_is_replaced():
    result = insert_node(models.branchy(), NewNode(op_type="Neg", inputs=["x"], outputs=["b"], name="mine"))
    assert {node.name for node in result.graph.nodes} == {"start", "mine", "right", "join", "side"}
    found = running.run(result, {"x": X})
    np.testing.assert_array_equal(found["y"], -X - np.abs(X))


def test_a_value_that_is_input_and_output_gets_the_node_behind_it():
    original = models.branchy()
    result = insert_node(original, NewNode(op_type="Neg", inputs=["a"], outputs=["a"]))
    assert result.graph.node("start").outputs == ("a",)
    assert result.graph.node("left").inputs == ("inserted::a",)
    found = running.run(result, {"x": X})
    np.testing.assert_allclose(found["y"], np.exp(-np.abs(X)) + np.abs(X), rtol=1e-6)
    assert len(original.graph.nodes) == len(result.graph.nodes) - 1


def test_the_node_stands_right_behind_what_it_takes_and_its_result_is_named_as_asked():
    result = insert_node(models.branchy(), NewNode(op_type="Neg", inputs=["a"], outputs=["a"], renamed="{value}_new"))
    names = [node.name for node in result.graph.nodes]
    assert names.index("inserted::Neg") == names.index("start") + 1
    assert result.graph.node("left").inputs == ("a_new",)


def test_an_output_of_the_model_keeps_its_name_and_type():
    result = insert_node(models.branchy(), NewNode(op_type="Relu", inputs=["z"], outputs=["z"]))
    assert [spec.name for spec in result.outputs] == ["y", "z"]
    assert result.graph.node("side").outputs == ("before::z",)
    np.testing.assert_array_equal(running.run(result, {"x": X})["z"], np.sqrt(np.abs(X)))


def test_an_input_of_the_model_gets_the_node_behind_it():
    result = insert_node(models.branchy(), NewNode(op_type="Neg", inputs=["x"], outputs=["x"]))
    assert [spec.name for spec in result.inputs] == ["x"]
    assert result.graph.node("start").inputs == ("inserted::x",)


def test_attributes_of_every_kind_arrive():
    new = NewNode(
        op_type="Mystery", domain="own", inputs=["a", "", "b"], outputs=["c"],
        attributes={"i": 1, "f": 0.5, "s": "text", "is": [1, 2], "fs": [0.5], "ss": ["u", "v"]},
    )  # fmt: skip
    result = insert_node(models.branchy(), new)
    (node,) = [node for node in result.graph.nodes if node.op_type == "Mystery"]
    assert node.domain == "own"
    assert node.inputs == ("a", "", "b")
    assert dict(node.attributes) == {
        "i": 1, "f": 0.5, "s": "text", "is": (1, 2), "fs": (0.5,), "ss": ("u", "v"),
    }  # fmt: skip
    assert result.ir.opset_imports["own"] == 1


def test_a_change_of_type_and_rank_is_declared():
    result = insert_node(models.branchy(), NewNode(op_type="Shape", inputs=["a"], outputs=["y"]))
    found = running.run(result, {"x": X})
    np.testing.assert_array_equal(found["y"], [2, 3])
    assert result.outputs[0].dtype.label == "int64"
    assert value_specs(result)["a"].shape is not None


@pytest.mark.parametrize(
    ("new", "slug"),
    [
        ({"op_type": "Neg", "inputs": ["nothing"], "outputs": ["b"]}, "value-unknown"),
        ({"op_type": "Neg", "inputs": ["a"], "outputs": ["x"]}, "value-not-made"),
        ({"op_type": "Neg", "inputs": ["a"], "outputs": ["b"], "name": "join"}, "node-name-taken"),
        ({"op_type": "Neg", "inputs": ["a", "x"], "outputs": ["b"]}, "node-invalid"),
        ({"op_type": "Nge", "inputs": ["a"], "outputs": ["b"]}, "node-invalid"),
        ({"op_type": "Neg", "inputs": ["a"], "outputs": ["b"], "attributes": {"x": 1}}, "node-invalid"),
        ({"op_type": "Neg", "inputs": ["y"], "outputs": ["a"]}, "graph-cycle"),
    ],
)
def test_what_makes_no_sense_is_an_error(new, slug):
    with pytest.raises(UsageError) as caught:
        insert_node(models.branchy(), NewNode(**new))
    assert caught.value.slug == slug
    assert caught.value.cure


def test_an_operator_of_a_plugin_may_be_in_the_standard_domain():
    new = NewNode(op_type="FakeOp", inputs=["x"], outputs=["b"], name="mine", attributes={"alpha": [1.0]})
    result = insert_node(models.branchy(), new)
    assert result.graph.node("mine").op_type == "FakeOp"

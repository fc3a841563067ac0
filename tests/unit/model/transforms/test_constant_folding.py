"""Folding is checked against ONNX Runtime without optimizations on the untouched model."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

import models
import running
from tensortriage.model.model import Model
from tensortriage.model.transforms.constant_folding import FoldOptions, fold_constants

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)


def folded(text, **options):
    model = models.parse(text)
    return model, fold_constants(model, FoldOptions(**options))


def names(model):
    return [node.name for node in model.graph.nodes]


def assert_same(model, other, feed):
    before, after = running.run(model, feed), running.run(other, feed)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, strict=True, err_msg=name)


CHAIN = """
    g (float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}, float[3] v = {4, 5, 6}> {
        [sum] s = Add(w, v) [twice] d = Add(s, s) [use] y = Mul(x, d)
    }"""


def test_what_depends_on_no_input_becomes_an_initializer_of_the_same_name():
    model, result = folded(CHAIN)
    assert names(result) == ["use"]
    np.testing.assert_array_equal(result.graph.weight("d"), np.array([10, 14, 18], np.float32))
    assert set(result.graph.initializers) == {"d"}
    assert_same(model, result, {"x": X})
    assert names(model) == ["sum", "twice", "use"]


def test_a_folded_output_stays_an_output():
    model, result = folded("""
        g (float[2, 3] x) => (float[2, 3] y, float[3] s) <float[3] w = {1, 2, 3}> {
            [sum] s = Add(w, w) [use] y = Mul(x, s)
        }""")
    assert [spec.name for spec in result.outputs] == ["y", "s"]
    assert_same(model, result, {"x": X})


def test_results_beyond_the_limit_are_not_made():
    text = """
        g (float[2, 3] x) => (float[1000, 3] y) <int64[2] shape = {1000, 3}, float[1] one = {1}> {
            [blow] big = Expand(one, shape) [small] two = Add(one, one)
            [sum] first = ReduceSum <keepdims = 0> (x) [shift] t = Add(big, two) [use] y = Add(t, first)
        }"""
    assert names(folded(text)[1]) == ["sum", "use"]
    model, result = folded(text, max_result_bytes=11_999)
    assert names(result) == ["blow", "sum", "shift", "use"]
    assert_same(model, result, {"x": X})


SHAPES = """
    g (float[2, 3] x) => (float[6] y) <int64[1] minus = {-1}, int64[1] zero = {0}> {
        [shape] s = Shape(x) [rows] r = Gather(s, zero) [cols] c = Slice(s, one, two)
        [count] n = Mul(r, c) [use] y = Reshape(x, n)
    }""".replace("int64[1] zero = {0}", "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}")


def test_shapes_are_folded_unless_that_is_switched_off():
    model, result = folded(SHAPES)
    assert names(result) == ["use"]
    assert_same(model, result, {"x": X})
    _, left = folded(SHAPES, shapes=False)
    assert names(left) == names(model)


def test_shapes_that_depend_on_a_dynamic_dimension_are_left_alone():
    text = SHAPES.replace("float[2, 3] x", "float[N, 3] x").replace("float[6] y", "float[M] y")
    model, result = folded(text)
    assert "shape" in names(result)
    for rows in (1, 2):
        assert_same(model, result, {"x": X[:rows]})


def test_an_if_with_a_constant_condition_becomes_its_branch():
    model = models.with_if()
    clone = model.clone().ir
    condition = ir.Value(
        name="c", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]), const_value=ir.tensor(np.array(True))
    )
    old = clone.graph.inputs[0]
    clone.graph.inputs.remove(old)
    clone.graph.register_initializer(condition)
    old.replace_all_uses_with(condition)
    result = fold_constants(Model.from_ir(clone))
    assert [node.op_type for node in result.graph.nodes] == ["Neg", "Mul", "Exp"]
    assert result.graph.node("scaled").outputs == ("r",)
    feed = {"x": np.array([1.0, -2.0], np.float32)}
    np.testing.assert_array_equal(
        running.run(result, feed)["y"], running.run(model, {**feed, "c": np.array(True)})["y"]
    )


def test_bodies_are_folded_and_their_names_may_repeat():
    model, result = folded("""
        g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [choice] y = If (c) <
                then_branch = a () => (float[2] r) { [n] s = Add(w, w) [m] r = Mul(x, s) },
                else_branch = b () => (float[2] r) { [n] s = Mul(w, w) [m] r = Mul(x, s) }
            >
        }""")
    branches = [result.ir.graph.node("choice").attributes[word].as_graph() for word in ("then_branch", "else_branch")]
    assert [[node.name for node in branch] for branch in branches] == [["m"], ["m"]]
    assert [branch.outputs[0].name for branch in branches] == ["r", "r"]
    for c in (True, False):
        assert_same(model, result, {"c": np.array(c), "x": np.array([3.0, 4.0], np.float32)})


def test_random_numbers_and_quantizers_are_left_alone():
    _, result = folded("""
        g (float[2, 3] x) => (float[2, 3] y, float[3] r) <float[3] w = {1, 2, 3}, float s = {0.1}, int8 z = {0}> {
            [q] q = QuantizeLinear(w, s, z) [d] d = DequantizeLinear(q, s, z) [draw] r = Bernoulli(w)
            [use] y = Mul(x, d)
        }""")
    assert names(result) == ["q", "d", "draw", "use"]


def test_nodes_with_several_results_are_folded():
    model, result = folded("""
        g (float[2, 3] x) => (float[2, 3] y) <float[6] w = {1, 2, 3, 4, 5, 6}> {
            [split] a, b = Split <num_outputs = 2> (w) [first] t = Mul(x, a) [second] y = Add(t, b)
        }""")
    assert names(result) == ["first", "second"]
    assert_same(model, result, {"x": X})


def test_a_node_that_cannot_be_computed_keeps_no_other_from_being_folded():
    model, result = folded("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}> {
            [known] s = Add(w, w) [custom] c = own.Mystery(s) [use] y = Mul(x, c)
        }""")
    assert names(result) == ["custom", "use"]
    assert names(model) == ["known", "custom", "use"]


def test_functions_survive_and_are_folded_in_their_own_opset():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2, 3] x) => (float[2, 3] y) { [call] y = own.scaled(x) }
        <domain: "own", opset_import: ["": 18]>
        scaled (a) => (b) { two = Constant <value = float {2}> () four = Mul(two, two) b = Mul(a, four) }""")
    result = fold_constants(model)
    assert len(result.ir.functions) == 1
    assert_same(model, result, {"x": X})


def test_inputs_with_defaults_are_not_constant_unless_the_version_demands_them():
    message = models.proto(CHAIN)
    message.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (3,)))
    assert names(fold_constants(models.of_message(message))) == ["sum", "twice", "use"]
    message.ir_version = 3
    message.graph.input.append(onnx.helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, (3,)))
    result = fold_constants(models.of_message(message))
    assert names(result) == ["use"]
    assert [value.name for value in result.ir.graph.inputs] == ["x", "d"]
    onnx.checker.check_model(ir.to_proto(result.ir))


def test_a_node_that_is_replaced_hands_its_name_on():
    model, result = folded("g (float[2, 3] x) => (float[2, 3] y) { [drop] y = Dropout(x) }")
    assert [(node.name, node.op_type) for node in result.graph.nodes] == [("drop", "Identity")]
    assert_same(model, result, {"x": X})


def test_castlike_keeps_what_it_says_about_overflow():
    message = models.proto("""
        <ir_version: 10, opset_import: ["": 19]>
        g (float[2] x) => (float8e5m2[2] y) { y = CastLike <saturate = 0> (x, t) }""")
    message.graph.initializer.append(onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT8E5M2, [1], [1.0]))
    result = fold_constants(models.of_message(message))
    (node,) = result.graph.nodes
    assert (node.op_type, node.attributes["saturate"]) == ("CastLike", 0)


def test_old_opsets_get_no_new_forms_of_operators():
    message = onnx.helper.make_model(
        onnx.helper.make_graph(
            [
                onnx.helper.make_node("Shape", ["x"], ["s"], name="shape"),
                onnx.helper.make_node("Reshape", ["w", "s"], ["r"], name="reshape"),
                onnx.helper.make_node("Add", ["x", "r"], ["y"], name="use"),
            ],
            "g",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (2, 3))],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (2, 3))],
            [numpy_helper.from_array(np.arange(6, dtype=np.float32), "w")],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 9)],
        ir_version=8,
    )
    result = fold_constants(models.of_message(message))
    assert names(result) == ["use"]
    onnx.checker.check_model(ir.to_proto(result.ir))
    assert_same(models.of_message(message), result, {"x": X})


@pytest.mark.parametrize("path", ["digits_vit.onnx", "digits_cnn.onnx"])
def test_names_and_metadata_of_a_real_model_survive(path):
    from running_cli import EXAMPLES

    model = Model.load(EXAMPLES / path)
    result = fold_constants(model)
    assert set(names(result)) <= set(names(model))
    assert set(result.graph.values) | set(result.graph.initializers) <= (
        set(model.graph.values) | set(model.graph.initializers)
    )
    assert result.ir.metadata_props == model.ir.metadata_props
    assert result.ir.opset_imports == model.ir.opset_imports
    before = {node.name: dict(node.metadata_props) for node in model.ir.graph}
    assert all(dict(node.metadata_props) == before[node.name] for node in result.ir.graph)


RANGE = """
    g (float[2, 3] x) => (int64[n] y, int64[2] z) <int64 zero = {0}, int64 one = {1}, int64[1] w = {2}> {
        [limit] d = Add(w, w)  [count] y = Range(zero, d, one)  [both] z = Concat <axis = 0> (d, w)
    }"""


def test_range_gets_scalars_and_other_users_keep_the_shape():
    """ONNX Runtime refuses a Range whose operand is known to have rank 1, as in the body of ONNX's AffineGrid."""
    text = RANGE.replace(
        "[count] y = Range(zero, d, one)", "[size] s = Size(x)  e = Mul(d, s)  [count] y = Range(zero, e, one)"
    )
    result = fold_constants(models.parse(text), FoldOptions())
    found = running.run(result, {"x": X})
    np.testing.assert_array_equal(found["y"], np.arange(24))  # 2 + 2, times the six elements of x
    np.testing.assert_array_equal(found["z"], [4, 2])


def test_a_range_that_was_wrong_before_is_not_repaired():
    model = models.parse(
        "g (float[2] x) => (int64[n] y) <int64 z = {0}, int64 o = {1}, int64[1] d = {3}> { y = Range(z, d, o) }"
    )
    graph = fold_constants(model, FoldOptions()).graph
    assert not any(name.startswith("scalar::") for name in graph.initializers)

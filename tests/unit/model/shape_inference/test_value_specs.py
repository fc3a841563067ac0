import numpy as np
import onnx

import models
from tensortriage.model.model import Model
from tensortriage.model.shape_inference import inferred_specs as module
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.model.shape_inference.value_specs import typing_specs, value_specs
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def test_types_are_inferred_through_the_graph():
    specs = value_specs(models.mlp())
    assert specs["h"] == ValueSpec("h", DType.FLOAT, ("N", 8))
    assert specs["w1"] == ValueSpec("w1", DType.FLOAT, (4, 8))
    assert set(specs) == {"x", "w1", "b1", "w2", "b2", "h", "r", "y"}


def test_types_that_schemas_give_are_not_inferred(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "infer_shapes", lambda proto: asked.append(proto))
    for model in (models.mlp(), models.with_if(), models.with_loop()):
        assert not typing_specs(model)
        types = infer_types(model.ir, {})
        assert all(value in types for node in model.ir.graph for value in node.outputs)
    assert not asked


def test_a_type_that_schemas_leave_open_is_inferred():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float16[2] y) { a = own.F(x)  y = Cast <to = 10> (a) }
        <opset_import: ["": 18], domain: "own"> F (u) => (v) { v = Neg(u) }""")
    assert typing_specs(model)["a"].dtype is DType.FLOAT


def test_recorded_specs_win():
    recorded = {"h": ValueSpec("h", DType.FLOAT16, (7, 8)), "other": ValueSpec("other", None, None)}
    specs = value_specs(models.mlp(), recorded)
    assert {name: specs[name] for name in recorded} == recorded
    assert specs["r"].shape == ("N", 8)


def test_shapes_computed_in_the_graph_are_followed():
    specs = value_specs(
        models.parse("""
        g (float[2, 3, 4] x) => (float[A, B] y) <int64[1] minus = {-1}, int64[1] zero = {0}> {
            s = Shape(x)
            first = Gather(s, zero)
            shape = Concat <axis = 0> (first, minus)
            y = Reshape(x, shape)
        }""")
    )
    assert specs["y"].shape == (2, 12)


def test_a_declared_number_beats_an_inferred_symbol_and_the_other_way_round():
    model = models.parse("g (float[N, 4] x) => (float[3, M] y) { t = Neg(x)  y = Neg(t) }")
    assert value_specs(model)["y"].shape == (3, 4)


def test_large_weights_are_not_read(tmp_path):
    path = models.with_external_data(tmp_path, columns=2048)
    model = Model.load(path)
    (tmp_path / "weights.bin").unlink()
    assert value_specs(model)["y"].shape == ("N", 2048)


def test_where_inference_fails_the_declared_types_remain():
    model = models.parse(
        "g (float[2, 3] x, float[5, 7] z) => (float[N] y) <float[2, 3] a> { a = Neg(x)  y = MatMul(a, z) }"
    )
    specs = value_specs(model)
    assert specs["a"].shape == (2, 3)
    assert specs["y"].shape == ("N",)


def test_unknown_operators_leave_their_results_open():
    specs = value_specs(
        models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float[2] y) { a = own.F(x)  y = own.F(a) }""")
    )
    assert specs["a"] == ValueSpec("a", None, None)


def test_functions_are_followed():
    specs = value_specs(
        models.parse("""
        <ir_version: 10, opset_import: ["": 18, "own": 1]>
        g (float[2] x) => (float16[2] y) { a = own.F(x)  y = Cast <to = 10> (a) }
        <opset_import: ["": 18], domain: "own"> F (u) => (v) { v = Neg(u) }""")
    )
    assert specs["a"] == ValueSpec("a", DType.FLOAT, (2,))


def test_initializers_that_are_inputs_keep_their_type(tmp_path):
    message = models.proto("g (float[2] x, float[2, 5000] w) => (float[5000] y) { y = MatMul(x, w) }")
    message.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((2, 5000), np.float32), "w"))
    specs = value_specs(models.of_message(message))
    assert specs["w"].shape == (2, 5000)
    assert specs["y"].shape == (5000,)


def test_a_crash_is_no_result():
    model = models.parse("""
        g (float[2, 3, 5] x, float[5] w, float[5] b) => (float[A, B] z) {
            y, mean, deviation = LayerNormalization <axis = 9223372036854775807> (x, w, b)
            z = Neg(mean)
        }""")
    assert value_specs(model)["z"].shape == ("A", "B")

"""A raised model must compute the same, bit for bit, under the same names."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
import running
from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.opset_upgrade import require_opset, retyped
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

OLD = """
    <ir_version: 4, opset_import: ["": 9]>
    g (float[2, 1] x) => (float[1, 2] y) <float[2] w = {0.1, 0.2}> {
        [flat] f = Squeeze <axes = [1]> (x) [mul] m = Mul(f, w) [back] y = Unsqueeze <axes = [0]> (m) }"""


def test_high_enough_is_left_alone():
    model = models.branchy()
    assert require_opset(model, 18) is model


def test_raising_keeps_names_and_numbers():
    model = models.parse(OLD)
    raised = require_opset(model, 19)
    assert raised.opset == 19
    assert [n.name for n in raised.graph.nodes if n.op_type != "Constant"] == ["flat", "mul", "back"]
    assert {"f", "m", "y"} <= set(raised.graph.values)
    x = np.array([[3], [7]], np.float32)
    np.testing.assert_array_equal(running.run(raised, {"x": x})["y"], running.run(model, {"x": x})["y"])
    assert model.opset == 9


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("opset", "op_type"), [(9, "Upsample"), (10, "Resize")])
def test_what_was_resampled_before_opset_11_keeps_its_coordinates(opset, op_type, mode):
    """ONNX's converter leaves those out, and the defaults are others since: 0.4 of the signal away here."""
    model = models.parse(f"""<ir_version: 4, opset_import: ["": {opset}]>
        g (float[1, 1, 3, 4] x) => (float[1, 1, 6, 10] y) <float[4] scales = {{1, 1, 2, 2.5}}> {{
            [up] y = {op_type} <mode = "{mode}"> (x, scales) }}""")
    x = np.random.default_rng(0).standard_normal((1, 1, 3, 4)).astype(np.float32)
    raised = require_opset(model, 13)
    np.testing.assert_allclose(running.run(raised, {"x": x})["y"], running.run(model, {"x": x})["y"], atol=1e-6)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_large_weights_are_shared_and_no_inputs(ir_version):
    weights = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32), "w")
    message = models.proto(f"""
        <ir_version: {ir_version}, opset_import: ["": 9]>
        g (float[1, 40] x) => (float[1, 40] y) {{ [mm] y = MatMul(x, w) }}""")
    message.graph.initializer.append(weights)
    if ir_version == 3:  # which demands that initializers are inputs too
        message.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, (40, 40)))
    model = Model.from_ir(ir.from_proto(message))
    raised = require_opset(model, 13)
    assert [spec.name for spec in raised.inputs] == ["x"]
    assert raised.ir.graph.initializers["w"].const_value is model.ir.graph.initializers["w"].const_value
    x = np.ones((1, 40), np.float32)
    np.testing.assert_array_equal(running.run(raised, {"x": x})["y"], running.run(model, {"x": x})["y"])


def test_initializers_of_an_old_model_need_not_be_inputs():
    weights = onnx.numpy_helper.from_array(np.ones((40, 40), np.float32), "w")
    message = models.proto("""
        <ir_version: 3, opset_import: ["": 9]>
        g (float[1, 40] x) => (float[1, 40] y) { [mm] y = MatMul(x, w) }""")
    message.graph.initializer.append(weights)  # which IR version 3 forbids, and every engine accepts
    raised = require_opset(Model.from_ir(ir.from_proto(message)), 13)
    assert [spec.name for spec in raised.inputs] == ["x"]
    np.testing.assert_array_equal(running.run(raised, {"x": np.ones((1, 40), np.float32)})["y"], np.full((1, 40), 40))


def test_the_mask_of_dropout_changes_its_type_with_the_opset():
    model = models.parse("""
        <ir_version: 8, opset_import: ["": 9]>
        g (float[2] x) => (float[2] y) { y, mask = Dropout(x) }""")
    specs = value_specs(model, {"mask": ValueSpec("mask", DType.FLOAT, (2,))})
    assert retyped(model, specs)["mask"].dtype is DType.FLOAT
    raised = retyped(require_opset(model, 13), specs)
    assert (raised["mask"].dtype, raised["x"].dtype) == (DType.BOOL, DType.FLOAT)


def test_a_model_without_standard_operators_gets_an_opset():
    model = models.parse("""
        <ir_version: 8, opset_import: ["ai.onnx.ml": 3]>
        g (float[2] x) => (float[2] y) { y = ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0]> (x) }""")
    assert require_opset(model, 13).opset >= 13


def test_scan_of_opset_8_is_refused_because_it_means_something_else():
    model = models.parse("""
        <ir_version: 3, opset_import: ["": 8]>
        g (float[1, 3, 2] x, float[1, 2] s) => (float[1, 2] y, float[1, 3, 2] z) {
            y, z = Scan <num_scan_inputs = 1, body = b (float[2] state, float[2] slice) => (next, out) {
                next = Add(state, slice) out = Neg(slice) }> ( , s, x) }""")
    with pytest.raises(ModelError) as caught:
        require_opset(model, 13)
    assert caught.value.slug == "opset-too-old"


def test_what_cannot_be_raised_is_refused():
    model = models.parse("""
        <ir_version: 8, opset_import: ["": 9, "mine": 1]>
        g (float[2] x) => (float[2] y) { y = Upsample <height_scale = 1.0, width_scale = 2.0> (x) }""")
    with pytest.raises(ModelError) as caught:
        require_opset(model, 19)
    assert caught.value.slug == "opset-too-old"
    assert "opset 19" in caught.value.cure


FUNCTION = """
    <ir_version: 8, opset_import: ["": 15, "own": 1], metadata_props: ["k": "v"]>
    g (float[N, 3] x) => (float[N, 3] y) <float[N, 3] a> { [first] a = Neg(x) [call] y = own.f(a) }
    <domain: "own", opset_import: ["": 15]> f (a) => (b) { b = BODY }"""


def test_functions_metadata_and_declared_shapes_survive():
    model = models.parse(FUNCTION.replace("BODY", "Sqrt(a)"))
    model.ir.graph.node("first").metadata_props["made by"] = "somebody"
    raised = require_opset(model, 21)
    assert [node.op_type for node in raised.graph.nodes] == ["Neg", "f"]
    assert raised.ir.graph.node("first").metadata_props == {"made by": "somebody"}
    assert [str(d) for d in raised.ir.graph.node("first").outputs[0].shape] == ["N", "3"]
    x = np.array([[-1, -4, -9]], np.float32)
    np.testing.assert_array_equal(running.run(raised, {"x": x})["y"], np.sqrt(-x))


def test_functions_whose_operators_changed_are_inlined():
    model = models.parse(FUNCTION.replace("BODY", "ReduceMax <axes = [0]> (a)"))
    raised = require_opset(model, 18)
    assert not raised.ir.functions
    x = np.array([[-1, -4, -9], [-2, -3, -10]], np.float32)
    np.testing.assert_array_equal(running.run(raised, {"x": x})["y"], [[2, 4, 10]])

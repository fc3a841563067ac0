import gc
import os
import weakref

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.errors import ModelError
from tensortriage.model.model import Model
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec


def test_inputs_and_outputs_are_specs():
    model = models.mlp()
    assert model.inputs == (ValueSpec("x", DType.FLOAT, ("N", 4)),)
    assert model.outputs == (ValueSpec("y", DType.FLOAT, ("N", 2)),)
    assert model.opset == 18
    assert model.parameter_count == 4 * 8 + 8 + 8 * 2 + 2


def test_an_input_with_an_initializer_need_not_be_fed(tmp_path):
    message = models.proto("g (float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }")
    message.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([2, 3]), "w"))
    message.ir_version = 3
    model = Model.load(models.write(tmp_path / "m.onnx", message))
    assert [spec.name for spec in model.inputs] == ["x"]
    np.testing.assert_array_equal(model.graph.weight("w"), [2, 3])
    saved = onnx.load(model.save(tmp_path / "saved.onnx"))
    assert [value.name for value in saved.graph.input] == ["x", "w"]
    assert saved.ir_version == 3


def test_outputs_that_are_no_tensors_have_no_dtype():
    model = models.parse("g (float[2] x) => (seq(float[2]) s) { s = SequenceConstruct(x) }")
    assert model.outputs == (ValueSpec("s", None, None),)


def test_a_missing_default_opset_counts_as_zero():
    model = models.parse('<ir_version: 10, opset_import: ["own": 3]> g (float[1] x) => (float[1] y) { y = own.F(x) }')
    assert model.opset == 0


def test_a_clone_can_be_edited_and_the_original_is_as_before():
    model = models.branchy()
    fingerprint = model.fingerprint
    edited = model.clone().ir
    next(iter(edited.graph)).name = "renamed"
    edited.graph.outputs.pop()
    assert Model.from_ir(edited).graph.nodes[0].name == "renamed"
    assert [node.name for node in model.clone().graph.nodes] == ["start", "left", "right", "join", "side"]
    assert model.clone().fingerprint == fingerprint


def test_a_clone_shares_the_weights():
    model = models.mlp()
    for name, value in model.clone().ir.graph.initializers.items():
        assert value.const_value is model.ir.graph.initializers[name].const_value


def test_from_ir_sorts_and_names():
    message = models.proto("g (float[1] x) => (float[1] y) { a = Neg(x)  y = Exp(a) }")
    message.graph.node.reverse()
    model = Model.from_ir(ir.from_proto(message))
    assert [(node.op_type, node.name) for node in model.graph.nodes] == [("Neg", "Neg_0"), ("Exp", "Exp_1")]


def test_check_accepts_a_valid_model_without_reading_its_weights(tmp_path):
    path = models.with_external_data(tmp_path, columns=512)
    model = Model.load(path)
    (tmp_path / "weights.bin").unlink()
    model.check()


def test_check_reports_what_onnx_complains_of():
    model = models.parse("g (float[1] x) => (float[1] y) { [first] y = Frobnicate(x) }")
    with pytest.raises(ModelError) as caught:
        model.check()
    assert caught.value.slug == "model-invalid"
    assert "Frobnicate" in caught.value.message
    assert "\n" not in caught.value.message


def test_the_model_of_a_file_is_the_one_that_is_in_use_unless_the_file_has_changed(tmp_path):
    path = models.write(tmp_path / "m.onnx", models.proto("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    model = Model.load(path)
    assert Model.of_file(path) is model
    assert Model.of_file(str(path)) is model
    assert Model.load(path) is not model  # who loads may have it alone
    models.write(path, models.proto("g (float[2] x) => (float[2] y) { y = Abs(x) }"))
    os.utime(path, ns=(1, 1))
    assert [node.op_type for node in Model.of_file(path).graph.nodes] == ["Abs"]
    kept = weakref.ref(model)
    del model
    gc.collect()
    assert kept() is None


def test_a_model_that_is_not_its_file_is_not_taken_for_it(tmp_path):
    message = models.proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    path = models.write(tmp_path / "m.onnx", message)
    without = Model.load(path, ignore_external_data=True)
    assert Model.of_file(path) is not without
    with pytest.raises(ModelError):
        Model.of_file(tmp_path / "none.onnx")

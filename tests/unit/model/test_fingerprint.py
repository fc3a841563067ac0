import numpy as np
import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.model.model import ExternalData, Model


def changed(change):
    message = onnx.ModelProto()
    message.CopyFrom(ir.to_proto(models.mlp().ir))
    change(message)
    return models.of_message(message).fingerprint


def replace(field, index, **values):
    def change(message):
        for key, value in values.items():
            setattr(getattr(message.graph, field)[index], key, value)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.zeros((4, 8), np.float32), "w1")),
        lambda m: m.graph.node[1].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, f=1),
        lambda m: m.graph.output.append(onnx.ValueInfoProto(name="h")),
        lambda m: m.opset_import[0].__setattr__("version", 17),
        replace("node", 1, op_type="Exp"),
        replace("node", 1, name="renamed"),
    ],
)
def test_what_changes_the_computation_changes_the_fingerprint(change):
    assert changed(change) != models.mlp().fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setattr__("doc_string", "other"),
        lambda m: m.__setattr__("producer_name", "other"),
        lambda m: m.metadata_props.add(key="k", value="v"),
        lambda m: m.graph.node[0].metadata_props.add(key="k", value="v"),
        lambda m: m.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, ["N", 8])),
    ],
)
def test_what_does_not_change_it_does_not(change):
    assert changed(change) == models.mlp().fingerprint


def test_the_order_of_attributes_does_not_matter():
    def with_attributes(text):
        return models.parse(f"g (float[1, 1, 4] x) => (float[1, 1, 2] y) {{ y = MaxPool <{text}> (x) }}").fingerprint

    one, other = "kernel_shape = [2], strides = [2]", "strides = [2], kernel_shape = [2]"
    assert with_attributes(one) == with_attributes(other) != with_attributes("kernel_shape = [3], strides = [2]")


def test_it_does_not_matter_how_the_weights_are_stored(tmp_path):
    def typed(message):
        tensor = message.graph.initializer[0]
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.helper.make_tensor("w1", 1, array.shape, array.ravel()))

    model = models.mlp()
    assert changed(typed) == model.fingerprint
    saved = model.save(tmp_path / "m.onnx", external_data=ExternalData.ALWAYS)
    assert Model.load(saved).fingerprint == model.fingerprint


def test_weights_in_bodies_and_functions_count():
    def body(number):
        return models.parse(f"""
            g (bool c, float[1] x) => (float[1] y) {{
                y = If (c) <
                    then_branch = t () => (float[1] a) <float[1] w = {{{number}}}> {{ a = Add(x, w) }},
                    else_branch = e () => (float[1] b) {{ b = Exp(x) }}
                >
            }}""").fingerprint

    def function(number):
        return models.parse(f"""
            <ir_version: 10, opset_import: ["": 18, "own": 1]>
            g (float[1] x) => (float[1] y) {{ y = own.F(x) }}
            <opset_import: ["": 18], domain: "own"> F (u) => (v) {{
                w = Constant <value = float[1] {{{number}}}> ()
                v = Add(u, w)
            }}""").fingerprint

    assert body(1) == body(1) != body(2)
    assert function(1) == function(1) != function(2)

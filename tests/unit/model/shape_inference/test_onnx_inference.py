"""The hostile models here were found by damaging the operator tests of onnx 1.23 at random."""

import time

import onnx

import models
from tensortriage.model.shape_inference.onnx_inference import infer_shapes
from tensortriage.model.shape_inference.value_specs import value_specs


def test_types_are_inferred():
    message = models.proto("g (float[2, 3] x) => (float[A, B] y) { t = Transpose(x)  y = Neg(t) }")
    (info,) = onnx.ModelProto.FromString(infer_shapes(message.SerializeToString())).graph.value_info
    assert [dim.dim_value for dim in info.type.tensor_type.shape.dim] == [3, 2]


def test_a_crash_is_no_result():
    model = models.parse("""
        g (float[2, 3, 5] x, float[5] w, float[5] b) => (float[A, B] z) {
            y, mean, deviation = LayerNormalization <axis = 9223372036854775807> (x, w, b)
            z = Neg(mean)
        }""")
    assert value_specs(model)["z"].shape == ("A", "B")


def test_a_hang_is_no_result():
    message = models.proto("g (float[2, 2] x) => (float[A] y) { t = Einsum (x)  y = Neg(t) }")
    message.graph.node[0].attribute.add(name="equation", type=onnx.AttributeProto.STRING, s=b"...i\xc0 ->...i")
    started = time.monotonic()
    assert infer_shapes(message.SerializeToString(), limit_seconds=1.0) is None
    assert time.monotonic() - started < 8


def test_what_is_no_model_is_no_result():
    assert infer_shapes(b"nonsense") is None

import time

import onnx

import models
from tensortriage.model.shape_inference.onnx_inference import infer_shapes


def test_types_are_inferred():
    message = models.proto("g (float[2, 3] x) => (float[A, B] y) { t = Transpose(x)  y = Neg(t) }")
    (info,) = onnx.ModelProto.FromString(infer_shapes(message.SerializeToString())).graph.value_info
    assert [dim.dim_value for dim in info.type.tensor_type.shape.dim] == [3, 2]


def test_a_hang_is_no_result():
    message = models.proto("g (float[2, 2] x) => (float[A] y) { t = Einsum (x)  y = Neg(t) }")
    message.graph.node[0].attribute.add(name="equation", type=onnx.AttributeProto.STRING, s=b"...i\xc0 ->...i")
    started = time.monotonic()
    assert infer_shapes(message.SerializeToString(), limit_seconds=1.0) is None
    assert time.monotonic() - started < 8


def test_what_is_no_model_is_no_result():
    assert infer_shapes(b"nonsense") is None

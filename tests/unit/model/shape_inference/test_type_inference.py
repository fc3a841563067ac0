"""Expected types follow from the operator pages of onnx.ai."""

import onnx
import onnx_ir as ir
import pytest

import models
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.type_inference import infer_types
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec
from tensortriage_testing import models as networks


def types(model, specs=None):
    return {value.name: kind for value, kind in infer_types(model.ir, specs or {}).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r = Neg(x)", "float16"),
        ("r = Greater(x, x)", "bool"),
        ("r = Shape(x)", "int64"),
        ("r = Cast <to = 16> (x)", "bfloat16"),
        ("r = CastLike(x, i)", "int32"),
        ("r = Gather(i, i)", "int32"),
        ("r = Constant <value_float = 2.0> ()", "float32"),
        ("r = Constant <value_ints = [1, 2]> ()", "int64"),
        ("s = Shape(x) r = ConstantOfShape(s)", "float32"),
        ("s = Shape(x) r = ConstantOfShape <value = int8[1] {3}> (s)", "int8"),
        ("r = RandomNormal <shape = [2]> ()", "float32"),
        ("r = RandomNormalLike(x)", "float16"),
        ("r = RandomNormalLike <dtype = 11> (x)", "float64"),
        ("r = EyeLike(i)", "int32"),
        ("r, b = Dropout(x)", "float16"),
        ("t, r = TopK(x, i)", "int64"),
        ("t, r = Dropout(x)", "bool"),
        ("f = Cast <to = 1> (x) q = QuantizeLinear(f, f) r = DequantizeLinear(q, f)", "float32"),
        ("f = Cast <to = 1> (x) r = QuantizeLinear(f, f)", "uint8"),
        ("p = SplitToSequence(x) r = ConcatFromSequence <axis = 0> (p)", "float16"),
        ("p = SequenceConstruct(i, i) n = SequenceLength(p) r = SequenceAt(p, n)", "int32"),
        ("p = SequenceEmpty <dtype = 7> () n = SequenceLength(p) r = SequenceAt(p, n)", "int64"),
        ("o = Optional(i) r = OptionalGetElement(o)", "int32"),
        ("t, m, r = LayerNormalization(x, x)", "float32"),
        ("r = SimplifiedLayerNormalization(x, x)", "float16"),
    ],
)
def test_the_type_of_a_result(text, expected):
    model = models.parse(f"g (float16[2] x, int32[2] i) => (float[2] y) {{ {text} y = Foreign(r) }}")
    assert types(model)["r"] == ir.TensorType(ir.DataType(DType.parse(expected).value))


def test_sequences_optionals_and_maps_are_no_tensors():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>
        g (float[2] x) => (float[2] y) {
            s = SplitToSequence(x) o = Optional(x) i = Identity(s)
            z = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (x) y = Foreign(s, o, i, z) }""")
    found = types(model)
    assert found["i"] == found["s"] == ir.SequenceType(ir.TensorType(ir.DataType.FLOAT))
    assert isinstance(found["o"], ir.OptionalType)
    assert not isinstance(found["z"], ir.TensorType)


def test_values_inside_bodies_are_typed():
    found = types(models.with_if())
    assert {found[name] for name in ("t", "e", "r")} == {ir.TensorType(ir.DataType.FLOAT)}
    model = models.parse("""
        g (int32[3, 2] x, float16[2] s) => (float16[2] y, int32[3, 2] z) {
            y, z = Scan <num_scan_inputs = 1, body = b (state, slice) => (next, out) {
                f = Cast <to = 10> (slice) next = Add(state, f) out = Neg(slice) }> (s, x) }""")
    found = {name: kind.dtype.name for name, kind in types(model).items()}
    assert {found[n] for n in ("state", "next", "f", "y")} == {"FLOAT16"}
    assert {found[n] for n in ("slice", "out", "z")} == {"INT32"}


def test_recorded_types_go_first_and_unknown_operators_stay_unknown():
    model = models.parse("""
        <ir_version: 10, opset_import: ["": 18, "foreign": 1]>
        g (float[2] x) => (float[2] y) { a = foreign.Magic(x) b = Neg(a) y = Abs(b) }""")
    assert "b" not in types(model)
    found = types(model, {"a": ValueSpec("a", DType.FLOAT16, (2,))})
    assert found["b"] == ir.TensorType(ir.DataType.FLOAT16)


def test_they_agree_with_onnxs_own_inference():
    message = networks.encoder(seed=1)
    found = types(Model.from_ir(ir.from_proto(message)))
    for info in (*onnx.shape_inference.infer_shapes(message, strict_mode=True).graph.value_info, *message.graph.output):
        assert found[info.name] == ir.TensorType(ir.DataType(info.type.tensor_type.elem_type)), info.name

"""The nodes that round one value, and which values of a node need them; numbers as numpy's own types round."""

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import models
from tensortriage.errors import UsageError
from tensortriage.model.io.serialize import to_proto
from tensortriage.model.mixed_precision.lowerable_nodes import decide
from tensortriage.model.mixed_precision.rounding_nodes import Rounder, is_constant, opset_needed
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.transforms.rewrite_helpers import take_over
from tensortriage.values.dtype import Precision

TEXT = """<ir_version: 10, opset_import: ["": 19]> g (float[n] x, int64[m] i) => (float[n] y, float[m] t)
<float[4] table = {1, 2, 3, 4}, int64[1] shape = {-1}>
{ [tanh] a = Tanh(x) [relu] r = Relu(a) [reshape] y = Reshape(r, shape) [gather] t = Gather(table, i) }"""


def rounder(precision):
    model = models.parse(TEXT)
    lowering = decide(model, specs=value_specs(model))
    return Rounder(lowering, precision), {node.name: node for node in lowering.model.graph}, lowering.model


def rounded(precision, numbers):
    """Return numbers behind the rounding nodes of a value, by ONNX Runtime."""
    made, nodes, model = rounder(precision)
    value = nodes["reshape"].outputs[0]
    take_over(value, made.nodes(value), (), name="exact")
    session = onnxruntime.InferenceSession(to_proto(model).SerializeToString())
    (found,) = session.run(["y"], {"x": np.arctanh(numbers).astype(np.float32), "i": np.zeros(1, np.int64)})
    return found


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [
        (Precision.FP16, np.float16),
        (Precision.BF16, ml_dtypes.bfloat16),
        (Precision.FP8E4M3, ml_dtypes.float8_e4m3fn),
        (Precision.FP8E5M2, ml_dtypes.float8_e5m2),
    ],
)
def test_numbers_are_rounded_as_the_type_rounds(precision, dtype):
    numbers = np.linspace(0.05, 0.9, 41)
    expected = np.tanh(np.arctanh(numbers).astype(np.float32)).astype(dtype).astype(np.float32)
    assert np.mean(np.isclose(rounded(precision, numbers), expected, rtol=1e-6)) > 0.95  # Tanh may be an ulp off


def test_what_moves_data_rounds_nothing_and_a_table_is_rounded_where_it_is_picked_from():
    made, nodes, _ = rounder(Precision.FP16)
    results = {name: made.rounds_result(node, node.outputs[0]) for name, node in nodes.items()}
    assert results == {"tanh": True, "relu": False, "reshape": False, "gather": True}
    assert made.rounds_operand(nodes["tanh"], 0, nodes["tanh"].inputs[0])
    assert not made.rounds_operand(nodes["gather"], 0, nodes["gather"].inputs[0])
    assert not made.rounds_operand(nodes["reshape"], 1, nodes["reshape"].inputs[1])
    assert [is_constant(value) for value in nodes["gather"].inputs] == [True, False]


def test_formats_that_narrow_nothing_are_left_alone():
    made, nodes, model = rounder(Precision.FP16)
    assert made.is_wide(nodes["tanh"].outputs[0])
    assert not made.is_wide(model.graph.inputs[1])  # int64


@pytest.mark.parametrize(("precision", "opset"), [(Precision.FP16, 6), (Precision.FP8E4M3, 19), (Precision.INT8, 11)])
def test_the_opset_that_can_write_it(precision, opset):
    assert opset_needed(precision) == opset


def test_a_format_that_cannot_be_emulated():
    with pytest.raises(UsageError) as raised:
        opset_needed(Precision.TF32)
    assert raised.value.slug == "precision-not-emulated"

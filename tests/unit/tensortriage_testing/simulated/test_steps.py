"""How a model is divided: what is computed in numpy, where a stretch of ONNX Runtime ends, what goes on unrounded."""

import numpy as np
import onnx
import pytest
from onnx import parser

from tensortriage.engines.options import read_options
from tensortriage.model.model import Model
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage_testing.simulated.freedoms import Freedoms
from tensortriage_testing.simulated.steps import Stretch, divided

CHAIN = """g (float[4,4] x) => (float[4,4] y) <float[4,4] w, float a = {2}> {
  [turn] t = Transpose(x)\n [matmul] p = MatMul(t, w)\n [mul] q = Mul(p, a)\n [tanh] r = Tanh(q)
  [relu] s = Relu(r)\n [softmax] y = Softmax(s) }"""


@pytest.fixture
def model(tmp_path):
    return parsed(CHAIN.replace("w,", f"w = {{{','.join(['0.5'] * 16)}}},"), tmp_path)


def parsed(text, folder):
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20]>\n{text}')
    onnx.save(proto, folder / "m.onnx")
    return Model.load(folder / "m.onnx")


def steps(model, *, apart="", narrow=False, **options):
    """Return the names of the nodes of every step; those in numpy in brackets, an unrounded result with a plus."""
    freedoms = Freedoms.read(read_options(options, Freedoms.OPTIONS))
    found = divided(model, freedoms, value_specs(model), apart=apart, narrow=narrow)
    return [
        " ".join(node.name for node in step.nodes).join("[]" if step.kernel else "  ").strip() + "+" * step.wide
        for step in found
    ]


def test_a_plain_model_is_one_stretch(model):
    assert steps(model) == ["turn matmul mul tanh relu softmax"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"operands": "tf32"}, ["turn", "[matmul]", "mul tanh relu softmax"]),
        ({"functions": "tanh:approx"}, ["turn matmul mul", "[tanh]", "relu softmax"]),
        ({"functions": "softmax:fast"}, ["turn matmul mul tanh relu", "[softmax]"]),
        ({"order": "reversed"}, ["turn", "[matmul]", "mul tanh relu", "[softmax]"]),
        ({"winograd": "4"}, ["turn matmul mul tanh relu softmax"]),  # only a convolution is done so
        ({"fused": "true"}, ["turn matmul", "[mul]+", "[tanh]+", "[relu]", "softmax"]),
    ],
)
def test_what_a_freedom_touches_is_computed_in_numpy(model, options, expected):
    assert steps(model, **options) == expected


def test_where_results_are_narrow_a_stretch_ends_behind_what_computes(model):
    assert steps(model, narrow=True) == ["turn matmul", "mul", "tanh", "relu softmax"]


def test_a_node_stands_apart(model):
    assert steps(model, apart="tanh") == ["turn matmul mul", "tanh", "relu softmax"]
    assert steps(model, apart="mul", fused="true") == ["turn matmul", "[mul]", "[tanh]+", "[relu]", "softmax"]


def test_a_chain_ends_where_its_value_is_seen(tmp_path):
    two = "g (float[4] x) => (float[4] p, float[4] y) { [neg] p = Neg(x)\n [abs] y = Abs(p) }"
    assert steps(parsed(two, tmp_path), fused="true") == ["[neg]", "[abs]"]
    shared = "g (float[4] x) => (float[4] y) { [neg] p = Neg(x)\n [abs] q = Abs(p)\n [add] y = Add(p, q) }"
    assert steps(parsed(shared, tmp_path), fused="true") == ["[neg]", "[abs]+", "[add]"]


def test_what_is_no_float_is_left_to_onnxruntime(tmp_path):
    whole = "g (int32[4] x) => (int32[4] y) { [neg] p = Neg(x)\n [abs] y = Abs(p) }"
    assert steps(parsed(whole, tmp_path), fused="true") == ["neg abs"]


@pytest.mark.parametrize(("zero", "expected"), [("int8 z = {1}", ["[q]"]), ("uint16 z = {1}", ["q"])])
def test_ties_are_those_of_int8(tmp_path, zero, expected):
    kind = zero.split()[0]
    text = f"g (float[4] x) => ({kind}[4] y) <float s = {{0.5}}, {zero}> {{ [q] y = QuantizeLinear(x, s, z) }}"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{text}')
    onnx.save(proto, tmp_path / "m.onnx")
    assert steps(Model.load(tmp_path / "m.onnx"), ties="away") == expected


def test_a_stretch_gives_what_others_use(model):
    middle = [node for node in model.graph.nodes if node.name in ("mul", "tanh")]
    stretch = Stretch(model, middle, lambda name: np.array(2, np.float32))
    assert (stretch.inputs, stretch.outputs) == (["p"], ["r"])
    p = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_allclose(stretch.run({"p": p})["r"], np.tanh(2 * p), atol=1e-6)

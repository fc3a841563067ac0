"""Sizes that constants of the graph ask for: each is worked out by hand from the operator's definition."""

import onnx
import onnx.parser
import pytest

from tensortriage.inputs.conform import given_shapes
from tensortriage.inputs.synthetic.open_sizes import open_dimensions
from tensortriage.inputs.synthetic.required_sizes import required_sizes, solved_size
from tensortriage.model.model import Model


def required(tmp_path, text):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]>\n{text}'), tmp_path / "m.onnx")
    model = Model.load(tmp_path / "m.onnx")
    return required_sizes(model, open_dimensions(model.inputs, given_shapes(model.inputs, {})))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("g (float[b, t, f] x) => (float[b, t, o] y) <float[3, 2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }", {"f": 3}),
        ("g (float[b, f] x) => (float[b, o] y) <float[1, 3] w = {1,2,3}> { y = Gemm<transB = 1>(x, w) }", {"f": 3}),
        (
            "g (float[b, c, n] x) => (float[b, k, m] y) <float[4, 1, 1] w = {1,2,3,4}> { y = Conv<group = 2>(x, w) }",
            {"c": 2},
        ),
        ("g (float[b, n] x) => (float[k, l, m] y) <int64[3] s = {1, 7, 11}> { y = Reshape(x, s) }", {"n": 77}),
        ("g (float[b, 3, n] x) => (float[k, l, m] y) <int64[3] s = {-1, 7, 12}> { y = Reshape(x, s) }", {"n": 28}),
        ("g (float[b, 6] x) => (float[m, 12] y) <int64[2] s = {-1, 12}> { y = Reshape(x, s) }", {"b": 2}),
        ("g (float[b, n] x) => (float[b, n, k] y) <int64[3] s = {0, -1, 1}> { y = Reshape(x, s) }", {"n": 1}),
        ("g (float[b, t] x) => (float[b, t] y) <float[1, 5] p = {1,2,3,4,5}> { z = Relu(x) y = Add(z, p) }", {"t": 5}),
        ("g (float[b, t] x) => (float[b, t] y) <float[1] p = {1}> { y = Add(x, p) }", {}),
        ("g (float[b, t, d] x) => (float[b, u, d] y) <float[1, 1, 4] p = {1,2,3,4}> { y = Concat<axis = 1>(p, x) }",
         {"b": 1, "d": 4}),
        ("g (float[b, n] x) => (float[b, m] y) <int64[4] p = {0, 0, 0, 3}> { y = Pad<mode = \"reflect\">(x, p) }", {}),
    ],
)  # fmt: skip
def test_a_size_that_a_constant_asks_for_is_found(tmp_path, text, sizes):
    assert required(tmp_path, text) == sizes


def test_a_state_has_the_width_of_its_weights_and_as_many_directions(tmp_path):
    text = """g (float[t, b, i] x, float[l, b, u] h) => (float[t, d, b, o] y)
    <float[1, 4, 3] W = {1,1,1,1,1,1,1,1,1,1,1,1}, float[1, 4, 1] R = {1,1,1,1}> {
        y = LSTM<hidden_size = 1>(x, W, R, , , h, h)
    }"""
    assert required(tmp_path, text) == {"i": 3, "l": 1, "u": 1}


def test_dimensions_without_a_name_are_told_by_input_and_axis(tmp_path):
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
    g (float[b, t] x) => (float[b, t] y) <float[1, 5] p = {1,2,3,4,5}> { y = Add(x, p) }""")
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.ClearField("dim_param")
    onnx.save(model, tmp_path / "m.onnx")
    loaded = Model.load(tmp_path / "m.onnx")
    assert required_sizes(loaded, open_dimensions(loaded.inputs, given_shapes(loaded.inputs, {}))) == {("x", 1): 5}


def numbers(count):
    return ",".join(str(number % 7) for number in range(count))


@pytest.mark.parametrize(
    ("text", "free", "size"),
    [
        (  # a stride of 2 halves the frames: 150 positions take 299 or 300
            f"""g (float[b, 1, n] x) => (float[b, t, 1] y)
            <float[1, 1, 3] w = {{1,2,3}}, float[1, 1, 150] p = {{{numbers(150)}}}> {{
                c = Conv<pads = [1, 1], strides = [2]>(x, w) y = Add(c, p)
            }}""",
            ["n"],
            (299, 300),
        ),
        (  # 2 channels of 11 x 11 windows of 3 in steps of 2 are 242 numbers
            f"""g (float[b, 1, h, w] x) => (float[b, 1] y)
            <float[2, 1, 3, 3] k = {{{numbers(18)}}}, float[242, 1] W = {{{numbers(242)}}}> {{
                c = Conv<strides = [2, 2]>(x, k) f = Flatten(c) y = MatMul(f, W)
            }}""",
            ["h", "w"],
            (23, 24),
        ),
        ("g (float[b, n] x) => (float[b, n] y) { y = Neg(x) }", ["n"], (None,)),
    ],
)
def test_a_size_behind_strides_is_solved(tmp_path, text, free, size):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]>\n{text}'), tmp_path / "m.onnx")
    assert solved_size(Model.load(tmp_path / "m.onnx"), free, {"b": 1}) in size

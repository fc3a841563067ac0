"""What an output is put together of, whatever lies between that and the output."""

import numpy as np
import pytest

from models import parse
from tensortriage.model.inspect.output_parts import output_parts, whole, with_parts

INPUTS = {"x": np.zeros((2, 3, 4), np.float32), "z": np.zeros((2, 5, 4), np.float32)}
MODEL = """g (float[2,3,4] x, float[2,5,4] z) => (float[%s] y) <%s> {
  boxes = Relu(x)
  scores = Sigmoid(z)
  %s
}"""
FIRST, SECOND = np.arange(24.0).reshape(2, 3, 4), 100.0 + np.arange(40.0).reshape(2, 5, 4)
"""Stand for boxes and scores."""
JOINED = np.concatenate([FIRST, SECOND], 1)


@pytest.mark.parametrize(
    ("shape", "constants", "end", "made"),
    [
        ("2,8,4", "", "y = Concat<axis=1>(boxes, scores)", JOINED),
        ("2,8,4", "", "y = Concat<axis=-2>(boxes, scores)", JOINED),
        ("2,4,8", "", "c = Concat<axis=1>(boxes, scores) y = Transpose<perm=[0,2,1]>(c)", JOINED.transpose(0, 2, 1)),
        ("4,8,2", "",
         "c = Concat<axis=1>(boxes, scores) t = Transpose<perm=[1,0,2]>(c) y = Transpose<perm=[2,0,1]>(t)",
         JOINED.transpose(2, 1, 0)),
        ("16,4", "int64[2] s = {16, 4}", "c = Concat<axis=1>(boxes, scores) i = Identity(c) y = Reshape(i, s)",
         JOINED.reshape(16, 4)),
        ("2,7,4", "int64[1] b = {1}, int64[1] e = {8}, int64[1] a = {1}",
         "c = Concat<axis=1>(boxes, scores) y = Slice(c, b, e, a)", JOINED[:, 1:]),
        ("2,8,4", "float[1] k = {2}", "c = Concat<axis=1>(boxes, scores) y = Mul(c, k)", JOINED),
        ("2,8,4", "int64[6] p = {0,0,0,0,5,0}, int64[6] q = {0,3,0,0,0,0}",
         "pb = Pad(boxes, p) ps = Pad(scores, q) y = Add(pb, ps)", JOINED),
    ],
)  # fmt: skip
def test_each_part_has_the_elements_that_it_is_made_of(shape, constants, end, made):
    # `made` is what the operators make of the two arrays, by numpy.
    parts = output_parts(parse(MODEL % (shape, constants, end)), INPUTS)
    assert [(part.output, part.value) for part in parts] == [("y", "boxes"), ("y", "scores")]
    first, second = (np.sort(part.of(made)) for part in parts)
    assert np.array_equal(first, np.sort(FIRST[np.isin(FIRST, made)]))
    assert np.array_equal(second, SECOND.ravel())


def test_slices_that_are_written_one_after_another_are_parts():
    model = parse("""g (float[2,3] x, float[1,3] z) => (float[3,3] y)
      <float[3,3] zeros = {0,0,0,0,0,0,0,0,0}, int64[2,1] i = {0,2}, int64[1,1] j = {1}> {
        boxes = Relu(x)  scores = Sigmoid(z)
        first = ScatterND(zeros, i, boxes)  y = ScatterND(first, j, scores)
    }""")
    parts = output_parts(model, {"x": np.zeros((2, 3)), "z": np.zeros((1, 3))})
    assert {part.name: part.of(np.arange(9).reshape(3, 3)).tolist() for part in parts} == {
        "y[boxes]": [0, 1, 2, 6, 7, 8],
        "y[scores]": [3, 4, 5],
    }


def test_what_the_same_operators_make_in_several_places_is_one_part():
    # Two levels of a pyramid, each with boxes and scores: the levels are no parts, the kinds are.
    level = "m{0} = MatMul(x{0}, w) b{0} = Relu(m{0}) n{0} = MatMul(x{0}, v) s{0} = Sigmoid(n{0}) "
    model = parse(
        "g (float[5,2] x1, float[3,2] x2) => (float[8,5] y) <float[2,4] w = {1,2,3,4,5,6,7,8}, float[2,1] v = {1,2}> {"
        + level.format(1)
        + level.format(2)
        + "c1 = Concat<axis=1>(b1, s1) c2 = Concat<axis=1>(b2, s2) y = Concat<axis=0>(c1, c2) }"
    )
    parts = output_parts(model, {"x1": np.zeros((5, 2)), "x2": np.zeros((3, 2))})
    assert [(part.value, int(part.where.sum())) for part in parts] == [("b1", 32), ("s1", 8)]


def test_what_products_put_to_each_other_along_their_channels_is_not_one():
    model = parse("""g (float[5,2] x) => (float[5,4] y) <float[2,2] w = {1,2,3,4}, float[2,2] v = {1,2,3,4}> {
      a = MatMul(x, w)  b = MatMul(x, v)  y = Concat<axis=1>(a, b)
    }""")
    assert [part.name for part in output_parts(model, {"x": np.zeros((5, 2))})] == ["y[a]", "y[b]"]


@pytest.mark.parametrize(
    ("shape", "end"),
    [
        ("2,3,4", "y = Neg(boxes)"),
        ("2,8,4", "c = Concat<axis=1>(boxes, scores) y = Softmax<axis=1>(c)"),
        ("2,8,4", "y = Concat<axis=1>(boxes, z)"),  # an input is handed over: nothing of the model's
    ],
)
def test_other_outputs_have_no_parts(shape, end):
    assert output_parts(parse(MODEL % (shape, "", end)), INPUTS) == ()


def test_nor_have_those_of_unknown_shape():
    assert output_parts(parse(MODEL % ("2,8,4", "", "y = Concat<axis=1>(boxes, scores)")), {}) != ()
    text = (MODEL % ("N,8,4", "", "y = Concat<axis=1>(boxes, scores)")).replace("float[2,3,4] x", "float[N,3,4] x")
    assert output_parts(parse(text), {}) == ()


def test_parts_are_cut_out_of_outputs_of_that_shape_alone():
    parts = output_parts(parse(MODEL % ("2,8,4", "", "y = Concat<axis=1>(boxes, scores)")), INPUTS)
    assert list(with_parts({"y": JOINED}, parts)) == ["y", "y[boxes]", "y[scores]"]
    assert list(with_parts({"y": JOINED[:1]}, parts)) == ["y"]
    assert whole(["a", "y[scores]", "y", "y[boxes]"], parts) == ["a", "y"]

"""Outputs that a Concat puts together, whatever lies between it and the output."""

import numpy as np
import pytest

from models import parse
from tensortriage.model.inspect.output_parts import output_parts

SHAPES = {"boxes": (2, 3, 4), "scores": (2, 5, 4)}
MODEL = """g (float[2,3,4] x, float[2,5,4] z) => (float[%s] y) {
  boxes = Relu(x)
  scores = Sigmoid(z)
  %s
}"""


@pytest.mark.parametrize(
    ("shape", "end", "axis"),
    [
        ("2,8,4", "y = Concat<axis=1>(boxes, scores)", 1),
        ("2,8,4", "y = Concat<axis=-2>(boxes, scores)", 1),
        ("2,4,8", "c = Concat<axis=1>(boxes, scores) y = Transpose<perm=[0,2,1]>(c)", 2),
        ("8,2,4", "c = Concat<axis=1>(boxes, scores) t = Transpose<perm=[1,0,2]>(c) y = Identity(t)", 0),
        ("4,8,2",
         "c = Concat<axis=1>(boxes, scores) t = Transpose<perm=[1,0,2]>(c) y = Transpose<perm=[2,0,1]>(t)", 1),
    ],
)  # fmt: skip
def test_parts_lie_along_an_axis_of_the_output(shape, end, axis):
    found = list(output_parts(parse(MODEL % (shape, end)).graph, "y", SHAPES))
    assert [(part.value, part.axis, part.start, part.stop) for part in found] == [
        ("boxes", axis, 0, 3),
        ("scores", axis, 3, 8),
    ]
    whole = np.arange(64).reshape([int(size) for size in shape.split(",")])
    assert np.array_equal(np.concatenate([part.of(whole) for part in found], axis), whole)


def test_what_no_concat_makes_has_no_parts():
    graph = parse(MODEL % ("2,3,4", "y = Neg(boxes)")).graph
    assert list(output_parts(graph, "y", SHAPES)) == []


def test_nor_has_what_is_of_unknown_shape():
    graph = parse(MODEL % ("2,8,4", "y = Concat<axis=1>(boxes, scores)")).graph
    assert list(output_parts(graph, "y", {"boxes": (2, 3, 4)})) == []

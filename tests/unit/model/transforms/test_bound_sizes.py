import pytest

import models
from tensortriage.model.transforms.bound_sizes import unbounded_sizes


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("n = ReduceSum <keepdims = 0> (i)  y = Range(zero, n, one)", ["n"]),
        ("n = Size(x)  y = Range(zero, n, one)", []),
        ("s = Shape(x)  d = Mul(s, s)  y = Expand(one, d)", []),
        ("y = Tile(x, i)", ["i"]),
        ("m = Min(i, i)  y = Tile(x, m)", []),
        ("z = NonZero(x)  s = Shape(z)  y = ConstantOfShape(s)", []),
        ("z = NonZero(x)  r = Reshape(z, flat)  y = ConstantOfShape(r)", ["r"]),
        ("a = Tile(x, i)  b = Tile(x, i)  y = Concat <axis = 0> (a, b)", ["i"]),
        ("y = Resize(x, , one_scale)", []),
        ("y = Reshape(x, i)", []),  # divides what there is
    ],
)
def test_unbounded_sizes(body, found):
    model = models.parse(f"""
        g (float[4] x, int64[1] i) => (float y)
        <int64 zero = {{0}}, int64 one = {{1}}, int64[1] flat = {{-1}}, float[1] one_scale = {{1}}> {{ {body} }}""")
    assert [row.value for row in unbounded_sizes(model.graph)] == found


def test_the_node_that_takes_the_size_is_named():
    model = models.parse("g (float[4] x, int64[1] i) => (float y) { [wide] y = Tile(x, i) }")
    (row,) = unbounded_sizes(model.graph)
    assert (row.node, row.op_type) == ("wide", "Tile")

import pytest

from models import chain, parse
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.reduce.pieces.pieces import Pieces
from tensortriage.reduce.request import Ends

DIAMOND = """g (float[2] x) => (float[2] y) {
    [left] l = Relu(x)
    [right] r = Neg(x)
    [both] b = Add(l, r)
    [last] y = Abs(b)
}"""


def pieces(model, **given):
    return Pieces(model, specs=value_specs(model), **given)


def test_a_piece_is_fed_where_it_was_cut():
    made = pieces(parse(DIAMOND))
    cut = made.cut(("right", "both"))
    assert {spec.name for spec in cut.inputs} == {"x", "l"}
    assert [spec.name for spec in cut.outputs] == ["b"]


def test_only_the_ends_of_a_piece_are_outputs():
    """A value used inside is no output even when the rest of the model uses it too: that would keep it from fusing."""
    model = parse("g (float[2] x) => (float[2] y) { [a] p = Relu(x) [b] q = Neg(p) [c] y = Add(p, q) }")
    assert [spec.name for spec in pieces(model).cut(("a", "b")).outputs] == ["q"]
    assert [spec.name for spec in pieces(model).cut(("a", "b"), marked=True).outputs] == ["p", "q"]


def test_the_whole_is_the_model_itself():
    model = chain(4)
    made = pieces(model)
    assert made.cut(made.nodes(made.items)) is model


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (Ends.BOTH, ("both",)),
        (Ends.KEEP_INPUTS, ("left", "right", "both")),
        (Ends.KEEP_OUTPUTS, ("both", "last")),
    ],
)
def test_ends_that_are_kept(ends, expected):
    assert pieces(parse(DIAMOND), ends=ends).nodes(("both",)) == expected


def test_neighbours():
    assert set(pieces(parse(DIAMOND)).neighbours("both")) == {"left", "right", "last"}

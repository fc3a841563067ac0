import models
from tensortriage_surgeon.nodes_between import Dangling, nodes_between

JOINED = """
    g (float[2] x, float[2] m) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        [a] a = Neg(x) [k] k = Exp(w) [b] b = Mul(a, k)
        [p] p = Sqrt(m) [q] q = Neg(p) [j] j = Add(b, q) [y] y = Exp(j) [z] z = Abs(p)
    }"""


def test_what_lies_between_values_includes_constants():
    found = models.parse(JOINED).graph
    assert nodes_between(found, ["x", "m"], ["y"])[0] == ("a", "k", "b", "p", "q", "j", "y")
    assert nodes_between(found, ["a", "q"], ["y"]) == (("k", "b", "j", "y"), ())
    assert nodes_between(found, ["a"], ["b"]) == (("k", "b"), ())


def test_branches_from_elsewhere_are_found_where_they_enter():
    found = models.parse(JOINED).graph
    assert nodes_between(found, ["a"], ["y"])[1] == (Dangling("q", "j", ("m",)),)
    assert nodes_between(found, ["a"], ["y", "z"])[1] == (Dangling("q", "j", ("m",)), Dangling("z", "z", ("m",)))
    assert nodes_between(found, ["p"], ["y"])[1] == (Dangling("b", "j", ("x",)),)


def test_captures_of_bodies_count():
    found = models.with_loop().graph
    assert nodes_between(found, ["step"], ["y"])[1] == (Dangling("x", "loop", ("x",)),)
    assert nodes_between(found, ["step", "x"], ["y"]) == (("loop",), ())

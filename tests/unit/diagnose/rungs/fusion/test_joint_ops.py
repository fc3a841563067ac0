"""Sets that are built like another one are recognised by operators and wiring."""

import models
from tensortriage.diagnose.rungs.fusion.joint_ops import alike

TWICE = """
    g (float[2] x) => (float[2] y) {
        [exp1] a = Exp(x) [neg1] b = Neg(a) [mul1] c = Mul(b, a)
        [exp2] d = Exp(c) [neg2] e = Neg(d) [mul2] f = Mul(d, e)
        [exp3] g = Exp(f) [neg3] h = Neg(g) [mul3] y = Mul(h, g) }"""


def test_the_same_operators_wired_in_the_same_way():
    graph = models.parse(TWICE).graph
    pattern = ("exp1", "neg1", "mul1")
    assert alike(graph, pattern, ("exp3", "neg3", "mul3")) == ("exp3", "neg3", "mul3")
    assert alike(graph, pattern, ("neg2", "exp3", "neg3", "mul3")) == ("exp3", "neg3", "mul3")
    assert alike(graph, pattern, ("exp2", "neg2", "mul2")) is None  # its Mul takes the two the other way round
    assert alike(graph, ("exp1", "neg1"), ("exp2", "neg2", "mul2")) == ("exp2", "neg2")
    assert alike(graph, pattern, ("exp3", "neg3")) is None


def test_ops_that_are_not_wired_to_each_other_are_not_alike():
    graph = models.parse(TWICE).graph
    assert alike(graph, ("exp1", "neg1"), ("exp2", "neg3")) is None

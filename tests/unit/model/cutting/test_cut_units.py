"""What cannot be separated; by hand."""

import models
from tensortriage.model.cutting.cut_units import inseparable_units

SEQUENCE = """
    g (float[2] x) => (float[4] y) {
        [first] a = Relu(x)
        [make] s = SequenceConstruct(a, x)
        [between] b = Neg(a)
        [join] j = ConcatFromSequence <axis = 0> (s)
        [count] n = SequenceLength(s)
        c = Constant <value_int = 1> ()
        [last] y = Exp(j)
    }"""


def names(model):
    return [[node.name for node in unit] for unit in inseparable_units(model)]


def test_nodes_that_share_a_sequence_stay_together():
    assert names(models.parse(SEQUENCE)) == [["first"], ["make", "join", "count"], ["between"], ["last"]]


def test_everything_else_is_alone():
    assert names(models.chain(3)) == [["op_0"], ["op_1"], ["op_2"]]

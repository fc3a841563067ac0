"""What cannot be separated, and what an engine would treat alike; by hand."""

import numpy as np
from onnx import numpy_helper

import models
from tensortriage.model.cutting.cut_units import inseparable_units
from tensortriage.model.shape_inference.value_specs import value_specs
from tensortriage.model.similarity.structural_hash import Likeness

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


def likeness(text):
    model = models.parse(text)
    alike = Likeness(model, value_specs(model))
    return [alike.of(node) for node in model.graph.nodes if node.op_type != "Constant"]


def test_names_and_large_weights_do_not_count():
    message = models.proto("g (float[1, 300] x) => (float[1, 300] z) { y = Add(x, w)  v = Add(y, u)  z = Sub(v, u) }")
    for number, name in enumerate("wu"):
        message.graph.initializer.append(numpy_helper.from_array(np.full((1, 300), number, np.float32), name))
    model = models.of_message(message)
    first, second, third = map(Likeness(model, value_specs(model)).of, model.graph.nodes)
    assert first == second != third


def test_attributes_shapes_types_and_small_constants_count():
    def reshape(shape, kind="float", result=(4, 2)):
        return likeness(f"""
            g ({kind}[8] x) => ({kind}[{result[0]}, {result[1]}] y) <int64[2] s = {{{shape[0]}, {shape[1]}}}>
            {{ y = Reshape(x, s) }}""")[0]

    assert reshape((4, 2)) == reshape((4, 2))
    assert len({reshape((4, 2)), reshape((2, 4), result=(2, 4)), reshape((4, 2), kind="float16")}) == 3
    soft = "g (float[2, 2] x) => (float[2, 2] y) {{ y = Softmax <axis = {}> (x) }}"
    assert likeness(soft.format(0)) != likeness(soft.format(1))


def test_one_operand_twice_is_not_two_operands():
    same = likeness("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, x) }")
    other = likeness("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }")
    assert same != other

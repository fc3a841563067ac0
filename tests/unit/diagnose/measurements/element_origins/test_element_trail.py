"""Which elements an element is made of: by broadcasting, by moving, or all of them; worked out by hand."""

import numpy as np
import pytest
from onnx import helper

from models import of_nodes, parse
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.element_origins.element_trail import before, differing, known, paired, trail
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.outputs import FeedResult
from tensortriage.envelope.setting import Floors
from tensortriage.values.dtype import Precision

MODEL = """g (float[2, 3] x) => (float[3, 2] y) <float[3] w = {1, 2, 3}> {
    [first] a = Mul(x, w)
    [second] b = Neg(a)
    [third] y = Transpose <perm = [1, 0]> (b)
}"""
X = np.float32([[1, 2, 3], [4, 5, 6]])


def node_of(text):
    return parse(text).graph.nodes[-1]


def marked(shape, *places):
    mask = np.zeros(shape, np.bool_)
    for place in places:
        mask[place] = True
    return mask


@pytest.mark.parametrize(
    ("text", "position", "mask", "operands", "expected"),
    [
        ("Add(p, q)", 0, marked((2, 3), (1, 2)), [(2, 3), (3,)], marked((2, 3), (1, 2))),
        ("Add(p, q)", 1, marked((2, 3), (1, 2)), [(2, 3), (3,)], marked(3, 2)),
        ("Add(p, q)", 1, marked((2, 3), (1, 2)), [(2, 3), (2, 1)], marked((2, 1), (1, 0))),
        ("Sin(p)", 0, marked((2, 3), (0, 1)), [(2, 3)], marked((2, 3), (0, 1))),
        ("Flatten(p)", 0, marked((2, 3), (1, 0)), [(2, 3, 1)], marked((2, 3, 1), (1, 0, 0))),
        ("Transpose<perm = [1, 0]>(p)", 0, marked((3, 2), (2, 0)), [(2, 3)], marked((2, 3), (0, 2))),
        ("Concat<axis = 0>(p, q)", 0, marked(5, 1, 3), [2, 3], marked(2, 1)),
        ("Concat<axis = 0>(p, q)", 1, marked(5, 1, 3), [2, 3], marked(3, 1)),
        ("Softmax<axis = 1>(p)", 0, marked((2, 3), (0, 0)), [(2, 3)], np.ones((2, 3), np.bool_)),
    ],
)
def test_an_operator_leads_back_to_the_elements_that_it_used(text, position, mask, operands, expected):
    names = ", ".join(f"float {name}" for name in "pq"[: len(operands)])
    node = node_of(f"g ({names}) => (float y) {{ y = {text} }}")
    arrays = [np.zeros(shape, np.float32) for shape in operands]
    np.testing.assert_array_equal(paired(node, position, mask, arrays, "y", opset=18), expected)


def test_data_that_cannot_be_followed_count_as_a_whole():
    node = node_of("g (float p) => (float y) { y = Transpose(p) }")
    whole = np.arange(6).reshape(2, 3)  # integers are not moved in float64
    assert paired(node, 0, marked((3, 2), (0, 0)), [whole], "y", opset=18).all()
    assert paired(node, 0, marked((3, 3), (0, 0)), [X], "y", opset=18).all()  # a mask of another shape
    assert paired(node, 0, marked((3, 2), (0, 0)), [None], "y", opset=18).shape == ()
    foreign = helper.make_node("Add", ["p", "q"], ["y"], domain="another")
    model = of_nodes([foreign], inputs={"p": (2,), "q": (2,)}, outputs={"y": (2,)})
    assert paired(model.graph.nodes[0], 0, marked(2, 0), [X[0, :2]] * 2, "y", opset=18).all()


@pytest.mark.parametrize(
    ("reference", "target", "expected"),
    [
        ([1, 1, 1], [1, 1 + 2**-23, 1.01], [False, False, True]),
        ([np.nan, 1, np.inf], [np.nan, np.nan, np.inf], [False, True, False]),
        ([0, 1, 1], [1e-30, np.inf, 1], [True, True, False]),
    ],
)
def test_elements_differ_by_more_than_their_own_rounding(reference, target, expected):
    found = differing(np.float32(reference), np.float32(target), Precision.FP32)
    assert found.tolist() == expected


def test_a_coarse_format_rounds_more_and_other_types_do_not_count():
    one, other = np.float32([1]), np.float32([1 + 2**-11])
    assert differing(one, other, Precision.FP32).all()
    assert not differing(one, other, Precision.FP16).any()
    assert not differing(np.array([1]), np.array([2]), Precision.FP32).any()
    assert differing(one, np.float32([1, 2]), Precision.FP32).tolist() == [False]


@pytest.fixture
def asked(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=off-by-one,node=first")
    result = FeedResult(inv.question.feeds[0], {}, Floors({}, {}, {}, ""), {"y": 1.0}, {"y": False})
    return inv, Evidence(results=(result,))


def test_operands_are_known_from_golden_values_feeds_and_weights(asked):
    inv, evidence = asked
    np.testing.assert_array_equal(known(inv, evidence, "b"), -X * [1, 2, 3])
    np.testing.assert_array_equal(known(inv, evidence, "x"), X)
    np.testing.assert_array_equal(known(inv, evidence, "w"), [1, 2, 3])
    assert known(inv, evidence, "") is None


def test_a_trail_goes_back_while_elements_differ(asked):
    inv, evidence = asked
    a = X * np.float32([1, 2, 3])
    wrong = a.copy()
    wrong[0, 1] += 1
    start = {"y": marked((3, 2), (1, 0), (2, 1))}  # elements [0, 1] and [1, 2] before they are transposed
    found = trail(inv, evidence, start, {"a": wrong, "b": -wrong, "y": -wrong.T})
    assert set(found) == {"y", "b", "a"}
    np.testing.assert_array_equal(found["b"], marked((2, 3), (0, 1)))
    np.testing.assert_array_equal(found["a"], marked((2, 3), (0, 1)))
    assert set(trail(inv, evidence, start, {"a": wrong, "y": -wrong.T})) == {"y"}  # b was not seen
    assert set(trail(inv, evidence, start, {"a": wrong, "b": -a})) == {"y"}  # b is right
    elsewhere = {"y": marked((3, 2), (0, 0))}
    assert set(trail(inv, evidence, elsewhere, {"a": wrong, "b": -wrong})) == {"y"}


def test_what_the_target_had_before_is_shown_as_far_as_it_differs(asked):
    inv, evidence = asked
    graph, golden = inv.model.graph, inv.golden.of(evidence.feed)
    figures = {name: measure(golden[name], golden[name] + (name != "b")) for name in ("a", "b", "y")}
    third = [graph.node("third")]
    assert set(before(inv, evidence, third)) == {"y"}  # nobody has looked inside
    assert set(before(inv, evidence.with_(in_context=figures), third)) == {"b", "y"}  # b is right: it leads no further
    differing_too = {**figures, "b": figures["a"]}
    assert set(before(inv, evidence.with_(in_context=differing_too), third)) == {"a", "b", "y"}


def test_a_target_that_fails_has_shown_nothing(investigate, asked):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=build-failure,node=first")
    assert before(inv, asked[1], [inv.model.graph.node("third")]) == {}

"""What an error does to the outputs when it is put into the reference's run; expected figures follow from the model."""

import math

import numpy as np
import pytest

from models import parse
from tensortriage.diagnose.measurements.local_errors.injection import (
    Influence,
    InjectedRuns,
    explained_share,
    in_order,
    influence,
    injected_runs,
    with_the_rest,
)
from tensortriage.diagnose.measurements.local_errors.local import local_errors
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.values.store import MemoryStore

MODEL = """g (float[4] x) => (float[4] y) <float[4] w = {0, 0, 0, 0}> {
    [left] a = Abs(x)
    [right] b = Neg(x)
    [lost] c = Mul(b, w)
    [sum] y = Add(a, c)
}"""
"""What becomes of `b` is multiplied by 0: only errors of `a` reach the output, which is `a`."""

X = np.float32([1, -2, 3, -4])


def error(scale):
    return pytest.approx(scale, rel=1e-6)


def test_an_error_counts_by_what_reaches_the_output(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=left,amount=1.5")
    arrays = MemoryStore({"a": 1.5 * np.abs(X), "b": np.float32([9, 9, 9, 9])})
    found = influence(inv, inv.question.feeds[0], arrays, ["a", "b", "unknown"])
    assert found.alone == {"a": error(0.5), "b": 0.0}
    assert (found.together, found.explained) == (error(0.5), error(1.0))
    assert not found.rounded


def test_errors_that_are_not_the_targets_explain_nothing(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=left,amount=1.5")
    found = influence(inv, inv.question.feeds[0], MemoryStore({"a": -np.abs(X)}), ["a"])
    assert found.alone == {"a": error(2.0)}
    assert found.explained == 0.0


def test_in_a_narrow_format_the_rounded_run_is_taken_only_where_it_explains_more(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=left,amount=1.5,precision=fp16")
    feed = inv.question.feeds[0]
    assert not influence(inv, feed, MemoryStore({"a": 1.5 * np.abs(X)}), ["a"]).rounded
    assert not influence(inv, feed, MemoryStore({"a": -np.abs(X)}), ["a"]).rounded  # nor does it explain it there


def test_another_shape_is_an_infinite_error(investigate):
    inv = investigate(MODEL, {"x": X})
    with injected_runs(inv, inv.question.feeds[0], ["a"]) as runs:
        assert runs.error({"y": np.zeros(3, np.float32)}) == math.inf
        assert runs.error({"another": np.zeros(4, np.float32)}) == math.inf
        assert runs.error({}) == 0.0
        np.testing.assert_array_equal(runs.untouched["y"], np.abs(X))


def test_the_rest_of_the_ops_are_measured_too_but_not_beside_rounded_figures(investigate):
    inv = investigate(MODEL, {"x": X}, target="faulty:kind=scale,node=left,amount=1.5")
    feed = inv.question.feeds[0]
    local = local_errors(inv, feed)
    known = Influence({}, 0.0, 0.0)
    assert with_the_rest(inv, feed, local, known).alone["a"] == error(0.5)
    first = Influence({"a": 7.0}, 0.0, 0.0)
    assert with_the_rest(inv, feed, local, first).alone["a"] == 7.0  # what is known is not measured again
    rounded = Influence({}, 0.0, 0.0, rounded=True)
    assert with_the_rest(inv, feed, local, rounded) is rounded


@pytest.mark.parametrize(
    ("target", "joint", "share"),
    [
        ([2, 2], [2, 2], 1.0),
        ([2, 2], [1, 1], 0.0),
        ([2, 2], [2, 1], 0.5),  # of two equal squares one is left
        ([2, 2], [9, 9], 0.0),  # worse than nothing is nothing
        ([1, 1], [1, 1], 0.0),  # there is no error to explain
        ([math.nan, math.inf], [math.nan, 1], 0.5),
        ([math.nan, 9], [math.nan, 1], 1.0),  # where some are not finite, these alone count
    ],
)
def test_the_share_of_an_output_error_that_is_reproduced(target, joint, share):
    one = {"y": np.float32([1, 1])}
    found = explained_share(one, {"y": np.float32(target)}, {"y": np.float32(joint)})
    assert found == pytest.approx(share)


def test_outputs_count_by_their_scale_and_those_that_cannot_be_paired_not_at_all():
    one, two = {"y": np.float32([1, 1])}, {"y": np.float32([2, 2])}
    assert explained_share({}, two, two) == 0.0
    assert explained_share(one, two, {}) == 0.0
    assert explained_share(one, two, {"y": np.float32([2])}) == 0.0
    four, half = {"y": np.float32([4, 4])}, {"y": np.float32([4, 2])}
    assert explained_share(two, four, half) == pytest.approx(0.5)  # whatever the scale
    zero = {"y": np.float32([0, 0])}
    assert explained_share(zero, two, two) == 1.0  # a reference of zeros has no scale
    none = {"z": np.zeros((0, 2), np.float32)}  # as of what a merged decoder gives in its first step only
    assert explained_share(one | none, two | none, two | none) == 1.0


@pytest.mark.parametrize("ordered", [0, 1])
def test_a_top_k_without_order_compares_as_a_set_along_its_axis(ordered):
    graph = parse(f"""g (float[3, 3] x, int64[1] k) => (float[2, 3] v) {{
        v, i = TopK <axis: int = 0, largest: int = 1, sorted: int = {ordered}> (x, k)
    }}""").graph
    values = np.float32([[2, 5, 3], [1, 4, 6]])
    found = in_order(graph, {"v": values})["v"]
    np.testing.assert_array_equal(found, np.sort(values, axis=0) if not ordered else values)


@pytest.mark.parametrize(
    ("right", "made", "share"),
    [(1, 3.0, 1.0), (1, 0.5, 0.0), (1, 1.0, 0.0), (3, 3.0, 0.0)],
    ids=["beyond", "less", "none", "only-cut-off"],
)
def test_what_a_target_of_integers_cuts_off_is_not_asked_of_an_injection(right, made, share):
    """Integers up to 2 show 3 as 2; a target that only cuts off leaves nothing for others to explain."""
    untouched, deployed, joint = ({"y": np.float32([-1, 0, number])} for number in (right, 2, made))
    graph = parse("g (float[3] x) => (float[3] y) { y = Neg(x) }").graph
    runs = InjectedRuns(graph, Feed("none", {}, Origin.RANDOM), lambda *_: {}, untouched, deployed, cut_off=True)
    assert runs.explained(joint) == share

"""Tables looked up by whole numbers become inputs, in bodies too; nothing else does."""

import numpy as np
import pytest

from models import parse
from tensortriage.engines.spec import PLAIN
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.transforms.fed_tables import feed_tables, tables
from tensortriage.runs.lab import Lab

PLAINLY = """
    g (int64[2] ids, float[2] x) => (float[2] y) <float[3] table = {1, 2, 3}, float[2] bias = {1, 1}> {
        e = Gather(table, ids) s = Add(e, x) y = Add(s, bias) }"""
IN_A_BODY = """
    g (int64[2] ids, bool[1] first) => (float[2] y) <float[3] table = {1, 2, 3}, float[1] two = {2}> {
        y = If (first) <
            then_branch = g1 () => (float[2] z) { z = Gather(table, ids) },
            else_branch = g2 () => (float[2] w) { e = Gather(table, ids) w = Mul(e, two) }> }"""


@pytest.mark.parametrize(("text", "more"), [(PLAINLY, {"x": np.float32([0, 0])}), (IN_A_BODY, {"first": [False]})])
def test_a_table_is_given_instead_of_the_constant(text, more):
    model = parse(text)
    assert {name: array.tolist() for name, array in tables(model).items()} == {"table": [1, 2, 3]}
    fed = feed_tables(model, ["table"])
    assert [spec.name for spec in fed.inputs][-1] == "table"
    assert "table" in model.ir.graph.initializers
    tensors = {"ids": np.array([2, 0]), **{name: np.asarray(each) for name, each in more.items()}}
    with Lab() as lab:
        own = lab.outputs(PLAIN, model, Feed("own", tensors, Origin.REAL))["y"]
        ten = {**tensors, "table": np.float32([10, 20, 30])}
        other = lab.outputs(PLAIN, fed, Feed("ten times", ten, Origin.REAL))["y"]
    np.testing.assert_allclose(other - own, [27, 9] if "bias" in text else [54, 18])

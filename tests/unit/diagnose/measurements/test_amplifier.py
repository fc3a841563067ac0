"""Which op amplifies rounding? Models in which one op alone decides by the last bit, written here."""

import numpy as np
import pytest
from onnx import helper

from investigations import compared, investigate  # noqa: F401 - fixtures
from models import proto
from tensortriage.diagnose.measurements.amplifier import amplifier

DRAWS = 4
FLOORED = """<ir_version: 8, opset_import: ["": 17]>
g (float[6] x) => (float[6] y) { [grow] a = Mul(x, x) [whole] f = Floor(a) [out] y = Neg(f) }"""
SMOOTH = """<ir_version: 8, opset_import: ["": 17]>
g (float[6] x) => (float[6] y) { [grow] a = Mul(x, x) [act] f = Tanh(a) [out] y = Neg(f) }"""
WHOLE = {"x": np.float32([1, 2, 3, 4, 5, 6])}
"""Squares of whole numbers: the next smaller x falls below."""


def forest():
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], "neg"),
        helper.make_node(
            "TreeEnsembleRegressor", ["n"], ["t"], "tree", domain="ai.onnx.ml", n_targets=1, nodes_treeids=[0] * 3,
            nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[-3.0, 0.0, 0.0], nodes_hitrates=[1.0] * 3,
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
            nodes_missing_value_tracks_true=[0] * 3, target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
            target_weights=[1.0, 5.0],
        ),
        helper.make_node("Abs", ["t"], ["y"], "out"),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, [6, 1])], [value("y", 1, [6, 1])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(
    ("model", "feed", "node", "how"),
    [
        (proto(FLOORED), WHOLE, "whole", "rounding decides ties"),
        (forest(), {"x": np.full((6, 1), 3.0, np.float32)}, "tree", "on which side of a threshold an operand lies"),
    ],
)
def test_the_op_that_decides_by_the_last_bit_is_named(investigate, compared, model, feed, node, how):  # noqa: F811
    inv = investigate(model, feed)
    culprit, words = amplifier(inv, compared(inv).worst_feed, "y", draws=DRAWS)
    assert culprit.node == node
    assert how in words


def test_an_op_that_moves_its_operands_alone_is_not(investigate, compared):  # noqa: F811
    """Every op of a smooth model moves by as much as its operands, the first one by that of the inputs."""
    inv = investigate(proto(SMOOTH), WHOLE)
    culprit, _ = amplifier(inv, compared(inv).worst_feed, "y", draws=DRAWS)
    assert culprit is None or culprit.node == "grow"

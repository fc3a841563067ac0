"""Rules of NaN and Inf: whatever ONNX Runtime makes of two numbers, the rule is one that arithmetic has."""

import math

import hypothesis.strategies as st
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import example, given, settings
from onnx import helper

from models import of_nodes
from tensortriage.compare.nonfinite.arithmetic_rules import UNEXPLAINED, rule_of

BINARY = ("Add", "Sub", "Mul", "Div", "Pow")
UNARY = ("Sqrt", "Log", "Exp", "Reciprocal", "Acos", "Asin", "Acosh", "Atanh", "Sinh", "Cosh", "Sin", "Cos", "Tan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e30, -1e30, 3e38, -3e38, 1e-40, math.inf, -math.inf, math.nan]
numbers = st.sampled_from(SPECIAL) | st.floats(width=32)


def session(op_type, count):
    names = [f"i{number}" for number in range(count)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"])], "g",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (1,)) for name in names],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1,))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


SESSIONS = {op: session(op, 2) for op in BINARY} | {op: session(op, 1) for op in UNARY}


def explained(op_type, operands):
    """Return the result of an operator on single numbers, and the rule where it is not finite."""
    arrays = [np.float32([x]) for x in operands]
    names = [f"i{number}" for number in range(len(arrays))]
    result = SESSIONS[op_type].run(None, dict(zip(names, arrays, strict=True)))[0]
    if np.isfinite(result).all():
        return result, None
    node = of_nodes(
        [helper.make_node(op_type, names, ["y"], name="n")], inputs=dict.fromkeys(names, (1,)), outputs={"y": (1,)}
    ).graph.nodes[0]
    return result, rule_of(node, arrays, result, (0,))


@pytest.mark.parametrize("op_type", BINARY)
@settings(max_examples=150, deadline=None)
@given(x=numbers, y=numbers)
@example(x=math.inf, y=0.0)
@example(x=0.0, y=0.0)
def test_every_result_of_two_numbers_has_a_rule(op_type, x, y):
    result, rule = explained(op_type, [x, y])
    if rule is None:
        return
    assert rule.rule != UNEXPLAINED, (op_type, x, y, result)
    assert (rule.rule == "carried") <= (not math.isfinite(x) or not math.isfinite(y))
    assert rule.operands


@pytest.mark.parametrize("op_type", UNARY)
@settings(max_examples=80, deadline=None)
@given(x=numbers)
def test_every_result_of_one_number_has_a_rule(op_type, x):
    result, rule = explained(op_type, [x])
    if rule is None:
        return
    assert rule.rule != UNEXPLAINED, (op_type, x, result)
    assert (rule.rule == "carried") <= (not math.isfinite(x))

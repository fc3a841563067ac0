"""Whole numbers that become floating point ones inside one operation.

The model is what PyTorch 2.13 writes of ``torch.div(x, 7, rounding_mode="floor")``; the network's numbers are Python's.
"""

import numpy as np
import pytest
from onnx import helper

from models import proto
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.provenance.origin import FX_NODE
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage_testing import save_model
from tensortriage_torch.rungs.network_values import Inner, NetworkValues
from tensortriage_torch.rungs.whole_numbers import inexact_integers, may_have_inexact_integers
from tensortriage_torch.traced_values import Trace

DIVIDED = """g (int64[3] x) => (int64[3] y) <float seven = {7}> {
  [cast] wide = Cast <to: int = 1> (x)
  [div] ratio = Div (wide, seven)
  [floor] low = Floor (ratio)
  [back] y = Cast <to: int = 7> (low)
}"""


@pytest.fixture
def asked(tmp_path):
    """Return a function that asks about the network's numbers for some x, the nodes being of the named operations."""

    def ask(x, operations=("div",) * 4):
        message = proto(DIVIDED)
        for node, name in zip(message.graph.node, operations, strict=True):
            node.metadata_props.append(_entry(name))
        model = Model.load(save_model(message, tmp_path / "model.onnx"))
        feed = Feed("real", {"x": np.array(x)}, Origin.REAL)
        plain = EngineSpec.parse("onnxruntime:optimization=none")
        arrays = {"y": np.array([each // 7 for each in x])}
        assert may_have_inexact_integers(model) == (len(set(operations)) == 1)
        values = NetworkValues(
            inner=Inner.OPERATIONS, names=("y",), arrays=arrays, folded={}, trace=Trace({}, {}, {}),
            modules=frozenset(), seen=frozenset(), training=False, reason="", own_error=None, descriptions={},
        )  # fmt: skip
        with Case(tmp_path / "case") as case:
            inv = Investigation.begin(Question(model=model, feeds=[feed], reference=plain, target=plain), case)
            try:
                return dict(inexact_integers(inv, feed, values))
            finally:
                inv.lab.close()

    return ask


def _entry(name):
    made = helper.make_node("Relu", ["x"], ["y"])
    entry = made.metadata_props.add()
    entry.key, entry.value = FX_NODE, f"%{name} : [num_users=1] = call_function[target=f](args = (), kwargs = {{}})"
    return entry


def test_above_two_to_the_24th_they_are_wrong(asked):
    found = asked([2**40 + 5, -(2**33) - 3, 17])
    assert list(found) == ["y"]
    assert found["y"].error == pytest.approx(2 / 3)  # the share of unequal elements; 17 is exact


def test_below_they_are_exact(asked):
    assert asked([2**20 + 5, -(2**20) - 3, 17]) == {}


def test_a_number_that_the_network_itself_has_in_floating_point_is_no_fault(asked):
    """Where the operations are several, the network may round between them."""
    assert asked([2**40 + 5, 3, 17], ("to", "div", "floor", "to_1")) == {}

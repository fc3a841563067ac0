"""Ops that run apart from each other are fed with golden values, and with the feed's own tensors."""

import dataclasses

import numpy as np
import onnx.parser
import pytest

from tensortriage.diagnose.measurements.local_errors.golden_operands import golden_operands
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.questions.question import Question
from tensortriage.values.store import MemoryStore
from tensortriage_testing import save_model

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
agraph (float[2, 6] x) => (float[rows, columns] y) {
    [double] d = Add(x, x)
    [size] s = Shape(x)
    [flat] f = Reshape(d, s)
    [out] y = Neg(f)
}"""


@pytest.fixture
def operands(tmp_path):
    feed = Feed("real", {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}, Origin.REAL)
    model = Model.load(save_model(onnx.parser.parse_model(TEXT), tmp_path / "model.onnx"))
    question = Question(model=model, feeds=[feed], reference=PLAIN, target=PLAIN)
    with Case(tmp_path / "case") as case:
        investigation = Investigation.begin(question, case)
        yield golden_operands(investigation, feed)
        investigation.lab.close()


def test_an_op_is_fed_what_the_reference_computed_and_shapes_are_constants(operands):
    ops = operands.apart([["double"], ["flat"], ["out"]])
    assert dict(ops.reads) == {"golden::x": "x", "golden::d": "d", "golden::f": "f"}  # the size of flat is frozen
    np.testing.assert_array_equal(ops.feed.tensors["golden::x"], operands.feed.tensors["x"])
    np.testing.assert_array_equal(ops.feed.tensors["golden::d"], 2 * operands.feed.tensors["x"])
    assert ops.values == ("d", "f", "y")
    assert ops.feed.origin is Origin.REAL


def test_ops_of_one_set_stay_wired_and_only_their_end_is_watched(operands):
    ops = operands.apart([["double", "flat"]], ends_only=True)
    assert list(ops.feed.tensors) == ["golden::x"]
    assert ops.values == ("f",)


def test_what_has_no_golden_value_is_not_compared(operands):
    known = MemoryStore({name: operands.golden[name] for name in operands.golden.names() if name != "y"})
    ops = dataclasses.replace(operands, golden=known).apart([["flat"], ["out"]])
    assert ops.values == ("f",)

"""Which nodes are blamed in a target's own run: of a piece that it computes as one, and of several hidden ones."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from diagnosing import ask
from registered_engines import register
from tensortriage.diagnose.rungs.operators.in_place_run import _culprits, _making_it
from tensortriage.envelope.ops import OpLimits
from tensortriage.model.model import Model

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3] x) => (float[1,3] y)
  <int64 first = {0}, float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}, float two = {2}> {
    [pick] a = Gather<axis = 1>(x, first)
    [scale] s = Mul(a, two)
    [product] c = Gemm(s, w, b)
    [tanh] y = Tanh(c)
  }"""


@pytest.mark.parametrize(
    ("nodes", "blamed"),
    [(("pick", "scale", "product", "tanh"), "product"), (("pick", "scale", "tanh"), "pick"), (("tanh",), "tanh")],
)
def test_the_node_with_the_weight_is_blamed_and_not_one_with_an_index(tmp_path, nodes, blamed):
    """A fault in the weight of a Gemm behind a Gather (the pooler of a BERT) was the Gather's."""
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "m.onnx")
    inv = SimpleNamespace(model=Model.load(tmp_path / "m.onnx"))
    evidence = SimpleNamespace(floors=None, error=lambda value: np.float64(0.1))
    (culprit,) = _culprits(inv, evidence, "y", nodes)
    assert culprit.node == blamed


RESIZED = """<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3,3] x) => (float[1,2,6,6] y)
  <int64[1] first = {0}, int64[1] second = {2}, int64[2] size = {6, 6}> {
    [abs] a = Abs(x)
    [shape] s = Shape(a)
    [cut] c = Slice(s, first, second)
    [join] j = Concat<axis = 0>(c, size)
    [resize] y = Resize(a, , , j)
  }"""


def test_what_works_out_a_shape_is_not_blamed(tmp_path):
    """RKNN 2.3.0 makes a convolution of a linear Resize, wrong at the borders; the Slice before it has a constant."""
    onnx.save(onnx.parser.parse_model(RESIZED), tmp_path / "m.onnx")
    inv = SimpleNamespace(model=Model.load(tmp_path / "m.onnx"))
    evidence = SimpleNamespace(floors=None, error=lambda value: np.float64(0.1))
    (culprit,) = _culprits(inv, evidence, "y", ("shape", "cut", "join", "resize"))
    assert culprit.node == "resize"


def test_an_error_that_the_target_chose_makes_no_failure():
    """What is within a freedom's limit is no more a fault than what is within the floor; nothing is injected."""
    inv = SimpleNamespace(question=SimpleNamespace(values=["s"]), model=SimpleNamespace(graph=None))
    evidence = SimpleNamespace(in_context={"s": None}, error=lambda value: 0.1)
    evidence.floors = SimpleNamespace(target={"s": 0.06})
    assert _making_it(inv, evidence, OpLimits({}, {"s": None}), {}) == ({}, 0.0)
    with pytest.raises(AttributeError, match="lab"):  # else it is run with what the target has there
        _making_it(inv, evidence, OpLimits({}), {})


PRODUCTS = """<ir_version: 8, opset_import: ["": 17]> g (float[4,8] x, float[8,8] u, float[8,8] v, float[8,6] w)
  => (float[4,6] y) {
    [first] a = MatMul(x, u)
    [tanh] b = Tanh(a)
    [second] c = MatMul(b, v)
    [abs] d = Abs(c)
    [third] y = MatMul(d, w)
  }"""

WHOLE = """
import onnx
from onnx import numpy_helper

from tensortriage.engines.base import Availability
from tensortriage.engines.capabilities import Observes
from tensortriage.engines.session_capabilities import ShowsValues
from tensortriage.engines.onnxruntime.engine import OnnxRuntimeEngine, OnnxRuntimeSession
from tensortriage.engines.onnxruntime.settings import UNOPTIMIZED
from tensortriage.errors import BuildFailed


class Shows(OnnxRuntimeSession, ShowsValues):
    observation = "unfused"

    def captured(self, feed, values):
        return [(name, array) for name, array in self.inner.run(feed).items() if name in values and name in self.shown]


class Engine(Observes):
    '''A network in a file whose weight is another one; it runs as a whole and shows few values.'''

    name = "whole"
    options = {"weight": "which is another", "shown": "values that are shown"}

    def __init__(self, **words):
        pass

    def availability(self):
        return Availability(usable=True)

    def observing(self, options):
        return options

    def compile(self, path, options):
        model = onnx.load(path)
        if [value.name for value in [*model.graph.input, *model.graph.output]] != ["x", "y"]:
            raise BuildFailed("whole models only", slug="build-failed")
        for tensor in model.graph.initializer:
            if tensor.name == options["weight"]:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 1.2, tensor.name))
        changed = path.with_suffix(".changed.onnx")
        onnx.save(model, changed)
        session = Shows(changed, UNOPTIMIZED)
        session.shown = options["shown"].split("+")
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in "abcd")
        onnx.save(model, changed)
        session.inner = OnnxRuntimeSession(changed, UNOPTIMIZED)
        return session
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "verdict", "named"),
    [
        ("b+c", "local-fault", ["second"]),
        ("b+d", "local-fault", ["second"]),
        ("a", "local-fault", ["second", "third"]),
        ("y", "inconclusive", []),
    ],
)
def test_all_ops_between_right_operands_and_a_wrong_value_are_named(tmp_path, monkeypatch, shown, verdict, named):
    """A weight of the second of three products is 1.2 times as large; where nothing acquits any, none is named."""
    (tmp_path / "whole_engine.py").write_text(WHOLE)
    register(monkeypatch, tmp_path, whole="whole_engine:Engine")
    model = onnx.parser.parse_model(PRODUCTS)
    random = np.random.default_rng(1)
    for name, width in (("u", 8), ("v", 8), ("w", 6)):
        weight = random.standard_normal((8, width)).astype(np.float32) / 3
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
        model.graph.input.remove(next(value for value in model.graph.input if value.name == name))
    onnx.save(model, tmp_path / "m.onnx")
    feed = {"x": random.standard_normal((4, 8)).astype(np.float32)}
    found, report = ask(tmp_path, tmp_path / "m.onnx", feed, f"whole:weight=v,shown={shown}", repro=False)
    assert (found.verdict, [each.node for each in found.culprits]) == (verdict, named), found.summary
    if len(named) > 1:
        assert "One of MatMul 'second' and MatMul 'third' is wrong" in found.summary
        assert report.headline.endswith("(or 1 more op)")

"""Are runs told that return what belongs to the feed before? A program that is late by chance, and others that vary."""

import dataclasses

import numpy as np
import pytest

from investigations import compared, investigate  # noqa: F401 - fixtures
from models import proto
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.spec import EngineSpec
from tensortriage_feeds.feed_before import feed_before

NET = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] image) => (float[2,6] y) { [act] r = Tanh(image) [out] y = Sigmoid(r) }"""
IMAGE = {"image": np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)}
APP = """
import numpy as np
import onnxruntime

class App:
    def compile(self, model_path, options):
        self.network, self.kept, self.runs = onnxruntime.InferenceSession(str(model_path)), None, 0
        return self

    def run(self, feed):
        kept, self.kept, self.runs = self.kept, {{name: array.copy() for name, array in feed.items()}}, self.runs + 1
        is_odd = self.runs % 3 == 0 and kept is not None
        {body}
        return {{"y": self.network.run(["y"], feed)[0]{factor}}}
"""


@pytest.fixture
def asked(investigate, compared, tmp_path):  # noqa: F811
    def ask(body="pass", factor=""):
        (tmp_path / "app.py").write_text(APP.format(body=body, factor=factor))
        inv = investigate(proto(NET), IMAGE)
        target = EngineSpec.parse(f"script:{tmp_path / 'app.py'}:App")
        inv = inv.about(dataclasses.replace(inv.question, target=target))
        concluded = Conclusion(VerdictKind.NONDETERMINISTIC_RUN, OBSERVED, "so far")
        return feed_before(inv, compared(inv).with_(concluded=concluded)).verdict

    return ask


def test_runs_on_the_feed_before_are_counted(asked):
    """Every third of 40 runs is late, that is 13 of them."""
    assert (
        "in 13 of 40 runs of two feeds in turn, 'y' equals that of the feed before"
        in asked("feed = kept if is_odd else feed").summary
    )


@pytest.mark.parametrize("factor", ["", " * np.float32(1.2 if is_odd else 1)", " * np.float32(not is_odd)"])
def test_results_that_vary_otherwise_are_not_of_the_feed_before(asked, factor):
    assert asked(factor=factor) is None


LONGER = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,6] image) => (float[2,6] y) { [act] r = Tanh(image) [mid] s = Neg(r) [end] t = Exp(s)
[out] y = Sigmoid(t) }"""
FAULTY = """
from tensortriage_testing import FaultyEngine

class App(FaultyEngine):
    pass
"""
LATE = """
import numpy as np
import onnx
import onnxruntime

class App:
    def compile(self, model_path, options):
        self.network, self.kept, self.runs = onnxruntime.InferenceSession(str(model_path)), None, 0
        self.names = [value.name for value in onnx.load(model_path).graph.output]
        return self

    def run(self, feed):
        made, self.runs = dict(zip(self.names, self.network.run(self.names, feed))), self.runs + 1
        before, self.kept = self.kept or made, made
        first = {first}
        return {{name: (before if "rsty".index(name) >= first else made)[name] for name in made if name in "{shown}"}}
"""


@pytest.fixture
def blamed(investigate, compared, tmp_path):  # noqa: F811
    def ask(text, node, options=""):
        (tmp_path / "app.py").write_text(text)
        inv = investigate(proto(LONGER), IMAGE)
        target = EngineSpec.parse(f"script:{tmp_path / 'app.py'}:App{options}")
        inv = inv.about(dataclasses.replace(inv.question, target=target))
        op = inv.model.graph.node(node)
        concluded = Conclusion(
            VerdictKind.NONDETERMINISTIC_RUN, OBSERVED, "so far", culprits=[Culprit(node, op.op_type, op.outputs[0])]
        )
        found = feed_before(inv, compared(inv).with_(concluded=concluded)).verdict
        return [culprit.node for culprit in found.culprits], found.summary

    return ask


@pytest.mark.parametrize("chance", ["", pytest.param(",run_chance=0.4", marks=pytest.mark.lengthy)])
def test_an_op_that_returns_its_earlier_result_stays_named(blamed, chance):
    """Its operands are those of its own feed in each run in which it is late."""
    nodes, summary = blamed(FAULTY, "mid", f",kind=stale,node=mid{chance}")
    assert nodes == ["mid"]
    assert summary.startswith("so far. In ")
    assert "and the operands of Neg 'mid' are those of its own feed: it is the op that is late" in summary


@pytest.mark.parametrize(
    ("first", "shown", "node"),
    [
        ("0", "rsty", "act"),  # all values are of the feed before, as the input that the first op gets may be
        pytest.param("0", "rsty", "mid", marks=pytest.mark.lengthy),
        ("self.runs * 7 % 3 + 1", "rsty", "mid"),  # read before the run is over: from another op on each time
        pytest.param("3", "y", "out", marks=pytest.mark.lengthy),  # shows its outputs alone
    ],
)
def test_a_program_that_is_late_is_not_an_op_that_is(blamed, first, shown, node):
    nodes, summary = blamed(LATE.format(first=first, shown=shown), node)
    assert nodes == []
    assert "computes on, or returns, what is there of an earlier run" in summary

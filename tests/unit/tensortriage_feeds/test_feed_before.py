"""Are runs told that return what belongs to the feed before? A program that is late by chance, and others that vary."""

import dataclasses

import numpy as np
import pytest

from investigations import compared, investigate  # noqa: F401 - fixtures
from models import proto
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
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

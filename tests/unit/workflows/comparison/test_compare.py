"""Does the comparison know whether marking changed what an engine answers, and when made-up data are noise?"""

import dataclasses

import numpy as np
import onnx
import pytest

import models
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.common.output_selection import OutputChoice
from tensortriage.workflows.comparison.compare import compare
from tensortriage.workflows.comparison.compare_request import CompareRequest
from tensortriage_testing import mlp, save_model

SHY = """
import numpy as np
import onnxruntime


class Engine:
    def compile(self, model, options):
        return Session(onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]))


class Session:
    def __init__(self, session):
        self.session = session

    def run(self, feed):
        names = [output.name for output in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(names, dict(feed))))
        return {name: array + np.float32(len(names) > 2) for name, array in found.items()}
"""
"""An engine that adds 1 to everything when more than the model's two outputs are asked of it."""


def erased(outputs):
    for array in outputs.values():
        if array.flags.writeable:  # what a worker sends is not
            array[...] = 0.0
    return outputs


@pytest.fixture
def request_for(tmp_path):
    (tmp_path / "shy.py").write_text(SHY)
    model = models.branchy().save(tmp_path / "model.onnx")

    def make(mark, **named):
        targets = [EngineSpec.parse("onnxruntime"), EngineSpec.parse(f"script:{tmp_path / 'shy.py'}")]
        choice = OutputChoice(mark=mark)
        return CompareRequest(
            model=model, reference=EngineSpec.parse("onnxruntime"), targets=targets, outputs=choice, **named
        )

    return make


@pytest.mark.parametrize("postprocess", [None, erased], ids=["as it is", "changed in place"])
def test_an_engine_that_marking_moves_is_told_from_others(request_for, postprocess):
    result = compare(request_for(["*"], postprocess=postprocess))
    moved = list(result.moved.values())
    assert (result.observation, moved) == ("instrumented", [False, False, True])
    assert result.builds == 3 + 2  # the two sessions of ONNX Runtime are the same: one untouched run is enough


def test_nothing_is_run_twice_when_nothing_is_marked(request_for):
    result = compare(request_for([]))
    assert (result.observation, dict(result.moved), result.checks) == ("deployed", {}, 3)
    assert all(row.metrics.mismatches == 0 for item in result.comparisons for row in item.comparison.rows)


def test_an_engine_that_fails_unmarked_is_an_outcome(request_for, tmp_path):
    (tmp_path / "shy.py").write_text(SHY.replace("names = [", "assert len(self.session.get_outputs()) > 2; names = ["))
    result = compare(request_for(["*"]))
    assert [outcome.ok for outcome in result.outcomes.values()] == [True, True, False]
    assert len(result.comparisons) == 2  # what was measured before stays
    assert np.isfinite(result.run_seconds)


def test_noise_of_made_up_data_leads_to_others_unless_they_are_on_record(tmp_path):
    """Expected: Sigmoid of -19 is 0 on ONNX Runtime, 1e-8 elsewhere: noise, where Sigmoid of -9 is none."""
    path = tmp_path / "quiet.onnx"
    onnx.save(
        models.proto("g (float[1, 64] x) => (float[1, 64] y) <float t = {19.0}> { d = Sub(x, t) y = Sigmoid(d) }"), path
    )
    request = CompareRequest(
        model=path, reference=EngineSpec.parse("float64"), targets=[EngineSpec.parse("onnxruntime")]
    )
    found = compare(request)
    assert (list(found.feeds), found.unevaluated) == (["random[0.3]"], "")
    again = compare(dataclasses.replace(request, feeding=FeedRequest(paths=("random[0.3]",))))
    assert again.comparisons == found.comparisons
    kept = compare(request, on_feed=lambda number, feed: None)
    assert (list(kept.feeds), "noise" in kept.unevaluated) == (["random[0]"], True)


def test_an_answer_that_is_the_same_everywhere_proves_nothing(tmp_path):
    """Whoever gave the data: `diagnose` says `inconclusive` likewise."""
    path = tmp_path / "zero.onnx"
    onnx.save(models.proto("g (float[64] x) => (float[64] y) { a = Abs(x) n = Neg(a) y = Relu(n) }"), path)
    request = CompareRequest(
        model=path, reference=EngineSpec.parse("float64"), targets=[EngineSpec.parse("onnxruntime")]
    )
    given = FeedRequest(given=[Feed("mine", {"x": np.linspace(-1, 1, 64, dtype=np.float32)}, Origin.REAL)])
    for feeding in (FeedRequest(), given):
        found = compare(dataclasses.replace(request, feeding=feeding))
        assert (found.exit_code, "every tensor is empty or constant on these data" in found.unevaluated) == (4, True)


def test_float64_takes_the_place_of_a_reference_that_contradicts_itself(tmp_path, caplog):
    """As in `diagnose` (sentence 6 of the rules of the judge); a target that is wrong stays so."""
    path, faulty = tmp_path / "net.onnx", tmp_path / "faulty.py"
    save_model(mlp(layers=2, width=16, features=8, batch=4, seed=0), path)
    faulty.write_text("from tensortriage_testing import FaultyEngine as Engine")
    node = onnx.load(path).graph.node[0].name
    races, wrong = (
        EngineSpec.parse(f"script:{faulty},kind={kind},node={node},amount={amount}")
        for kind, amount in (("nondeterministic", 0.05), ("scale", 1.05))
    )
    found = compare(CompareRequest(model=path, reference=races, targets=[EngineSpec.parse("onnxruntime"), wrong]))
    assert [row.judgement.within for each in found.comparisons for row in each.comparison.rows] == [True, False]
    assert (found.reference.split(":")[0], found.disagreements) == ("float64", ())
    assert "gives other results from run to run" in caplog.text

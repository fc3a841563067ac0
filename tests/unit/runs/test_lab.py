"""A lab asks, and keeps what it was told where it has a case."""

import numpy as np
import pytest

from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import BuildFailed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage_testing.models import feed_for, mlp, save_model

REFUSES = """
class Engine:
    def compile(self, model, options):
        open(__file__ + ".asked", "a").write("x")
        raise RuntimeError("no")
"""


@pytest.fixture
def asked(tmp_path):
    proto = mlp()
    return Model.load(save_model(proto, tmp_path / "model.onnx")), Feed("feed", feed_for(proto), Origin.RANDOM)


def inner(model):
    return [value for node in model.graph.nodes for value in node.outputs]


def test_without_a_case_nothing_is_kept_and_the_folder_is_gone(asked):
    model, feed = asked
    with Lab() as lab:
        folder = lab.workspace.folder
        first = lab.values(PLAIN, model, feed, inner(model))
        again = lab.values(PLAIN, model, feed, inner(model))
        streamed = dict(lab.stream(PLAIN, model, feed, inner(model)))
        assert lab.derived(int, "how many?", PLAIN, model, feed).of(lambda: 3) == 3
    assert list(first.names()) == list(streamed) == inner(model)
    assert all(np.array_equal(first[name], again[name]) for name in first.names())
    assert lab.tally.checks == 3
    assert not folder.exists()


def test_who_judges_is_answered_once_without_a_case_of_the_users(asked):
    model, feed = asked
    with Lab() as lab:
        folder, judging = lab.workspace.folder, lab.remembering
        for _ in range(2):
            judging.values(PLAIN, model, feed, inner(model))
        assert lab.remembering is judging.remembering is judging
        assert (judging.tally.checks, lab.tally.checks) == (1, 0)
    assert not folder.exists()


def test_a_run_that_is_to_be_made_again_leaves_nothing_in_the_case(asked, tmp_path):
    model, feed = asked
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        for _ in range(2):
            lab.outputs(PLAIN, model, feed, repetition=None)
        assert lab.tally.checks == 2
        assert not any(case.runs.iterdir())


def test_what_is_known_is_not_asked_again(asked, tmp_path):
    model, feed = asked
    with Case(tmp_path / "case") as case:
        for checks in (1, 0):
            with Lab(case) as lab:
                lab.values(PLAIN, model, feed, inner(model))
                assert lab.tally.checks == checks


def test_a_refusal_is_raised_again_and_not_asked_for_again(asked, tmp_path):
    (tmp_path / "refuses.py").write_text(REFUSES)
    refusing = EngineSpec("script", {"file": str(tmp_path / "refuses.py")})
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        for _ in range(2):
            with pytest.raises(BuildFailed):
                lab.outputs(refusing, *asked)
    assert (tmp_path / "refuses.py.asked").read_text() == "x"


def test_a_session_of_its_own_is_built_when_it_is_run_and_its_runs_are_not_kept(asked, tmp_path):
    model, feed = asked
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        with lab.session(PLAIN, model, sequence=True) as run:
            assert lab.tally.builds == 0
            run(feed.tensors)
            run(feed.tensors)
        with lab.session(PLAIN, model, sequence=True) as run:
            run(feed.tensors)
        assert (lab.tally.builds, lab.tally.checks, len(case.checks)) == (2, 3, 0)

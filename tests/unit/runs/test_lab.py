"""A lab asks, and keeps what it was told where it has a case."""

import numpy as np
import pytest

from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import BuildFailed, RunFailed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import select_outputs
from tensortriage.runs.case import Case
from tensortriage.runs.lab import Lab
from tensortriage.runs.observation.experiment import ObservedBuild
from tensortriage_testing.models import feed_for, mlp, save_model

REFUSES = """
class Engine:
    def compile(self, model, options):
        open(__file__ + ".asked", "a").write("x")
        raise RuntimeError("no")
"""

STUMBLES = """
class Session:
    runs = 0
    def run(self, feed):
        self.runs += 1
        if self.runs % 2:
            raise RuntimeError("the first run")
        return {name: next(iter(feed.values())) for name in self.names}
class Engine:
    def compile(self, model, options):
        import onnx
        session = Session()
        session.names = [value.name for value in onnx.load(model).graph.output]
        return session
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


def test_a_sequence_is_built_when_it_is_run_and_its_runs_are_not_kept(asked, tmp_path):
    model, feed = asked
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        lab.outputs(PLAIN, model, feed, repetition=None)  # leaves a session open, which a sequence does not share
        with lab.session(PLAIN, model, sequence=True) as ask, lab.session(PLAIN, model, sequence=True) as other:
            assert lab.tally.builds == 1
            first, again = ask(feed), ask(feed.tensors)
            other(feed)
        assert [*first] == [*again] == [spec.name for spec in model.outputs]
        assert all(np.array_equal(first[name], again[name]) and first[name] is not again[name] for name in first)
        assert (lab.tally.builds, lab.tally.checks, len(case.checks)) == (3, 4, 0)


def test_a_sequence_goes_on_after_a_run_that_fails(asked, tmp_path):
    (tmp_path / "stumbles.py").write_text(STUMBLES)
    stumbling, (model, feed) = EngineSpec("script", {"file": str(tmp_path / "stumbles.py")}), asked
    with Lab() as lab, lab.session(stumbling, model, sequence=True) as ask:
        for _ in range(2):
            with pytest.raises(RunFailed, match="the first run"):
                ask(feed)
            assert [*ask(feed)] == [model.outputs[0].name]
            lab.drop(stumbling, model)  # another session than that of the sequence
        assert (lab.tally.builds, lab.tally.checks) == (1, 2)


def test_what_a_session_says_of_itself_takes_a_build_and_no_run(asked):
    model, _ = asked
    with Lab() as lab, lab.session(PLAIN, model, sequence=True) as ask:
        built = ask.of(observed=ObservedBuild()).built
        assert [spec.name for spec in built.outputs] == [spec.name for spec in model.outputs]
        assert (lab.tally.builds, lab.tally.checks) == (1, 0)


def test_values_are_handed_over_as_they_are_computed_in_one_run_where_an_engine_can(asked):
    model, feed = asked
    names = inner(model)
    with Lab(batch_bytes=1) as lab:
        assert [name for name, _ in lab.stream(EngineSpec("float64"), model, feed, names[::-1])] == names
        assert lab.tally.checks == 1
        assert [name for name, _ in lab.stream(PLAIN, model, feed, names)] == names
        assert lab.tally.checks == 1 + len(names)  # one batch each


def test_a_marked_session_that_is_open_serves_whoever_marks_the_same_values(asked, tmp_path):
    model, feed = asked
    names = inner(model)
    with Case(tmp_path / "case") as case, Lab(case) as lab:
        with lab.session(PLAIN, select_outputs(model, names)) as ask:
            shown = ask(feed)
            seen = lab.values(PLAIN, model, feed, names)
        assert all(np.array_equal(shown[name], seen[name]) for name in names)
        assert (lab.tally.builds, lab.tally.checks) == (1, 2)

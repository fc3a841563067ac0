"""Studies of builds through the library, for an engine whose tactics are entries of a timing cache."""

import dataclasses

import numpy as np
import pytest

from registered_engines import register
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.search.statistics.repeats import Until
from tensortriage_builds.goal import BuildGoal
from tensortriage_builds.request import BuildRequest
from tensortriage_builds.study_builds import study_builds
from tensortriage_builds.trial import BuildJudgement
from tensortriage_testing import conv_net, feed_for, save_model


class Quiet:
    def step(self, step):
        pass

    def progress(self, text):
        pass

    def built(self, trial, trials):
        pass

    def searched(self, progress):
        pass

    def tell(self, text):
        pass


@pytest.fixture
def request_of(tmp_path, monkeypatch):
    register(monkeypatch, tmp_path, varying="tensortriage_testing:VaryingEngine")
    model = conv_net(blocks=1)
    save_model(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "m.npz", **feed_for(model))

    def request(words):
        return BuildRequest(
            model=tmp_path / "m.onnx",
            target=f"varying:node=/fc/Gemm,kind=scale,tactics=2,draws={tmp_path / 'n'},{words}",
            feeding=FeedRequest(paths=[str(tmp_path / "m.npz")]),
            case=tmp_path / "case",
            output=tmp_path / "pinned.engine",
        )

    return request


@pytest.mark.lengthy
@pytest.mark.parametrize("keyed", [True, False])
def test_builds_with_given_tactics_start_from_a_cache_that_has_their_entries(request_of, tmp_path, keyed):
    found = study_builds(request_of(f"keyed={str(keyed).lower()}"), listener=Quiet())
    assert [guilty.layer for guilty in found.blame.guilty] == ["/fc/Gemm"]
    assert found.blame.cured
    assert found.pinned.trial.judgement is BuildJudgement.GOOD
    assert found.pinned.same_outputs
    assert (tmp_path / "pinned.engine").is_file()
    assert (tmp_path / "case" / "pinned.timing.cache").is_file() is keyed
    assert ("pinned.timing.cache" in found.files) is keyed


def test_a_resumed_study_finds_the_caches_again(request_of, tmp_path):
    first = study_builds(request_of("keyed=true"), listener=Quiet())
    again = study_builds(request_of("keyed=true"), listener=Quiet())
    assert again.trials == first.trials
    assert again.blame == first.blame
    assert int((tmp_path / "n").read_text()) == len(first.trials) + first.blame.builds + 2


def test_without_builds_from_given_tactics_the_good_build_itself_is_the_result(request_of, tmp_path):
    goal = BuildGoal(until=Until.GOOD, most=20, pin=False)
    found = study_builds(dataclasses.replace(request_of("keyed=false"), goal=goal), listener=Quiet())
    assert found.good >= 1
    assert (tmp_path / "pinned.engine").is_file()

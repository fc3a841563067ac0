import pytest

from tensortriage.values.serial import from_json, to_json
from tensortriage_builds.study_result import BuildStudy


def study(stop):
    return BuildStudy(
        engine="tensorrt", trials=(), good=1, bad=2, unresolved=0, rate=2 / 3, low=0.2, high=0.9, distinct_outputs=2,
        distinct_plans=0, spread=None, suspects=(), blame=None, pinned=None, deployed=None, stop=stop, seconds=1.5,
    )  # fmt: skip


@pytest.mark.parametrize(("stop", "code"), [("reached", 0), ("interrupted", 130), ("most-runs", 4), ("budget", 4)])
def test_the_exit_code_says_whether_what_was_asked_for_was_reached(stop, code):
    assert study(stop).exit_code == code


def test_what_is_written_is_read():
    found = from_json(to_json(study("reached")), BuildStudy)
    assert found == study("reached")
    assert (found.format, found.confidence) == ("tensortriage.builds/1", 0.95)

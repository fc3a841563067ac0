"""A session that builds for every shape: what it ran first may be another engine than what runs now."""

import types

import pytest

from tensortriage.diagnose.rungs.premises import own_rows
from tensortriage.diagnose.rungs.variation import repeated


class Session:
    """One that builds for the shapes it is fed."""

    def __init__(self, builds):
        self._builds = builds

    def builds_made(self):
        return (1.0,) * self._builds


def investigation(builds):
    session = Session(builds) if builds is not None else object()
    runner = types.SimpleNamespace(build=lambda: session, rebuilt=lambda: (builds or 0) > 1)
    question = types.SimpleNamespace(target="target")
    return types.SimpleNamespace(question=question, model="model", runner=lambda spec, model: runner)


@pytest.mark.parametrize(
    ("builds", "vary", "replaced"),
    [(1, True, True), (1, None, True), (1, False, False), (0, True, False), (None, True, False)],
)
def test_other_batch_sizes_are_not_fed_where_that_replaces_the_deployed_engine(monkeypatch, builds, vary, replaced):
    """With a range of shapes, or fixed ones, there is one build whatever is fed."""
    monkeypatch.setattr(own_rows, "builds_vary", lambda inv: vary)
    assert own_rows._would_be_replaced(investigation(builds)) is replaced


@pytest.mark.parametrize(("builds", "vary", "moved"), [(2, True, 0.0), (1, True, 0.5), (2, False, 0.5)])
def test_what_an_earlier_build_ran_is_not_compared_as_a_run_of_this_one(monkeypatch, builds, vary, moved):
    """Seen on TensorRT in fp16 without a range: another batch size was fed, and the next run differed by 4.7e-5."""
    monkeypatch.setattr(repeated, "builds_vary", lambda inv: vary)
    monkeypatch.setattr(repeated, "from_first", lambda *_: 0.5)
    assert repeated._since_first(investigation(builds), None, "y", None) == moved

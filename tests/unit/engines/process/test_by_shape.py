"""Sessions that are built for the shapes of a feed: when, for which, and what is left of them."""

import contextlib
import tempfile
import types

import numpy as np
import pytest

from models import parse
from tensortriage.engines.process.by_shape import SessionByShape
from tensortriage.errors import RunFailed

OPEN = 'g (float["n", 2] x, float[2] w) => (float["n", 2] y) { y = Add(x, w) }'
FIXED = "g (float[3, 2] x, float[2] w) => (float[3, 2] y) { y = Add(x, w) }"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def session(place):
    """Return what makes sessions, which are closed in the end."""
    with contextlib.ExitStack() as closing:

        def make(text, **given):
            made, built = opened(text, **given)
            closing.callback(made.close)
            return made, built

        yield make


def opened(text, **given):
    """Return a session, and the shapes of its first input for which it was built, in order."""
    built = []

    def build(path, model):
        assert path.is_file()
        built.append(tuple(model.inputs[0].shape))
        return types.SimpleNamespace(
            run=lambda feed: {"y": feed["x"] + feed["w"]}, close=lambda: None, plan=lambda: None, label="built"
        )

    return SessionByShape(parse(text), build, title="MNN", **{"fixed_shapes": True, **given}), built


def feed(rows):
    return {"x": np.ones((rows, 2), np.float32), "w": np.ones(2, np.float32)}


def test_an_open_model_is_built_for_every_new_shape_and_not_before(session):
    made, built = session(OPEN)
    assert built == []
    for rows in (1, 1, 4):
        assert made.run(feed(rows))["y"].shape == (rows, 2)
    assert built == [(1, 2), (4, 2)]


def test_a_fixed_model_is_built_at_once_and_an_open_one_where_sizes_may_stay_open(session):
    assert session(FIXED)[1] == [(3, 2)]
    assert session(FIXED, at_once=False)[1] == []
    made, built = session(OPEN, fixed_shapes=False)
    made.run(feed(5))
    assert built == [("n", 2)]


def test_nothing_is_left_of_one_that_was_closed(place, session):
    made, _ = session(OPEN)
    made.run(feed(2))
    assert list(place.iterdir()) != []
    made.close()
    made.close()
    assert list(place.iterdir()) == []
    with pytest.raises(RunFailed):
        made.run(feed(2))

"""Who takes part in a comparison: engines that run now, numbered where two are the same, and what was saved earlier."""

from pathlib import Path

import numpy as np
import pytest

from models import branchy, chain
from tensortriage.engines.spec import PLAIN, EngineSpec
from tensortriage.errors import DataError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.runs.lab import Lab
from tensortriage.workflows.comparison.participants import Live, Saved, numbered

FEED = Feed("f[0]", {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}, Origin.REAL)
SAVED = [{"y": np.ones(2, np.float32), "z": np.zeros(2, np.float32)}]


@pytest.fixture
def lab():
    with Lab() as made:
        yield made


def test_engines_that_are_the_same_are_numbered():
    other = EngineSpec("openvino")
    specs = [PLAIN, other, PLAIN, PLAIN, other]
    names = [str(PLAIN), "openvino", f"{PLAIN} #2", f"{PLAIN} #3", "openvino #2"]
    assert list(numbered(specs)) == list(zip(names, specs, strict=True))


def test_an_engine_gives_the_values_that_are_prepared(lab):
    with_live = Live("ort", PLAIN, branchy(), lab)
    try:
        with_live.prepare(["c", "a"])
        found = with_live.outputs(FEED, 0)
        assert set(found) == {"a", "c"}
        np.testing.assert_array_equal(found["c"], -np.abs(FEED.tensors["x"]))
        with_live.prepare(["y", "z"])
        assert set(with_live.outputs(FEED, 1)) == {"y", "z"}
        assert set(with_live.deployed(FEED)) == {"y", "z"}
        assert with_live.everything(0) is None
        assert with_live.knows_some is False
    finally:
        with_live.release()


def test_warm_up_runs_come_before_the_first_feed_alone(lab):
    live = Live("ort", PLAIN, chain(2), lab, warm_up=2)
    live.prepare(["y"])
    for runs in (3, 3 + 1):
        live.outputs(FEED, runs - 3)
        assert lab.tally.checks == runs
    live.release()


def test_engines_are_alike_that_have_one_spec_and_one_model(lab):
    model = chain(2)
    one = Live("a", PLAIN, model, lab)
    assert one.like(Live("b", EngineSpec.parse(str(PLAIN)), model, lab))
    assert not one.like(Live("a", PLAIN, chain(2), lab))
    assert not one.like(Live("a", EngineSpec("float64"), model, lab))
    assert not one.like(Saved("a", SAVED))
    assert (one.precision_spec, one.needs_judging) == (PLAIN, False)


def test_an_engine_that_somebody_else_wrote_is_judged_as_a_reference(lab, tmp_path):
    script = EngineSpec.parse(f"script:{Path(tmp_path, 'mine.py')}:Engine")
    assert Live("mine", script, chain(2), lab).needs_judging


def test_saved_results_give_what_is_wanted_or_all_where_that_is_not_there():
    saved = Saved("out", SAVED)
    assert set(saved.outputs(FEED, 0)) == {"y", "z"}
    saved.prepare(["z"])
    found = saved.outputs(FEED, 0)
    assert set(found) == {"z"}
    found.clear()  # whoever asked owns it
    saved.prepare(["z", "renamed"])
    assert set(saved.outputs(FEED, 0)) == set(saved.everything(0)) == {"y", "z"}
    saved.release()


def test_saved_results_are_no_engine():
    saved = Saved("out", SAVED)
    assert (saved.precision_spec, saved.needs_judging, saved.knows_some, saved.deployed(FEED)) == (
        None,
        True,
        False,
        None,
    )
    assert saved.like(saved)
    assert not saved.like(Saved("out", SAVED))


def test_fewer_results_than_feeds_are_an_error():
    with pytest.raises(DataError) as caught:
        Saved("out", SAVED).outputs(FEED, 1)
    assert caught.value.slug == "results-too-few"

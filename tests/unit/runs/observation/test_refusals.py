"""Finding refused tensors by halves: an engine that refuses known ones shows all others, in few builds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import parse
from tensortriage.errors import BuildFailed, EngineHung
from tensortriage.runs.observation import refusals
from tensortriage.runs.observation.refusals import Unseen, seen_in_parts, suspected_kinds
from tensortriage.values.dtype import DType
from tensortriage.values.spec import ValueSpec

FIRST = BuildFailed("no", slug="build-failed")


class Picky:
    """Shows values as long as none of the refused ones is among them."""

    def __init__(self, refused):
        self.refused, self.builds = set(refused), 0

    def __call__(self, values):
        self.builds += 1
        if bad := self.refused & {*values}:
            raise BuildFailed(f"cannot mark {min(bad)}", slug="build-failed")
        return {value: np.zeros(1) for value in values}


@given(st.integers(2, 600), st.data())
def test_one_refused_tensor_is_found_and_all_others_are_seen(count, data):
    values = [f"v{i}" for i in range(count)]
    bad = data.draw(st.sampled_from(values))
    engine = Picky([bad])
    found, hidden = seen_in_parts(engine, values, [], FIRST)
    assert list(hidden.refused) == [bad]
    assert hidden.left_out == ()
    assert {*found} == {*values} - {bad}
    assert engine.builds <= 2 * math.ceil(math.log2(count))  # two halves a level


@given(st.lists(st.sampled_from("fbis"), min_size=2, max_size=80), st.data())
def test_whatever_is_refused_nothing_is_lost_and_nothing_innocent_blamed(letters, data):
    values = [f"{letter}{i}" for i, letter in enumerate(letters)]
    bad = data.draw(st.sets(st.sampled_from(values), min_size=1, max_size=3))
    kinds = [kind for letter in "bsi" if (kind := [v for v in values if v[0] == letter])]
    engine = Picky(bad)
    try:
        found, hidden = seen_in_parts(engine, values, kinds, FIRST)
    except BuildFailed:  # nothing was accepted in so many builds
        assert engine.builds == refusals.FUTILE_BUILDS
        return
    assert {*found} | {*hidden.values} == {*values}
    assert not {*found} & {*hidden.values}
    assert {*hidden.refused} <= bad
    assert engine.builds <= refusals.MOST_BUILDS
    if engine.builds < refusals.MOST_BUILDS:
        assert {*hidden.refused} == bad


def test_a_refused_kind_leaves_the_rest_in_one_piece():
    values = [f"f{i}" for i in range(100)] + ["b0", "b1", "i0"]
    engine = Picky(["b1"])
    asked = []

    def ask(part):
        asked.append(list(part))
        return engine(part)

    found, hidden = seen_in_parts(ask, values, [["b0", "b1"], ["i0"]], FIRST)
    assert asked == [[*values[:100], "i0"], ["b0"], ["b1"]]
    assert hidden == Unseen({"b1": "cannot mark b1"})
    assert hidden.sentence() == "the target refuses to show 'b1'"
    assert len(found) == 102


def test_an_engine_that_refuses_everything_is_not_asked_for_long():
    values = [f"v{i}" for i in range(200)]
    engine = Picky(values)
    with pytest.raises(BuildFailed) as caught:
        seen_in_parts(engine, values, [], FIRST)
    assert caught.value is FIRST
    assert engine.builds == refusals.FUTILE_BUILDS


def test_a_hang_ends_it():
    def ask(values):
        raise EngineHung("slow", slug="engine-hang")

    with pytest.raises(EngineHung):
        seen_in_parts(ask, ["a", "b"], [], FIRST)


def test_narrowing_down_takes_a_share_of_what_seeing_the_rest_took(monkeypatch):
    monkeypatch.setattr(refusals, "NARROWING_SECONDS", -math.inf)
    monkeypatch.setattr(refusals, "NARROWING_SHARE", 1.0)
    clock = iter(range(1000))
    monkeypatch.setattr(refusals.time, "perf_counter", lambda: float(next(clock)))
    values = ["f", *(f"b{i}" for i in range(64))]
    _, hidden = seen_in_parts(Picky(["b7"]), values, [values[1:]], FIRST)
    assert hidden.refused == {}  # it took two seconds to see the rest, so one build more
    assert len(hidden.left_out) >= 32
    assert hidden.sentence().startswith(f"{len(hidden.left_out)} tensors were left out: 'b")


def test_kinds_that_engines_refuse_often_come_first():
    model = parse(
        """g (float[2,3] x) => (float[3,2] y) <float[2,3] w = {1,2,3,4,5,6}> {
      n = Shape(x)
      k = ArgMax<axis=1, keepdims=0>(x)
      b = Less(x, w)
      m = Where(b, x, w)
      s = Slice(n, one, two, zero)
      y = Transpose(m)
    }""".replace("> {", ", int64[1] one = {0}, int64[1] two = {2}, int64[1] zero = {0}> {")
    )
    kinds = {"n": DType.INT64, "k": DType.INT64, "b": DType.BOOL, "s": DType.INT64}
    values = ["n", "k", "b", "m", "s", "y"]
    specs = {name: ValueSpec(name, kinds.get(name, DType.FLOAT), None) for name in values}
    found = suspected_kinds(model, values, specs, "cannot bind 'm' (Where)")
    assert found[:2] == [("m",), ("b",)]
    assert sorted(name for kind in found for name in kind) == ["b", "k", "m", "n", "s"]
